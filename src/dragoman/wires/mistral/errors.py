"""Errors of the Mistral API ⇄ our exceptions: one class for each kind of fault, in each of the API's shapes.

`{"object": "error", "message", "type", "param", "code"}` comes from the models, `{"detail": …}` from the checks before
them (a text, or the fields that are wrong), `{"message", "request_id"}` from the gateway.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman import errors
from dragoman.codec.error_rules import ErrorRules, patterns
from dragoman.errors import DragomanError
from dragoman.wires.chat.dialect import Chat
from dragoman.wires.chat.errors import ErrorLine, as_error

__all__ = ["ERRORS", "RULES", "error_body", "error_of"]

RULES = ErrorRules(words=patterns((errors.RateLimitError, r"tier.?capacity|capacity.?exceeded")))
"""For want of capacity: the tier's limit is the caller's."""
ERRORS: tuple[ErrorLine, ...] = (
    (errors.AuthenticationError, 401, "unauthorized", "1000"),
    (errors.PermissionDeniedError, 403, "forbidden", None),
    (errors.ModelNotFoundError, 400, "invalid_model", "1500"),
    (errors.ContextLengthError, 400, "context_length_exceeded", "3051"),
    (errors.InvalidRequestError, 400, "invalid_request_invalid_args", "3051"),
    (errors.HistoryError, 400, "invalid_request_message_order", "3230"),
    (errors.ContentRefusedError, 403, "content_policy", None),
    (errors.RateLimitError, 429, "rate_limited", "1300"),
    (errors.OverloadedError, 503, "overloaded", None),
    (errors.ProviderTimeoutError, 504, "timeout", None),
    (errors.ProviderError, 502, "internal_server_error", None),
    (errors.ProviderConnectionError, 502, "internal_server_error", None),
    (errors.DecodeError, 502, "internal_server_error", None),
    (DragomanError, 500, "internal_server_error", None),
)


def error_of(chat: Chat, chunk: Mapping[str, Any]) -> DragomanError | None:
    """An error in the place of an answer, in any of its shapes."""
    complains = chunk.get("detail") or chunk.get("message")
    if (
        chunk.get("object") == "error"
        or chunk.get("error")
        or ("choices" not in chunk and complains)
    ):
        return as_error(chat, chunk)
    return None


def error_body(message: str, kind: str, code: str | None, status: int) -> dict[str, Any]:
    """The body of an error."""
    body = {"object": "error", "message": message, "type": kind, "param": None, "code": code}
    return {**body, "raw_status_code": status}
