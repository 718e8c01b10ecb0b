"""Errors of the Mistral API ⇄ our exceptions: one class for each kind of fault, in each of the API's shapes.

`{"object": "error", "message", "type", "param", "code"}` comes from the models, `{"detail": …}` from the checks before
them (a text, or the fields that are wrong), `{"message", "request_id"}` from the gateway.
"""

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
from dragoman.shapes import as_text, if_list, if_object, if_objects, if_text

__all__ = ["dump_error", "load_error", "load_error_object"]

_BY_STATUS: dict[int, type[DragomanError]] = {
    401: AuthenticationError,
    402: PermissionDeniedError,
    408: ProviderTimeoutError,
    429: RateLimitError,
    503: OverloadedError,
    504: ProviderTimeoutError,
    529: OverloadedError,
}
"""A status that says it all. A 429 for want of capacity is one too: the tier's limit is the caller's."""
_BY_WORDS: tuple[tuple[type[DragomanError], re.Pattern[str]], ...] = tuple(
    (kind, re.compile(words, re.IGNORECASE))
    for kind, words in (
        (RateLimitError, r"rate.?limit|too many requests|tier.?capacity|capacity.?exceeded"),
        (ContextLengthError, r"too large for model with|maximum context length|context.?(length|window)|prompt.{0,20}too long"),
        (ContentRefusedError, r"guardrail|moderation|content.?(filter|policy)"),
        (ModelNotFoundError, r"invalid.?model\b|model.?not.?found|\bmodel\b.{0,200}does not exist"),
        (AuthenticationError, r"(invalid|incorrect).?api.?key|unauthorized"),
        (OverloadedError, r"overload|(no|at|out of) capacity|service.?unavailable"),
    )
)  # fmt: skip
"""What an error says of itself, in its code, type or text; the first that fits."""
_BY_WEAK_STATUS: dict[int, type[DragomanError]] = {
    400: InvalidRequestError,
    403: PermissionDeniedError,
    404: ModelNotFoundError,
    413: InvalidRequestError,
    422: InvalidRequestError,
}
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
_ADVICE: dict[type[DragomanError], str] = {
    AuthenticationError: "Check the API key.",
    PermissionDeniedError: "Check what the key may do, and the account's credit.",
    ModelNotFoundError: "Check the model's name and that the key may use it.",
    ContextLengthError: "Shorten the conversation, or take a model with a longer context.",
    ContentRefusedError: "Change what is asked.",
    RateLimitError: "Wait, then try again, or ask for a higher limit.",
    OverloadedError: "Try again later, or take another model.",
    InvalidRequestError: "Change the request.",
}
_REQUEST_IDS = ("mistral-correlation-id", "x-kong-request-id", "x-request-id")


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
    return error.at(status=status, request_id=request_id or if_text(if_object(parsed).get("request_id")) or None)


def load_error_object(chunk: Mapping[str, Any]) -> DragomanError:
    """An error inside a response whose status told of none."""
    inner = if_object(chunk.get("error")) or chunk
    told = (str(inner.get(name)) for name in ("raw_status_code", "status_code", "status"))
    status = next((int(code) for code in told if re.fullmatch("[45][0-9][0-9]", code)), 0)
    return _built(status, chunk, msgspec.json.encode(chunk)).at(status=status or None)


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
    """The provider's own words, and all that it says of the kind of the error."""
    if isinstance(parsed, str):
        return parsed, parsed
    outer = if_object(parsed)
    fields = if_object(outer.get("error")) or outer
    told = fields.get("message") or fields.get("detail") or outer.get("error")
    words = _words(if_object(told).get("detail") or told)
    return words, f"{fields.get('code')} {fields.get('type')} {words}"


def _words(told: Any) -> str:
    """A text, or the fields that are wrong, each with what is wrong with it."""
    if not (faults := if_objects(told)):
        return as_text(told)
    places = (".".join(map(as_text, if_list(one.get("loc")))) for one in faults)
    return "; ".join(
        f"{place}: {as_text(one.get('msg'))}".removeprefix(": ") for place, one in zip(places, faults, strict=True)
    )
