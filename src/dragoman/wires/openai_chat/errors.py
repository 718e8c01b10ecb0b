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
from dragoman.retry_after import retry_after
from dragoman.shapes import as_text, if_object, if_objects, if_text

__all__ = ["dump_error", "load_error", "load_error_object"]

_BY_STATUS: dict[int, type[DragomanError]] = {
    401: AuthenticationError,
    402: PermissionDeniedError,
    404: ModelNotFoundError,
    408: ProviderTimeoutError,
    429: RateLimitError,
    503: OverloadedError,
    504: ProviderTimeoutError,
    529: OverloadedError,
}
"""A status that says it all."""
_BY_WORDS: tuple[tuple[type[DragomanError], re.Pattern[str]], ...] = tuple(
    (kind, re.compile(words, re.IGNORECASE))
    for kind, words in (
        (RateLimitError, r"rate.?limit|too many requests|insufficient.?quota|tokens per min"),
        (
            ContextLengthError,
            r"context.?(length|size|window)|too.?many.?(prompt.?)?tokens|prompt.{0,20}too long|maximum context|"
            r"length of all messages|reduce the length|too large to process",
        ),
        (ContentRefusedError, r"content.?(filter|policy|management)|responsible.?ai|flagged|moderation"),
        (ModelNotFoundError, r"(model|deployment).?not.?found|\bmodel\b.{0,200}(does not exist|not a valid)"),
        (AuthenticationError, r"(invalid|incorrect).?(api.?)?key|authentication"),
        (OverloadedError, r"overload|(no|at|out of) capacity"),
    )
)
"""What an error says of itself, in its code, type or text; the first that fits."""
_BY_WEAK_STATUS: dict[int, type[DragomanError]] = {
    400: InvalidRequestError,
    403: PermissionDeniedError,
    413: InvalidRequestError,
    422: InvalidRequestError,
}
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
_ADVICE: dict[type[DragomanError], str] = {
    AuthenticationError: "Check the API key.",
    PermissionDeniedError: "Check what the key may do, and the account's credit.",
    ModelNotFoundError: "Check the model's name and that the key may use it.",
    ContextLengthError: "Shorten what is sent, or take a model with a longer context.",
    ContentRefusedError: "Change what is asked.",
    RateLimitError: "Wait, then try again, or ask for a higher limit.",
    OverloadedError: "Try again later, or take another model.",
    InvalidRequestError: "Change the request.",
}
_REQUEST_IDS = ("x-request-id", "request-id", "apim-request-id", "x-ds-trace-id", "x-generation-id", "cf-ray")


def load_error(status: int, headers: Mapping[str, str], body: bytes) -> DragomanError:
    """A response with an error's status → the exception that says it. Never raises, whatever the body is."""
    lower = {name.lower(): value for name, value in headers.items()}
    try:
        parsed = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        parsed = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body[:2000].decode(errors="replace"))).strip()
    error = _built(status, parsed, body)
    request_id = next((lower[name] for name in _REQUEST_IDS if lower.get(name)), None)
    if isinstance(error, RateLimitError):
        error.retry_after = retry_after(lower)
    return error.at(status=status, request_id=request_id or _body_id(parsed))


def load_error_object(error: Any, around: Mapping[str, Any]) -> DragomanError:
    """An error inside a response whose status told of none. `around`: the object that holds it."""
    fields = if_object(error)
    codes = [str(fields.get(name)) for name in ("status_code", "status", "code")]
    status = next((int(code) for code in codes if re.fullmatch("[45][0-9][0-9]", code)), 0)
    built = _built(status, {"error": error}, msgspec.json.encode(around))
    return built.at(status=status or None, request_id=_body_id(around))


def dump_error(error: DragomanError) -> tuple[int, dict[str, Any]]:
    """An exception → status and body."""
    _, status, kind, code = next(line for line in _DUMPED if isinstance(error, line[0]))
    if error.status is not None and error.status >= 400:
        status = error.status
    return status, {"error": {"message": error.message, "type": kind, "param": None, "code": code}}


def _built(status: int, parsed: Any, body: bytes) -> DragomanError:
    words, said = _said(parsed)
    kind = _BY_STATUS.get(status)
    if kind is None:
        kind = next((kind for kind, pattern in _BY_WORDS if pattern.search(said[:4000])), None)
    if kind is None:
        kind = _BY_WEAK_STATUS.get(status)
    if kind is None:
        kind = InvalidRequestError if status < 500 and "invalid_request" in said else ProviderError
    words = words or (f"the provider answered with HTTP {status} and no words" if status else "the provider failed")
    advice = _ADVICE.get(kind, "This is a fault of the provider's own; try again.")
    return kind(f"{words.rstrip('.')}. {advice}", body=body)


def _said(parsed: Any) -> tuple[str, str]:
    """The vendor's own words, and all that it says of the kind of the error."""
    if isinstance(parsed, str):
        return parsed, parsed
    outer = next(iter(if_objects(parsed)), if_object(parsed))
    error = outer.get("error") or outer
    fields = if_object(error)
    if not fields:
        return as_text(error or None), f"{outer.get('code')} {error}"
    words = fields.get("message") or fields.get("detail") or fields.get("error") or ""
    words = words if isinstance(words, str) else msgspec.json.encode(words).decode()
    if upstream := if_text(if_object(fields.get("metadata")).get("raw")):
        words = f"{words}: {upstream[:500]}"
    return words, f"{fields.get('code')} {fields.get('type')} {words} {fields.get('innererror') or ''}"


def _body_id(parsed: Any) -> str | None:
    fields = if_object(parsed)
    return if_text(fields.get("request_id")) or if_text(fields.get("id")) or None
