"""Errors: an error's response ↔ the exception that says it. The kind is told by the status, the reason and the words."""

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
from dragoman.wires.google.shapes import if_list, if_object, if_objects

__all__ = ["dump_error", "error_of", "load_error"]

_KINDS: Mapping[str | int, type[ProviderError]] = {
    "INVALID_ARGUMENT": InvalidRequestError,
    "FAILED_PRECONDITION": PermissionDeniedError,
    "OUT_OF_RANGE": InvalidRequestError,
    "UNAUTHENTICATED": AuthenticationError,
    "PERMISSION_DENIED": PermissionDeniedError,
    "NOT_FOUND": ModelNotFoundError,
    "RESOURCE_EXHAUSTED": RateLimitError,
    "UNAVAILABLE": OverloadedError,
    "DEADLINE_EXCEEDED": ProviderTimeoutError,
    "INTERNAL": ProviderError,
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
"""`error.status`, else the HTTP status → kind. Others from 400 to 499 are the request's fault, the rest the provider's."""
_WORDS: tuple[tuple[type[ProviderError], re.Pattern[str], type[ProviderError]], ...] = (
    (
        InvalidRequestError,
        re.compile(r"API.?key (not valid|expired|not found|invalid)", re.IGNORECASE),
        AuthenticationError,
    ),
    (
        InvalidRequestError,
        re.compile(r"token count .*exceeds|exceeds the maximum number of tokens", re.IGNORECASE),
        ContextLengthError,
    ),
    (
        InvalidRequestError,
        re.compile(r"responsible ai|safety (filter|setting|polic)|content polic|usage guideline", re.IGNORECASE),
        ContentRefusedError,
    ),
    (ModelNotFoundError, re.compile(r"^(?!.*model)", re.IGNORECASE | re.DOTALL), InvalidRequestError),
)
"""Kind by status, the words that tell more, and what they make of it."""
_ADVICE: Mapping[type[ProviderError], str] = {
    AuthenticationError: "Check the API key.",
    PermissionDeniedError: "Check what the key may do, and the project's billing and region.",
    ModelNotFoundError: "Check the model's name.",
    ContextLengthError: "Shorten the conversation, or take a model with a larger context.",
    ContentRefusedError: "Change the request: the provider's policy refuses it.",
    InvalidRequestError: "Change the request.",
    RateLimitError: "Wait, then send it again; or raise the quota.",
    OverloadedError: "Send it again later.",
    ProviderTimeoutError: "Send it again.",
    ProviderError: "The fault is the provider's; send it again later.",
}
_SENT: tuple[tuple[type[DragomanError], int, str, str], ...] = (
    (ContextLengthError, 400, "INVALID_ARGUMENT", "The input token count exceeds the maximum number of tokens allowed"),
    (ContentRefusedError, 400, "INVALID_ARGUMENT", "Blocked by safety settings"),
    (InvalidRequestError, 400, "INVALID_ARGUMENT", ""),
    (AuthenticationError, 401, "UNAUTHENTICATED", ""),
    (PermissionDeniedError, 403, "PERMISSION_DENIED", ""),
    (ModelNotFoundError, 404, "NOT_FOUND", "model"),
    (RateLimitError, 429, "RESOURCE_EXHAUSTED", ""),
    (OverloadedError, 503, "UNAVAILABLE", ""),
    (ProviderTimeoutError, 504, "DEADLINE_EXCEEDED", ""),
    (ProviderConnectionError, 502, "UNKNOWN", ""),
    (DragomanError, 500, "INTERNAL", ""),
)
"""Class → HTTP status, `error.status`, and the words by which clients know the kind."""
_TYPE = "type.googleapis.com/google.rpc."
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
    """An error's payload, as a body or as a chunk of a stream → the exception that says it. A stream that is no event
    stream sends it in an array."""
    payload = next(iter(if_list(payload)), payload)
    told: Any = if_object(payload).get("error", payload)
    inner = if_object(told) or {"message": told}
    code = inner.get("code")
    status = status if status is not None else code if isinstance(code, int) else None
    words = str(inner.get("message") or f"the provider answered {status or 'an error'} without a word")
    details = if_objects(inner.get("details"))
    by_status = InvalidRequestError if status is not None and 400 <= status < 500 else ProviderError
    kind = _KINDS.get(str(inner.get("status"))) or _KINDS.get(status or 0, by_status)
    if any(detail.get("reason") == "API_KEY_INVALID" for detail in details):
        kind = AuthenticationError
    kind = next((better for by_code, pattern, better in _WORDS if by_code is kind and pattern.search(words)), kind)
    request_id = headers.get("x-request-id") or _detail(details, "RequestInfo", "requestId")
    where: dict[str, Any] = {"status": status, "request_id": request_id, "body": body}
    message = f"{words.rstrip('.')}. {_ADVICE[kind]}"
    if issubclass(kind, RateLimitError):
        wait = _seconds(_detail(details, "RetryInfo", "retryDelay"))
        return kind(message, retry_after=retry_after(headers) if wait is None else wait, **where)
    return kind(message, **where)


def dump_error(error: DragomanError) -> tuple[int, dict[str, Any]]:
    """An exception → status and body."""
    status, name, words = next(row[1:] for row in _SENT if isinstance(error, row[0]))
    message = error.message if words.lower() in error.message.lower() else f"{words}: {error.message}"
    details: list[dict[str, Any]] = []
    if isinstance(error, RateLimitError) and error.retry_after is not None:
        details.append({"@type": f"{_TYPE}RetryInfo", "retryDelay": f"{error.retry_after:g}s"})
    if error.request_id is not None:
        details.append({"@type": f"{_TYPE}RequestInfo", "requestId": error.request_id})
    body: dict[str, Any] = {"code": status, "message": message, "status": name}
    return status, {"error": {**body, "details": details} if details else body}


def _detail(details: list[dict[str, Any]], kind: str, key: str) -> str | None:
    """A text in the detail of that type."""
    found = (detail.get(key) for detail in details if str(detail.get("@type")).endswith(f".{kind}"))
    return next((value for value in found if isinstance(value, str)), None)


def _seconds(duration: str | None) -> float | None:
    """A duration such as `34.4s`, in seconds."""
    try:
        return None if duration is None else max(0.0, float(duration.removesuffix("s")))
    except ValueError:
        return None
