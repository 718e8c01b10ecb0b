"""Errors `{"error": "…"}`, as a body or as a line of a stream ⇄ our exceptions. The kind is told by the status and the words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.errors import (
    AuthenticationError,
    ContextLengthError,
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
from dragoman.retry_after import retry_after
from dragoman.shapes import if_object

__all__ = ["dump_error", "error_of", "load_error"]

_BY_WORDS: tuple[tuple[type[ProviderError], re.Pattern[str]], ...] = tuple(
    (kind, re.compile(words, re.IGNORECASE))
    for kind, words in (
        (ContextLengthError, r"context (length|window|size)|prompt too long|too many tokens"),
        (ModelNotFoundError, r"model .{0,200}not found|try pulling it"),
        (InvalidRequestError, r"page not found"),
        (InvalidRequestError, r"does not support|is not supported|invalid (format|json|duration|option)"),
        (OverloadedError, r"server busy|maximum pending|overloaded"),
        (RateLimitError, r"rate limit|too many requests|usage limit"),
        (AuthenticationError, r"unauthorized"),
    )
)
"""What the words say of the kind; the first that fits."""
_BY_STATUS: Mapping[int, type[ProviderError]] = {
    401: AuthenticationError,
    402: PermissionDeniedError,
    403: PermissionDeniedError,
    404: ModelNotFoundError,
    408: ProviderTimeoutError,
    429: RateLimitError,
    503: OverloadedError,
    504: ProviderTimeoutError,
    529: OverloadedError,
}
_ADVICE: Mapping[type[ProviderError], str] = {
    AuthenticationError: "Check the API key.",
    PermissionDeniedError: "Check what the account may do.",
    ModelNotFoundError: "Check the model's name, or pull it: ollama pull NAME.",
    ContextLengthError: "Shorten the conversation, or raise num_ctx.",
    InvalidRequestError: "Change the request.",
    RateLimitError: "Wait, then send it again.",
    OverloadedError: "Send it again later.",
    ProviderTimeoutError: "Send it again.",
    ProviderError: "The fault is the server's; its log may tell more.",
}
_SENT: tuple[tuple[type[DragomanError], int, str], ...] = (
    (ContextLengthError, 400, "prompt too long"),
    (InvalidRequestError, 400, ""),
    (HistoryError, 400, ""),
    (AuthenticationError, 401, "unauthorized"),
    (PermissionDeniedError, 403, ""),
    (ModelNotFoundError, 404, "model not found"),
    (RateLimitError, 429, "too many requests"),
    (OverloadedError, 503, "server busy"),
    (ProviderTimeoutError, 504, ""),
    (ProviderConnectionError, 502, ""),
    (DragomanError, 500, ""),
)
"""Class → status, and the words by which the kind is known inside a stream."""
_SHOWN = 300  # characters of a body that is no JSON


def load_error(status: int, headers: Mapping[str, str], body: bytes) -> DragomanError:
    """An error's response → the exception that says it. Odd bodies (HTML, empty, a string) are read as far as they go."""
    lower = {name.lower(): value for name, value in headers.items()}
    try:
        payload: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        payload = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body.decode(errors="replace"))).strip()[:_SHOWN]
    error = error_of(payload, status=status, body=body)
    if isinstance(error, RateLimitError):
        error.retry_after = retry_after(lower)
    return error.at(request_id=lower.get("x-request-id"))


def error_of(payload: Any, *, status: int | None = None, body: bytes | None = None) -> DragomanError:
    """An error's payload → the exception. `status`: of the response; one inside the payload is read where there is none."""
    outer = if_object(payload) or {"error": payload}
    inner = outer.get("error", outer)
    said = if_object(inner).get("message") or inner
    words = said if isinstance(said, str) else msgspec.json.encode(said).decode() if said else ""
    told = next(
        (outer[key] for key in ("status_code", "status", "StatusCode") if isinstance(outer.get(key), int)), None
    )
    status = status or told
    kind = next((kind for kind, pattern in _BY_WORDS if pattern.search(words)), None)
    if kind is None or status in (401, 403, 429):
        by_status = InvalidRequestError if status and 400 <= status < 500 else ProviderError
        kind = _BY_STATUS.get(status or 0, by_status)
    words = words or f"the server answered {f'HTTP {status}' if status else 'an error'} without a word"
    return kind(f"{words.rstrip('.')}. {_ADVICE[kind]}", status=status, body=body)


def dump_error(error: DragomanError) -> tuple[int, dict[str, Any]]:
    """An exception → status and body."""
    status, words = next(row[1:] for row in _SENT if isinstance(error, row[0]))
    known = not words or any(kind is type(error) and pattern.search(error.message) for kind, pattern in _BY_WORDS)
    return status, {"error": error.message if known else f"{words}: {error.message}"}
