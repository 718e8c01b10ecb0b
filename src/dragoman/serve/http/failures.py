"""Why calls fail that are no fault of their clients: the cause, in the log of whoever runs the server. Clients read neutral words."""

from __future__ import annotations

import re

from dragoman.errors import KEYS, DragomanError
from dragoman.logs import logger
from dragoman.serve.http.observed import Observed

__all__ = ["log_failure"]

_LOG = logger("serve")
_LEAST = 500
"""Statuses from here on are the server's fault."""
_MOST_CHARACTERS = 2000
_SECRET = re.compile(rf"{KEYS}|(?<=://)[^/@\s]+@")  # or a password in an address
_MOST_CAUSES = 4


def log_failure(call: Observed, error: BaseException, status: int) -> None:
    """Logs why a call ended with a status of 500 or more: class and message of the error and of its causes, the provider and
    the call's id. Keys in messages are left out. An error that is not dragoman's own comes with its traceback."""
    if status < _LEAST:
        return
    traceback = None if isinstance(error, DragomanError) else error
    _LOG.error(
        "%s %s failed with %d%s, call %s: %s",
        call.method,
        call.path,
        status,
        f" for {call.model}" if call.model else "",
        call.id,
        _describe(error),
        exc_info=traceback,
    )


def _describe(error: BaseException) -> str:
    descriptions: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(descriptions) < _MOST_CAUSES:
        provider = getattr(cause, "provider", None)
        origin = f" from {provider}" if provider else ""
        message = cause.message if isinstance(cause, DragomanError) else str(cause)
        descriptions.append(f"{type(cause).__name__}{origin}: {_plain(message)}")
        cause = cause.__cause__
    return ", caused by ".join(descriptions)


def _plain(text: str) -> str:
    """The text on one line, without keys."""
    text = _SECRET.sub("…", text[:_MOST_CHARACTERS])
    return "".join([character if character.isprintable() else " " for character in text])
