"""Errors of Chat Completions ⇄ our exceptions: one class for each kind of fault, whatever shape a vendor gives it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman import json_bytes
from dragoman.codec.error_rules import ErrorInfo, ErrorRules, error_from, error_info, load, vendor_status
from dragoman.codec.json_values import if_object, if_objects, if_text
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

__all__ = ["dump_error", "load_error", "load_error_object", "vendor_error"]

_RULES = ErrorRules(statuses={498: OverloadedError})  # Groq's flex tier has no room
_DUMPED: tuple[tuple[type[DragomanError], int, str, str | None], ...] = (
    (AuthenticationError, 401, "invalid_request_error", "invalid_api_key"),
    (PermissionDeniedError, 403, "invalid_request_error", "forbidden"),
    (ModelNotFoundError, 404, "invalid_request_error", "model_not_found"),
    (ContextLengthError, 400, "invalid_request_error", "context_length_exceeded"),
    (InvalidRequestError, 400, "invalid_request_error", None),
    (HistoryError, 400, "invalid_request_error", None),
    (ContentRefusedError, 400, "invalid_request_error", "content_filter"),
    (RateLimitError, 429, "rate_limit_error", "rate_limit_exceeded"),
    (OverloadedError, 503, "server_error", "overloaded"),
    (ProviderTimeoutError, 504, "server_error", "timeout"),
    (ProviderError, 502, "server_error", None),
    (ProviderConnectionError, 502, "server_error", None),
    (DecodeError, 502, "server_error", None),
    (DragomanError, 500, "server_error", None),
)


def load_error(status: int, headers: Mapping[str, str], body: bytes) -> DragomanError:
    """A response with an error's status → the exception that says it. Never raises, whatever the body is."""
    return load(status, headers, body, _info, _RULES)


def load_error_object(error: Any, around: Mapping[str, Any]) -> DragomanError:
    """An error inside a response whose status told of none. `around`: the object that holds it."""
    return error_from(_info({**around, "error": error}), body=json_bytes.encode(around), rules=_RULES)


def vendor_error(chunk: Mapping[str, Any]) -> DragomanError | None:
    """An error that a vendor tells in a shape of its own, with a status of success; `None`: the chunk tells of none."""
    return error_from(_info(chunk), body=json_bytes.encode(chunk), rules=_RULES) if vendor_status(chunk) else None


def dump_error(error: DragomanError) -> tuple[int, dict[str, Any]]:
    """An exception → status and body."""
    _, status, kind, code = next(line for line in _DUMPED if isinstance(error, line[0]))
    if error.status is not None and error.status >= 400:
        status = error.status
    return status, {"error": {"message": error.message, "type": kind, "param": None, "code": code}}


def _info(payload: Any) -> ErrorInfo:
    info = error_info(payload)
    outer = next(iter(if_objects(payload)), if_object(payload))
    return msgspec.structs.replace(info, request_id=info.request_id or if_text(outer.get("id")) or None)
