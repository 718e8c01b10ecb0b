"""Reads vendors' errors, in any shape, as exceptions, and writes exceptions as errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from dragoman import errors, json_bytes
from dragoman.codec.error_rules import build_error, load_error_response
from dragoman.codec.serving import ErrorResponse, add_token_limit, error_response, format_seconds
from dragoman.errors import DragomanError
from dragoman.json_bytes import Json, JsonMap
from dragoman.wires.chat.record import DialectRecord, ErrorLine

__all__ = [
    "ERRORS",
    "make_error",
    "dump_error",
    "error_body",
    "error_of",
    "load_error",
    "with_token_limit",
]

ERRORS: Sequence[ErrorLine] = (
    (errors.AuthenticationError, 401, "invalid_request_error", "invalid_api_key"),
    (errors.PermissionDeniedError, 403, "invalid_request_error", "forbidden"),
    (errors.ModelNotFoundError, 404, "invalid_request_error", "model_not_found"),
    (errors.ContextLengthError, 400, "invalid_request_error", "context_length_exceeded"),
    (errors.RequestTooLargeError, 413, "invalid_request_error", None),
    (errors.UnsupportedTypeError, 415, "invalid_request_error", None),
    (errors.InvalidRequestError, 400, "invalid_request_error", None),
    (errors.HistoryError, 400, "invalid_request_error", None),
    (errors.ContentRefusedError, 400, "invalid_request_error", "content_filter"),
    (errors.BudgetError, 429, "insufficient_quota", "insufficient_quota"),
    (errors.RateLimitError, 429, "rate_limit_error", "rate_limit_exceeded"),
    (errors.OverloadedError, 503, "server_error", "overloaded"),
    (errors.ProviderTimeoutError, 504, "server_error", "timeout"),
    (errors.ProviderError, 502, "server_error", None),
    (errors.ProviderConnectionError, 502, "server_error", None),
    (errors.DecodeError, 502, "server_error", None),
    (DragomanError, 500, "server_error", None),
)
"""Class of errors → its status, type and code. The first line that fits counts."""


def load_error(
    chat: DialectRecord, status: int, headers: Mapping[str, str], body: bytes
) -> DragomanError:
    """Returns the exception for an error response. Never raises, whatever the body is."""
    return load_error_response(status, headers, body, chat.error_info, chat.error_rules)


def make_error(chat: DialectRecord, payload: JsonMap) -> DragomanError:
    """Returns the exception for an error in a response whose status says success."""
    return build_error(
        chat.error_info(payload), body=json_bytes.encode(payload), rules=chat.error_rules
    )


def error_of(chat: DialectRecord, chunk: JsonMap) -> DragomanError | None:
    """Returns the error that a chunk of a Chat stream holds instead of an answer, or None."""
    if chunk.get("error"):
        return make_error(chat, chunk)
    return None


def dump_error(chat: DialectRecord, error: DragomanError) -> ErrorResponse:
    """Returns the error response for an exception: status, headers and body."""
    _, status, error_type, code = next(line for line in chat.errors if isinstance(error, line[0]))
    # The status that a provider gave says more than the usual one of the class.
    if error.status is not None and error.status >= 400:
        status = error.status
    body = _add_field(chat.error_body(error.message, error_type, code, status), error.field)
    return with_token_limit(error_response(error, status, body), error)


def with_token_limit(response: ErrorResponse, error: DragomanError) -> ErrorResponse:
    """Returns the response to an error with OpenAI's headers of a limit of tokens."""
    seconds = getattr(error, "retry_after", None)
    reset = None if seconds is None else f"{format_seconds(seconds)}s"
    return add_token_limit(response, error, "x-ratelimit-{}-tokens", reset)


def _add_field(body: Json, field: str | None) -> Json:
    """Returns the Chat body with the name of the field at fault, if the body has a field for it."""
    if field is None:
        return body
    inner = body.get("error")
    if isinstance(inner, dict):
        return {**body, "error": _add_field(cast("Json", inner), field)}
    if "param" in body:
        return {**body, "param": field}
    return body


def error_body(message: str, error_type: str, code: str | None, status: int) -> Json:  # noqa: ARG001 Mistral writes it
    """Returns the body of an error."""
    return {"error": {"message": message, "type": error_type, "param": None, "code": code}}
