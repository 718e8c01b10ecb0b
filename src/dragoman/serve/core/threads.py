"""Whose a conversation is, and which: as the body and the headers of a request say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from dragoman.codec.json_values import if_object
from dragoman.errors import InvalidRequestError
from dragoman.serve.core.call import Call
from dragoman.serve.http.callers import ANONYMOUS

__all__ = [
    "THREAD",
    "belongs",
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
    """The user whom the client calls for, as the body says it; empty: it says nothing.

    Raises:
        InvalidRequestError: the name is too long.
    """
    return _first(call.body, _USERS)


def resource_of(call: Call) -> str:
    """Whose the call's conversations are: the caller's, apart for each of its users."""
    user = user_of(call)
    return quote(call.caller.id, safe="") + (f"/{quote(user, safe='')}" if user else "")


def thread_name(call: Call, conversation: str | None) -> str | None:
    """What the client calls its conversation; `None`: it does not say which it is. `conversation`: as its wire says it.

    Raises:
        InvalidRequestError: the name is too long.
    """
    name = conversation or call.headers.get(THREAD) or _first(call.body, _THREADS)
    return _short(name, "the conversation's id") if name else None


def thread_id(resource: str, name: str) -> str:
    """The id of the conversation that somebody calls so. Nobody else's name comes to the same id."""
    return name if resource == ANONYMOUS.id else f"{resource}/{quote(name, safe='')}"


def name_of(resource: str, thread: str) -> str:
    """What somebody calls the conversation of that id: the inverse of `thread_id`."""
    if resource == ANONYMOUS.id:
        return thread
    return unquote(thread.removeprefix(f"{resource}/"))


def scope_of(resource: str, thread: str | None) -> str:
    """Within what equal words are the same conversation. `thread`: the one that the client names."""
    return f"{resource}\n{thread or ''}"


def belongs(thread: str, resource: str) -> bool:
    """Whether a conversation is this resource's, as its id says."""
    if resource == ANONYMOUS.id:
        return not thread.startswith(f"{resource}/")
    return thread.startswith(f"{resource}/") and "/" not in thread[len(resource) + 1 :]


def _first(body: Mapping[str, Any], places: Sequence[tuple[str, ...]]) -> str:
    for place in places:
        value: Any = body
        for step in place:
            value = if_object(value).get(step)
        if isinstance(value, str) and value:
            return _short(value, ".".join(place))
    return ""


def _short(name: str, where: str) -> str:
    if len(name) > _LONGEST or not name.isprintable():
        raise InvalidRequestError(
            f"{where} is longer than {_LONGEST} characters, or holds some that cannot be printed; give a shorter one"
        )
    return name
