"""Errors: an error's response ↔ the exception that says it. The kind follows from `error.type`, the
words and the status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman import errors
from dragoman.codec.error_rules import ErrorInfo, ErrorReader, read_error_info
from dragoman.codec.json_values import as_text, if_object
from dragoman.codec.serving import (
    ErrorResponse,
    add_token_limit,
    error_response,
    error_status,
    look_up_class,
)
from dragoman.errors import DragomanError
from dragoman.json_bytes import Json

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
_SENT = {status: kind for kind, status in _TYPES.items()}
_OWN_STATUSES: Mapping[type[DragomanError], int] = {errors.OverloadedError: 529}
_WORDS: Mapping[type[DragomanError], str] = {
    errors.ContextLengthError: "prompt is too long",
    errors.ContentRefusedError: "blocked by content filtering policy",
    errors.ModelNotFoundError: "model",
}
"""Class → the words by which the official clients know the kind."""


def dump_error(error: DragomanError) -> ErrorResponse:
    """Converts an exception to an error answer of the Anthropic API: status, headers and body."""
    status, class_word = error_status(error, _OWN_STATUSES), look_up_class(_WORDS, error, "")
    # Clients know some errors by their words alone, since the API has no type for them.
    if class_word in error.message.lower():
        message = error.message
    else:
        message = f"{class_word}: {error.message}"
    body: Json = {
        "type": "error",
        "error": {"type": _SENT.get(status, "api_error"), "message": message},
    }
    if error.request_id is not None:
        body["request_id"] = error.request_id
    reset = getattr(error, "resets_at", None)
    response = error_response(error, status, body)
    return add_token_limit(response, error, "anthropic-ratelimit-tokens-{}", reset)


def _info(payload: Any) -> ErrorInfo:
    outer = if_object(payload)
    error_type = if_object(outer.get("error", outer)).get("type")
    return msgspec.structs.replace(read_error_info(payload), means=_TYPES.get(as_text(error_type)))


_READER = ErrorReader(_info)
load_error, error_of = _READER.load_error, _READER.load_inner_error
