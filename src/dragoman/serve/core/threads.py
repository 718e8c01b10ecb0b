"""Whose a conversation is, and which: as the body and the headers of a request say it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, unquote

from dragoman.codec.json_values import if_object
from dragoman.errors import InvalidRequestError
from dragoman.json_bytes import JsonMap
from dragoman.serve.core.call import Call
from dragoman.serve.http.callers import ANONYMOUS

__all__ = [
    "THREAD",
    "check_name",
    "is_thread_of",
    "name_of",
    "resource_of",
    "scope_of",
    "thread_id",
    "thread_name",
    "user_of",
]

THREAD = "dragoman-thread"
"""Header in which a client of any wire names its conversation."""
_USERS = (("safety_identifier",), ("user",), ("metadata", "user_id"))
_THREADS = (("metadata", "thread_id"), ("metadata", "conversation_id"))
_LONGEST = 200
"""Characters of a name that a client gives."""


def user_of(call: Call) -> str:
    """Returns the user, owner of threads, whom the client calls for, as the body says it; empty if
    it says nothing.

    Raises:
        InvalidRequestError: the name is too long.
    """
    return _find_name(call.body, _USERS)


def resource_of(call: Call) -> str:
    """Returns the owner of the call's conversations: the caller, apart for each of its users."""
    user = user_of(call)
    return quote(call.caller.id, safe="") + (f"/{quote(user, safe='')}" if user else "")


def thread_name(call: Call, conversation: str | None) -> str | None:
    """Returns the name that the client gives its thread: from its API's own field, the header
    `dragoman-thread` or the request's metadata, in this order; None if it gives none. The name is
    the client's; `thread_id` makes the id of it under which the thread is stored.

    Args:
        call: the client's request.
        conversation: the name from its API's own field; None if there is none.

    Raises:
        InvalidRequestError: the name is too long.
    """
    name = conversation or call.headers.get(THREAD) or _find_name(call.body, _THREADS)
    if name:
        return check_name(name, "the conversation's id")
    return None


def thread_id(resource: str, name: str) -> str:
    """Returns the id of the conversation that a resource calls by this name. No other resource's
    name gives the same id."""
    if resource == ANONYMOUS.id:
        return name
    return f"{resource}/{quote(name, safe='')}"


def name_of(resource: str, thread: str) -> str:
    """Returns the name by which a resource calls the conversation of an id that `thread_id`
    made."""
    if resource == ANONYMOUS.id:
        return thread
    return unquote(thread.removeprefix(f"{resource}/"))


def scope_of(resource: str, thread: str | None) -> str:
    """Returns the prefix of conversation keys: under one prefix, equal messages are one
    conversation. `thread`: the conversation that the client names."""
    return f"{resource}\n{thread or ''}"


def is_thread_of(thread: str, resource: str) -> bool:
    """True if a conversation is this resource's, as its id says."""
    if resource == ANONYMOUS.id:
        return not thread.startswith(f"{resource}/")
    return thread.startswith(f"{resource}/") and "/" not in thread[len(resource) + 1 :]


def _find_name(body: JsonMap, paths: Sequence[tuple[str, ...]]) -> str:
    """Returns the first name of a thread or user that a body has at one of these paths, or ""."""
    for path in paths:
        value: Any = body
        for step in path:
            value = if_object(value).get(step)
        if isinstance(value, str) and value:
            return check_name(value, ".".join(path))
    return ""


def check_name(name: str, where: str) -> str:
    """Returns the name of a thread or user. Raises `InvalidRequestError` if it is too long or
    unprintable."""
    if len(name) > _LONGEST or not name.isprintable():
        raise InvalidRequestError(
            f"{where} is longer than {_LONGEST} characters, or holds some that cannot be printed; give a shorter one"
        )
    return name
