"""Reads errors `{"id": …, "message": …}` as exceptions and writes them. The status and the words
tell the kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman import errors
from dragoman.codec.error_rules import (
    ErrorInfo,
    ErrorReader,
    ErrorRules,
    compile_patterns,
    read_error_info,
)
from dragoman.codec.json_values import if_object, if_text
from dragoman.codec.serving import ErrorResponse, error_response, error_status
from dragoman.errors import DragomanError

__all__ = ["dump_error", "error_of", "load_error"]

_RULES = ErrorRules(
    patterns=compile_patterns(
        (errors.ProviderTimeoutError, r"^TIMEOUT\b"), (errors.ContentRefusedError, r"\bsafety\b")
    ),
    statuses={498: errors.ContentRefusedError},
)
_WORDS: Mapping[type[DragomanError], str] = {
    errors.ContextLengthError: "too many tokens",
    errors.AuthenticationError: "invalid api token",
    errors.ModelNotFoundError: "model not found",
    errors.ContentRefusedError: "blocked output",
    errors.RateLimitError: "too many requests",
    errors.OverloadedError: "overloaded",
}
"""Class → the words by which clients recognise the kind inside a stream."""


def dump_error(error: DragomanError) -> ErrorResponse:
    """Returns Cohere's error answer for an exception: status, headers and body."""
    body = {} if error.request_id is None else {"id": error.request_id}
    body["message"] = _READER.dump_words(error, _WORDS)
    return error_response(error, error_status(error), body)


def _info(payload: Any) -> ErrorInfo:
    """Reads the JSON of an error. The id of the request stands beside its message."""
    request_id = if_text(if_object(payload).get("id")) or None
    return msgspec.structs.replace(read_error_info(payload), request_id=request_id)


_READER = ErrorReader(_info, _RULES)
load_error, error_of = _READER.load_error, _READER.load_inner_error
