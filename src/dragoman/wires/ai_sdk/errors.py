"""Errors: what a refused request is answered with, which `useChat` shows as it is, and the words of
an `error` chunk ⇄ our exceptions."""

from __future__ import annotations

from dragoman.codec.error_rules import ErrorReader, ErrorRules
from dragoman.codec.json_values import if_text
from dragoman.codec.serving import ErrorResponse, error_response, error_status
from dragoman.errors import DragomanError, ProviderError
from dragoman.json_bytes import JsonMap

__all__ = ["dump_error", "error_of", "load_error"]

_READER = ErrorReader(rules=ErrorRules())
load_error = _READER.load_error


def error_of(chunk: JsonMap) -> DragomanError:
    """Returns the exception for an `error` chunk."""
    return ProviderError(if_text(chunk.get("errorText")) or "the agent failed and does not say why")


def dump_error(error: DragomanError) -> ErrorResponse:
    """See `Wire.dump_error`. `useChat` shows the message as it is."""
    return error_response(error, error_status(error), {"error": {"message": error.message}})
