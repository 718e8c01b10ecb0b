"""Reads errors `{"error": "…"}`, as a body or as a line of a stream, and writes them. The status
and the words tell the kind."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman import errors
from dragoman.codec.error_rules import ErrorReader, ErrorRules, compile_patterns
from dragoman.codec.serving import ErrorResponse, error_response, error_status
from dragoman.errors import DragomanError

__all__ = ["dump_error", "error_of", "load_error"]

_RULES = ErrorRules(
    patterns=compile_patterns((errors.InvalidRequestError, r"page not found")),
    advice={
        errors.ModelNotFoundError: "Check the model's name, or pull it: ollama pull NAME.",
        errors.ContextLengthError: "Shorten the conversation, or raise num_ctx.",
        errors.ProviderError: "The fault is the server's; its log may tell more.",
    },
)
_OWN_STATUSES: Mapping[type[DragomanError], int] = {errors.ContentRefusedError: 500}
_WORDS: Mapping[type[DragomanError], str] = {
    errors.ContextLengthError: "prompt too long",
    errors.AuthenticationError: "unauthorized",
    errors.ModelNotFoundError: "model not found",
    errors.RateLimitError: "too many requests",
    errors.OverloadedError: "server busy",
}
"""Class → the words by which clients recognise the kind inside a stream."""


_READER = ErrorReader(rules=_RULES)
load_error, error_of = _READER.load_error, _READER.load_inner_error


def dump_error(error: DragomanError) -> ErrorResponse:
    """Returns Ollama's error answer for an exception: status, headers and body."""
    return error_response(
        error, error_status(error, _OWN_STATUSES), {"error": _READER.dump_words(error, _WORDS)}
    )
