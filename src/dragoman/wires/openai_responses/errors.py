"""Reads errors of the Responses API as exceptions, in any shape that a vendor sends, and writes
them."""

from __future__ import annotations

from dragoman import errors
from dragoman.codec.error_rules import ErrorReader, ErrorRules, compile_patterns
from dragoman.codec.serving import ErrorResponse, error_response
from dragoman.errors import DragomanError
from dragoman.wires.chat.errors import with_token_limit

__all__ = ["code_of", "dump_error", "error_of", "load_error"]

_RULES = ErrorRules(
    patterns=compile_patterns((errors.InvalidRequestError, r"previous.?response|item with id"))
)
"""A response that is not stored any more is an invalid request, not an unknown model."""
_DUMPED: tuple[tuple[type[DragomanError], int, str, str | None], ...] = (
    (errors.AuthenticationError, 401, "invalid_request_error", "invalid_api_key"),
    (errors.PermissionDeniedError, 403, "invalid_request_error", "forbidden"),
    (errors.ModelNotFoundError, 404, "invalid_request_error", "model_not_found"),
    (errors.ContextLengthError, 400, "invalid_request_error", "context_length_exceeded"),
    (errors.ContentRefusedError, 400, "invalid_request_error", "content_policy_violation"),
    (errors.RequestTooLargeError, 413, "invalid_request_error", "invalid_prompt"),
    (errors.UnsupportedTypeError, 415, "invalid_request_error", "invalid_prompt"),
    (errors.InvalidRequestError, 400, "invalid_request_error", "invalid_prompt"),
    (errors.HistoryError, 400, "invalid_request_error", "invalid_prompt"),
    (errors.BudgetError, 429, "insufficient_quota", "insufficient_quota"),
    (errors.RateLimitError, 429, "rate_limit_error", "rate_limit_exceeded"),
    (errors.OverloadedError, 503, "server_error", "overloaded"),
    (errors.ProviderTimeoutError, 504, "server_error", "timeout"),
    (errors.ProviderConnectionError, 502, "server_error", "server_error"),
    (DragomanError, 500, "server_error", "server_error"),
)
"""Class → status, type, and the code by which clients recognise the kind."""


_READER = ErrorReader(rules=_RULES)
load_error, error_of = _READER.load_error, _READER.load_inner_error


def code_of(error: DragomanError) -> str | None:
    """Returns the code by which clients of this format recognise the kind of an error."""
    return next(code for kind, _, _, code in _DUMPED if isinstance(error, kind))


def dump_error(error: DragomanError) -> ErrorResponse:
    """Returns the Responses API's error answer for an exception: status, headers and body."""
    _, status, type_, code = next(line for line in _DUMPED if isinstance(error, line[0]))
    if error.status is not None and error.status >= 400:
        status = error.status
    body = {"error": {"message": error.message, "type": type_, "param": error.field, "code": code}}
    return with_token_limit(error_response(error, status, body), error)
