"""Errors of the Mistral API ⇄ our exceptions: one class for each kind of fault, in each of the API's shapes.

`{"object": "error", "message", "type", "param", "code"}` comes from the models, `{"detail": …}` from the checks before
them (a text, or the fields that are wrong), `{"message", "request_id"}` from the gateway.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman import json_bytes
from dragoman.codec.error_rules import ErrorRules, error_from, error_info, load, patterns
from dragoman.errors import (
    AuthenticationError,
    ContentRefusedError,
    ContextLengthError,
    DecodeError,
    DragomanError,
    HistoryError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitError,
)

__all__ = ["dump_error", "load_error", "load_error_object"]

_RULES = ErrorRules(words=patterns((RateLimitError, r"tier.?capacity|capacity.?exceeded")))
"""For want of capacity: the tier's limit is the caller's."""
_DUMPED: tuple[tuple[type[DragomanError], int, str, str | None], ...] = (
    (AuthenticationError, 401, "unauthorized", "1000"),
    (PermissionDeniedError, 403, "forbidden", None),
    (ModelNotFoundError, 400, "invalid_model", "1500"),
    (ContextLengthError, 400, "context_length_exceeded", "3051"),
    (InvalidRequestError, 400, "invalid_request_invalid_args", "3051"),
    (HistoryError, 400, "invalid_request_message_order", "3230"),
    (ContentRefusedError, 403, "content_policy", None),
    (RateLimitError, 429, "rate_limited", "1300"),
    (OverloadedError, 503, "overloaded", None),
    (ProviderTimeoutError, 504, "timeout", None),
    (ProviderError, 502, "internal_server_error", None),
    (ProviderConnectionError, 502, "internal_server_error", None),
    (DecodeError, 502, "internal_server_error", None),
    (DragomanError, 500, "internal_server_error", None),
)


def load_error(status: int, headers: Mapping[str, str], body: bytes) -> DragomanError:
    """A response with an error's status → the exception that says it. Never raises, whatever the body is."""
    return load(status, headers, body, rules=_RULES)


def load_error_object(chunk: Mapping[str, Any]) -> DragomanError:
    """An error inside a response whose status told of none."""
    return error_from(error_info(chunk), body=json_bytes.encode(chunk), rules=_RULES)


def dump_error(error: DragomanError) -> tuple[int, dict[str, Any]]:
    """An exception → status and body."""
    _, status, kind, code = next(line for line in _DUMPED if isinstance(error, line[0]))
    if error.status is not None and error.status >= 400:
        status = error.status
    return status, {
        "object": "error",
        "message": error.message,
        "type": kind,
        "param": None,
        "code": code,
        "raw_status_code": status,
    }
