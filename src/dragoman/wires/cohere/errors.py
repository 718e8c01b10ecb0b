"""Errors `{"id": …, "message": …}` ⇄ our exceptions. The kind is told by the status and by the words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.errors import (
    AuthenticationError,
    ContentRefusedError,
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
from dragoman.shapes import if_object, if_text

__all__ = ["dump_error", "error_of", "load_error"]

_BY_STATUS: Mapping[int, type[ProviderError]] = {
    401: AuthenticationError,
    402: PermissionDeniedError,
    403: PermissionDeniedError,
    408: ProviderTimeoutError,
    429: RateLimitError,
    498: ContentRefusedError,
    503: OverloadedError,
    504: ProviderTimeoutError,
    529: OverloadedError,
}
"""A status that says it all."""
_BY_WORDS: tuple[tuple[type[ProviderError], re.Pattern[str]], ...] = tuple(
    (kind, re.compile(words, re.IGNORECASE))
    for kind, words in (
        (ContextLengthError, r"too.many.tokens|context (length|window)|maximum context"),
        (ModelNotFoundError, r"model .{0,200}(not found|was removed)"),
        (ContentRefusedError, r"blocked (input|output|prompt)|safety|usage guidelines"),
        (RateLimitError, r"rate limit|too many requests"),
        (AuthenticationError, r"(invalid|incorrect) api (key|token)"),
        (OverloadedError, r"overloaded|at capacity"),
        (ProviderTimeoutError, r"^TIMEOUT "),
    )
)
"""What the words say of the kind; the first that fits."""
_ADVICE: Mapping[type[ProviderError], str] = {
    AuthenticationError: "Check the API key.",
    PermissionDeniedError: "Check what the key may do, and the account's billing.",
    ModelNotFoundError: "Check the model's name.",
    ContextLengthError: "Shorten the conversation, or take a model with a larger context.",
    ContentRefusedError: "Change the request: the provider's policy refuses it.",
    InvalidRequestError: "Change the request.",
    RateLimitError: "Wait, then send it again.",
    OverloadedError: "Send it again later.",
    ProviderTimeoutError: "Send it again.",
    ProviderError: "The fault is the provider's; send it again later.",
}
_SENT: tuple[tuple[type[DragomanError], int, str], ...] = (
    (ContextLengthError, 400, "too many tokens"),
    (InvalidRequestError, 400, ""),
    (HistoryError, 400, ""),
    (AuthenticationError, 401, "invalid api token"),
    (PermissionDeniedError, 403, ""),
    (ModelNotFoundError, 404, "model not found"),
    (ContentRefusedError, 400, "blocked output"),
    (RateLimitError, 429, "too many requests"),
    (OverloadedError, 503, "overloaded"),
    (ProviderTimeoutError, 504, ""),
    (ProviderConnectionError, 502, ""),
    (DragomanError, 500, ""),
)
"""Class → status, and the words by which the kind is known inside a stream."""
_REQUEST_IDS = ("x-request-id", "x-debug-trace-id")
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
    return error.at(request_id=next((lower[name] for name in _REQUEST_IDS if lower.get(name)), None))


def error_of(payload: Any, *, status: int | None = None, body: bytes | None = None) -> DragomanError:
    """An error's payload, as a body or inside a stream → the exception that says it."""
    fields = if_object(payload)
    said = fields.get("message") or fields.get("error") or fields.get("data") or ("" if fields else payload)
    said = if_object(said).get("message") or said
    words = said if isinstance(said, str) else msgspec.json.encode(said).decode() if said else ""
    kind = _BY_STATUS.get(status or 0)
    if kind is None:
        told = f"{fields.get('error_type') or ''} {words}"
        kind = next((kind for kind, pattern in _BY_WORDS if pattern.search(told)), None)
    if kind is None:
        kind = InvalidRequestError if status and 400 <= status < 500 else ProviderError
    words = words or f"the provider answered {f'HTTP {status}' if status else 'an error'} without a word"
    message = f"{words.rstrip('.')}. {_ADVICE[kind]}"
    return kind(message, status=status, request_id=if_text(fields.get("id")) or None, body=body)


def dump_error(error: DragomanError) -> tuple[int, dict[str, Any]]:
    """An exception → status and body."""
    status, words = next(row[1:] for row in _SENT if isinstance(error, row[0]))
    known = not words or any(kind is type(error) and pattern.search(error.message) for kind, pattern in _BY_WORDS)
    identified = {} if error.request_id is None else {"id": error.request_id}
    return status, {**identified, "message": error.message if known else f"{words}: {error.message}"}
