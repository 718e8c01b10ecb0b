"""Errors: an error's response ↔ the exception that says it. The kind follows from `error.type`, the words and the status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman import errors
from dragoman.codec.error_rules import ErrorInfo, ErrorReader, error_info
from dragoman.codec.json_values import as_text, if_object
from dragoman.codec.serving import ErrorResponse, error_response
from dragoman.errors import DragomanError

__all__ = ["dump_error", "error_of", "load_error"]

_TYPES: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""`error.type` → the status that it stands for."""
_SENT: tuple[tuple[type[DragomanError], int, str, str], ...] = (
    (errors.ContextLengthError, 400, "invalid_request_error", "prompt is too long"),
    (errors.ContentRefusedError, 400, "invalid_request_error", "blocked by content filtering policy"),
    (errors.InvalidRequestError, 400, "invalid_request_error", ""),
    (errors.HistoryError, 400, "invalid_request_error", ""),
    (errors.AuthenticationError, 401, "authentication_error", ""),
    (errors.PermissionDeniedError, 403, "permission_error", ""),
    (errors.ModelNotFoundError, 404, "not_found_error", "model"),
    (errors.RateLimitError, 429, "rate_limit_error", ""),
    (errors.OverloadedError, 529, "overloaded_error", ""),
    (errors.ProviderTimeoutError, 504, "timeout_error", ""),
    (errors.ProviderConnectionError, 502, "api_error", ""),
    (DragomanError, 500, "api_error", ""),
)
"""Class → status, type, and the words by which the official clients know the kind."""


def dump_error(error: DragomanError) -> ErrorResponse:
    """An exception → status, headers and body."""
    status, kind, words = next(row[1:] for row in _SENT if isinstance(error, row[0]))
    message = error.message if words in error.message.lower() else f"{words}: {error.message}"
    body: dict[str, Any] = {"type": "error", "error": {"type": kind, "message": message}}
    if error.request_id is not None:
        body["request_id"] = error.request_id
    return error_response(error, status, body)


def _info(payload: Any) -> ErrorInfo:
    outer = if_object(payload)
    kind = if_object(outer.get("error", outer)).get("type")
    return msgspec.structs.replace(error_info(payload), means=_TYPES.get(as_text(kind)))


_READER = ErrorReader(_info)
load_error, error_of = _READER.load_error, _READER.error_of
