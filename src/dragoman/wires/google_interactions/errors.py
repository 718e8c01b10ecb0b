"""Reads errors `{"error": {"code": …, "message": …}}` as exceptions and writes them. The code is
a word of the API's, or the status with which Google's other APIs say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from dragoman import errors
from dragoman.codec.error_rules import ErrorInfo, ErrorReader, read_error_info
from dragoman.codec.json_values import as_text, if_list, if_object
from dragoman.codec.serving import ErrorResponse, error_response, error_status, look_up_class
from dragoman.errors import DragomanError

__all__ = ["describe_error", "dump_error", "error_of", "load_error"]

_STATUSES: Mapping[str, int] = {
    "invalid_request": 400,
    "invalid_argument": 400,
    "failed_precondition": 400,
    "unauthenticated": 401,
    "permission_denied": 403,
    "not_found": 404,
    "rate_limit_exceeded": 429,
    "resource_exhausted": 429,
    "internal": 500,
    "api_error": 500,
    "unavailable": 503,
    "deadline_exceeded": 504,
}
"""Code of an error, in lower case → the HTTP status that says what it means."""
_CODES = {status: code for code, status in reversed(_STATUSES.items())}
_WORDS: Mapping[type[DragomanError], str] = {
    errors.ContextLengthError: "the input token count exceeds the maximum number of tokens allowed",
    errors.ContentRefusedError: "blocked by safety settings",
    errors.ModelNotFoundError: "model not found",
}
"""Class → the words by which clients know the kind."""


def describe_error(error: DragomanError) -> dict[str, str]:
    """Returns an error as the object `error` of the Interactions API."""
    words = look_up_class(_WORDS, error, "")
    message = error.message
    if words and words not in message.lower():
        message = f"{words}: {message}"
    return {"code": _CODES.get(error_status(error), "internal"), "message": message}


def dump_error(error: DragomanError) -> ErrorResponse:
    """Returns the error answer of the Interactions API for an exception: status, headers and
    body."""
    return error_response(error, error_status(error), {"error": describe_error(error)})


def _info(payload: Any) -> ErrorInfo:
    """Reads the JSON of an Interactions error. A failed interaction lists its errors."""
    payload = if_object(payload)
    if not payload.get("error") and (listed := if_list(payload.get("errors"))):
        payload = {"error": listed[0]}
    inner = if_object(payload.get("error"))
    # Google's other APIs have the word in `status`, and a number as the code.
    codes = (as_text(inner.get(name)).lower() for name in ("status", "code"))
    means = next((_STATUSES[code] for code in codes if code in _STATUSES), None)
    return replace(read_error_info(payload), means=means)


_READER = ErrorReader(_info)
load_error, error_of = _READER.load_error, _READER.load_inner_error
