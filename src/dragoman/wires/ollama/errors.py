"""Errors `{"error": "…"}`, as a body or as a line of a stream ⇄ our exceptions. The kind is told by the status and the words."""

from __future__ import annotations

from dragoman import errors
from dragoman.codec.error_rules import ErrorInfo, ErrorReader, ErrorRules, error_from, patterns
from dragoman.codec.serving import ErrorResponse, error_response
from dragoman.errors import DragomanError

__all__ = ["dump_error", "error_of", "load_error"]

_RULES = ErrorRules(
    words=patterns((errors.InvalidRequestError, r"page not found")),
    advice={
        errors.ModelNotFoundError: "Check the model's name, or pull it: ollama pull NAME.",
        errors.ContextLengthError: "Shorten the conversation, or raise num_ctx.",
        errors.ProviderError: "The fault is the server's; its log may tell more.",
    },
)
_SENT: tuple[tuple[type[DragomanError], int, str], ...] = (
    (errors.ContextLengthError, 400, "prompt too long"),
    (errors.InvalidRequestError, 400, ""),
    (errors.HistoryError, 400, ""),
    (errors.AuthenticationError, 401, "unauthorized"),
    (errors.PermissionDeniedError, 403, ""),
    (errors.ModelNotFoundError, 404, "model not found"),
    (errors.RateLimitError, 429, "too many requests"),
    (errors.OverloadedError, 503, "server busy"),
    (errors.ProviderTimeoutError, 504, ""),
    (errors.ProviderConnectionError, 502, ""),
    (DragomanError, 500, ""),
)
"""Class → status, and the words by which the kind is known inside a stream."""


_READER = ErrorReader(rules=_RULES)
load_error, error_of = _READER.load_error, _READER.error_of


def dump_error(error: DragomanError) -> ErrorResponse:
    """An exception → status, headers and body."""
    status, words = next(row[1:] for row in _SENT if isinstance(error, row[0]))
    known = not words or type(error_from(ErrorInfo(words=error.message), rules=_RULES)) is type(error)
    return error_response(error, status, {"error": error.message if known else f"{words}: {error.message}"})
