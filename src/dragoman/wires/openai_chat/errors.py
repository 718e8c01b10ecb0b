"""Errors of Chat Completions ⇄ our exceptions: one class for each kind of fault, whatever shape a vendor gives it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

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
from dragoman.faults import Manner, Told, fault, load
from dragoman.shapes import as_text, if_object, if_objects, if_text

__all__ = ["dump_error", "load_error", "load_error_object"]

_MANNER = Manner(statuses={498: OverloadedError})  # Groq's flex tier has no room
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
    return load(status, headers, body, _told, _MANNER)


def load_error_object(error: Any, around: Mapping[str, Any]) -> DragomanError:
    """An error inside a response whose status told of none. `around`: the object that holds it."""
    return fault(_told({**around, "error": error}), body=msgspec.json.encode(around), manner=_MANNER)


def dump_error(error: DragomanError) -> tuple[int, dict[str, Any]]:
    """An exception → status and body."""
    _, status, kind, code = next(line for line in _DUMPED if isinstance(error, line[0]))
    if error.status is not None and error.status >= 400:
        status = error.status
    return status, {"error": {"message": error.message, "type": kind, "param": None, "code": code}}


def _told(payload: Any) -> Told:
    """What a vendor says, in any of their shapes; a gateway's with what stands behind it."""
    if isinstance(payload, str):
        return Told(words=payload)
    outer = next(iter(if_objects(payload)), if_object(payload))
    error = outer.get("error") or outer
    fields = if_object(error)
    id_ = if_text(outer.get("request_id")) or if_text(outer.get("id")) or None
    if not fields:
        return Told(words=as_text(error or None), codes=as_text(outer.get("code")), request_id=id_)
    words = as_text(fields.get("message") or fields.get("detail") or fields.get("error"))
    metadata = if_object(fields.get("metadata"))
    if upstream := if_text(metadata.get("raw")):
        words = f"{words}: {upstream[:500]}"
    codes = (fields.get("code"), fields.get("type"), fields.get("innererror"), metadata.get("reasons"))
    told = (as_text(fields.get(name)) for name in ("status_code", "status", "code"))
    return Told(
        words=words,
        codes=" ".join(map(as_text, filter(None, codes))),
        status=next((int(code) for code in told if re.fullmatch("[45][0-9][0-9]", code)), None),
        request_id=id_,
        headers={name.lower(): as_text(value) for name, value in if_object(metadata.get("headers")).items()},
    )
