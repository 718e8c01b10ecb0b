"""Errors of the Responses API ↔ our exceptions: one class for each kind of fault, in whatever shape a vendor tells it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, cast

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

__all__ = ["code_of", "dump_error", "error_of", "load_error"]

_BY_STATUS: Mapping[int, type[ProviderError]] = {
    401: AuthenticationError,
    402: PermissionDeniedError,
    408: ProviderTimeoutError,
    429: RateLimitError,
    503: OverloadedError,
    504: ProviderTimeoutError,
    529: OverloadedError,
}
"""A status that says it all."""
_BY_WORDS: tuple[tuple[type[ProviderError], re.Pattern[str]], ...] = tuple(
    (kind, re.compile(words, re.IGNORECASE))
    for kind, words in (
        (InvalidRequestError, r"previous.?response|item with id"),
        (RateLimitError, r"rate.?limit|too many requests|insufficient.?quota|tokens per min"),
        (ContextLengthError, r"context.?(length|size|window)|too many (prompt )?tokens|prompt.{0,20}too long"),
        (
            ContentRefusedError,
            r"content.?(filter|policy|management)|(bio|violation|usage).?polic|policy.?violation|moderation",
        ),
        (ModelNotFoundError, r"(model|deployment).?not.?found|\bmodel\b.{0,200}(does not exist|not a valid)"),
        (AuthenticationError, r"(invalid|incorrect).?(api.?)?key|authentication"),
        (PermissionDeniedError, r"\bforbidden\b|permission.?denied"),
        (OverloadedError, r"overload|(no|at|out of) capacity"),
        (ProviderTimeoutError, r"timeout|timed out"),
    )
)
"""What an error says of itself, in its code, type or text; the first that fits."""
_BY_WEAK_STATUS: Mapping[int, type[ProviderError]] = {
    400: InvalidRequestError,
    403: PermissionDeniedError,
    404: ModelNotFoundError,
    413: InvalidRequestError,
    422: InvalidRequestError,
}
_INVALID = re.compile(r"invalid|unsupported|image_|empty_image", re.IGNORECASE)
_ADVICE: Mapping[type[ProviderError], str] = {
    AuthenticationError: "Check the API key.",
    PermissionDeniedError: "Check what the key may do, and the account's credit.",
    ModelNotFoundError: "Check the model's name and that the key may use it.",
    ContextLengthError: "Shorten the conversation, or take a model with a larger context.",
    ContentRefusedError: "Change what is asked.",
    RateLimitError: "Wait, then try again, or ask for a higher limit.",
    OverloadedError: "Try again later, or take another model.",
    ProviderTimeoutError: "Try again.",
    InvalidRequestError: "Change the request.",
    ProviderError: "This is a fault of the provider's own; try again.",
}
_DUMPED: tuple[tuple[type[DragomanError], int, str, str | None], ...] = (
    (AuthenticationError, 401, "invalid_request_error", "invalid_api_key"),
    (PermissionDeniedError, 403, "invalid_request_error", "forbidden"),
    (ModelNotFoundError, 404, "invalid_request_error", "model_not_found"),
    (ContextLengthError, 400, "invalid_request_error", "context_length_exceeded"),
    (ContentRefusedError, 400, "invalid_request_error", "content_policy_violation"),
    (InvalidRequestError, 400, "invalid_request_error", "invalid_prompt"),
    (HistoryError, 400, "invalid_request_error", "invalid_prompt"),
    (RateLimitError, 429, "rate_limit_error", "rate_limit_exceeded"),
    (OverloadedError, 503, "server_error", "overloaded"),
    (ProviderTimeoutError, 504, "server_error", "timeout"),
    (ProviderConnectionError, 502, "server_error", "server_error"),
    (DragomanError, 500, "server_error", "server_error"),
)
"""Class → status, type, and the code by which clients know the kind."""
_REQUEST_IDS = ("x-request-id", "request-id", "apim-request-id", "x-ds-trace-id", "x-generation-id", "cf-ray")
_SHOWN = 300  # characters of a body that is no JSON


def load_error(status: int, headers: Mapping[str, str], body: bytes) -> DragomanError:
    """An error's response → the exception that says it. Odd bodies (HTML, empty, a string) are read as far as they go."""
    lower = {name.lower(): value for name, value in headers.items()}
    try:
        payload: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = re.sub(r"<[^>]*>", " ", body[:4000].decode(errors="replace"))
        payload = re.sub(r"\s+", " ", text).strip()[:_SHOWN]
    error = error_of(payload, status=status, body=body)
    if isinstance(error, RateLimitError):
        error.retry_after = _retry_after(lower)
    return error.at(request_id=next((lower[name] for name in _REQUEST_IDS if lower.get(name)), None))


def error_of(payload: Any, *, status: int = 0, body: bytes | None = None) -> DragomanError:
    """What a vendor says of an error, as a body, as an event or inside a response → the exception that says it."""
    outer = cast("dict[str, Any]", payload) if isinstance(payload, dict) else {"message": payload}
    inner: Any = outer.get("error") or outer
    told = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {"message": inner, "code": outer.get("code")}
    words: Any = told.get("message") or told.get("detail") or ""
    words = words if isinstance(words, str) else msgspec.json.encode(words).decode()
    said = f"{told.get('code')} {told.get('type')} {words}"[:4000]
    kind = _BY_STATUS.get(status) or next((kind for kind, pattern in _BY_WORDS if pattern.search(said)), None)
    if kind is None:
        kind = _BY_WEAK_STATUS.get(status) or (InvalidRequestError if 400 <= status < 500 else None)
    if kind is None:
        kind = InvalidRequestError if not status and _INVALID.search(said) else ProviderError
    words = words or (f"the provider answered HTTP {status} without a word" if status else "the provider failed")
    return kind(f"{words.rstrip('.')}. {_ADVICE[kind]}", status=status or None, body=body)


def code_of(error: DragomanError) -> str | None:
    """The code by which this format's clients know the kind of an error."""
    return next(code for kind, _, _, code in _DUMPED if isinstance(error, kind))


def dump_error(error: DragomanError) -> tuple[int, dict[str, Any]]:
    """An exception → status and body."""
    _, status, type_, code = next(line for line in _DUMPED if isinstance(error, line[0]))
    if error.status is not None and error.status >= 400:
        status = error.status
    return status, {"error": {"message": error.message, "type": type_, "param": None, "code": code}}


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait. A date counts from the answer's own `Date`: there is no clock here."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        if re.fullmatch(r"\d{1,9}(\.\d+)?", headers.get(name, "").strip()):
            return float(headers[name]) * scale
    try:
        then, now = parsedate_to_datetime(headers["retry-after"]), parsedate_to_datetime(headers["date"])
        return max(0.0, (then - now).total_seconds())
    except (KeyError, ValueError, TypeError):
        return None
