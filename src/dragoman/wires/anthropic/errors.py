"""Errors: an error's response ↔ the exception that says it. The kind is told by `error.type`, the words and the status."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from dragoman.errors import (
    AuthenticationError,
    ContentRefusedError,
    ContextLengthError,
    DragomanError,
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

__all__ = ["dump_error", "error_of", "load_error"]

_TYPES: Mapping[str, type[ProviderError]] = {
    "authentication_error": AuthenticationError,
    "permission_error": PermissionDeniedError,
    "billing_error": PermissionDeniedError,
    "not_found_error": ModelNotFoundError,
    "invalid_request_error": InvalidRequestError,
    "request_too_large": InvalidRequestError,
    "rate_limit_error": RateLimitError,
    "overloaded_error": OverloadedError,
    "timeout_error": ProviderTimeoutError,
    "api_error": ProviderError,
}
_STATUSES: Mapping[int, type[ProviderError]] = {
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
_WORDS: tuple[tuple[type[ProviderError], re.Pattern[str], type[ProviderError]], ...] = (
    (
        InvalidRequestError,
        re.compile(r"prompt is too long|context (window|length|limit|size)", re.IGNORECASE),
        ContextLengthError,
    ),
    (InvalidRequestError, re.compile(r"content filter|usage polic|content polic", re.IGNORECASE), ContentRefusedError),
    (InvalidRequestError, re.compile(r"credit balance", re.IGNORECASE), PermissionDeniedError),
    (ProviderError, re.compile(r"content filter", re.IGNORECASE), ContentRefusedError),
    (ModelNotFoundError, re.compile(r"^(?!.*model)", re.IGNORECASE | re.DOTALL), InvalidRequestError),
)
"""Kind by type or status, the words that tell more, and what they make of it."""
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
_SENT: tuple[tuple[type[DragomanError], int, str, str], ...] = (
    (ContextLengthError, 400, "invalid_request_error", "prompt is too long"),
    (ContentRefusedError, 400, "invalid_request_error", "blocked by content filtering policy"),
    (InvalidRequestError, 400, "invalid_request_error", ""),
    (AuthenticationError, 401, "authentication_error", ""),
    (PermissionDeniedError, 403, "permission_error", ""),
    (ModelNotFoundError, 404, "not_found_error", "model"),
    (RateLimitError, 429, "rate_limit_error", ""),
    (OverloadedError, 529, "overloaded_error", ""),
    (ProviderTimeoutError, 504, "timeout_error", ""),
    (ProviderConnectionError, 502, "api_error", ""),
    (DragomanError, 500, "api_error", ""),
)
"""Class → status, type, and the words by which the official clients know the kind."""
_SHOWN = 300  # characters of a body that is no JSON


def load_error(status: int, headers: Mapping[str, str], body: bytes) -> DragomanError:
    """An error's response → the exception that says it. Odd bodies (HTML, empty, a string) are read as far as they go."""
    headers = {name.lower(): value for name, value in headers.items()}
    try:
        payload: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        payload = body.decode(errors="replace").strip()[:_SHOWN]
    return error_of(payload, status=status, headers=headers, body=body)


def error_of(
    payload: Any, *, status: int | None = None, headers: Mapping[str, str] = {}, body: bytes | None = None
) -> DragomanError:
    """An error's payload, as a body or as an event of a stream → the exception that says it."""
    outer = cast("dict[str, Any]", payload) if isinstance(payload, dict) else {"error": payload}
    inner: Any = outer.get("error", outer)
    inner = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {"message": inner}
    words = str(
        inner.get("message") or inner.get("detail") or f"the provider answered {status or 'an error'} without a word"
    )
    by_status = InvalidRequestError if status is not None and 400 <= status < 500 else ProviderError
    kind = _TYPES.get(str(inner.get("type"))) or _STATUSES.get(status or 0, by_status)
    kind = next((better for told, pattern, better in _WORDS if told is kind and pattern.search(words)), kind)
    request_id = headers.get("request-id") or outer.get("request_id")
    where: dict[str, Any] = {
        "status": status,
        "request_id": request_id if isinstance(request_id, str) else None,
        "body": body,
    }
    message = f"{words.rstrip('.')}. {_ADVICE[kind]}"
    if issubclass(kind, RateLimitError):
        return kind(message, retry_after=retry_after(headers), **where)
    return kind(message, **where)


def dump_error(error: DragomanError) -> tuple[int, dict[str, Any]]:
    """An exception → status and body."""
    status, kind, words = next(row[1:] for row in _SENT if isinstance(error, row[0]))
    message = error.message if words in error.message.lower() else f"{words}: {error.message}"
    body: dict[str, Any] = {"type": "error", "error": {"type": kind, "message": message}}
    if error.request_id is not None:
        body["request_id"] = error.request_id
    return status, body
