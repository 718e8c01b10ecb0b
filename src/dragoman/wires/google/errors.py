"""Errors: an error's response ↔ the exception that says it. The kind is told by the status, the
reason and the words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman import errors
from dragoman.codec.error_rules import ErrorInfo, ErrorReader, read_error_info
from dragoman.codec.json_values import as_text, if_list, if_object, if_objects
from dragoman.codec.serving import (
    ErrorResponse,
    error_response,
    error_status,
    format_seconds,
    look_up_class,
)
from dragoman.errors import DragomanError
from dragoman.json_bytes import Json
from dragoman.retry_after import parse_duration

__all__ = ["dump_error", "error_of", "load_error"]

_STATUSES: Mapping[str, int] = {
    "INVALID_ARGUMENT": 400,
    "OUT_OF_RANGE": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    # Billing, region.
    "FAILED_PRECONDITION": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
"""`error.status` → the HTTP status that says what it means."""
_SENT = {status: name for name, status in reversed(_STATUSES.items())}
_WORDS: Mapping[type[DragomanError], str] = {
    errors.ContextLengthError: "The input token count exceeds the maximum number of tokens allowed",
    errors.ContentRefusedError: "Blocked by safety settings",
    errors.ModelNotFoundError: "model",
}
"""Class → the words by which clients know the kind."""
_TYPE = "type.googleapis.com/google.rpc."


def dump_error(error: DragomanError) -> ErrorResponse:
    """Converts an exception to an error answer of the Gemini API: status, headers and body."""
    status, class_word = error_status(error), look_up_class(_WORDS, error, "")
    if class_word.lower() in error.message.lower():
        message = error.message
    else:
        message = f"{class_word}: {error.message}"
    details: list[Json] = []
    if (
        isinstance(error, errors.RateLimitError | errors.OverloadedError)
        and error.retry_after is not None
    ):
        delay = f"{format_seconds(error.retry_after)}s"
        details.append({"@type": f"{_TYPE}RetryInfo", "retryDelay": delay})
    if error.request_id is not None:
        details.append({"@type": f"{_TYPE}RequestInfo", "requestId": error.request_id})
    if error.field is not None:
        violation = {"field": error.field, "description": error.message}
        details.append({"@type": f"{_TYPE}BadRequest", "fieldViolations": [violation]})
    body: Json = {
        "code": status,
        "message": message,
        "status": _SENT.get(status, "UNKNOWN"),
    }
    return error_response(
        error, status, {"error": {**body, "details": details} if details else body}
    )


def _find_detail(details: list[Json], detail_type: str, key: str) -> str | None:
    """Returns a text in the detail of that type of a Google API error."""
    values = (
        detail.get(key)
        for detail in details
        if str(detail.get("@type")).endswith(f".{detail_type}")
    )
    return next((value for value in values if isinstance(value, str)), None)


def _info(payload: Any) -> ErrorInfo:
    """Returns the `error` object of a Gemini error body, which a stream without `alt=sse` sends in
    an array."""
    payload = next(iter(if_list(payload)), payload)
    inner = if_object(if_object(payload).get("error"))
    details = if_objects(inner.get("details"))
    return msgspec.structs.replace(
        read_error_info(payload),
        means=_STATUSES.get(as_text(inner.get("status"))),
        request_id=_find_detail(details, "RequestInfo", "requestId"),
        retry_after=parse_duration(_find_detail(details, "RetryInfo", "retryDelay") or ""),
    )


_READER = ErrorReader(_info)
load_error, error_of = _READER.load_error, _READER.load_inner_error
