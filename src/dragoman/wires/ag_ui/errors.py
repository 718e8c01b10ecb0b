"""Errors: the event RUN_ERROR, whose code is an open text, and the body with which a server refuses
⇄ our exceptions."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman import errors
from dragoman.codec.error_rules import ErrorReader, ErrorRules
from dragoman.codec.json_values import if_object, if_text
from dragoman.codec.serving import ErrorResponse, error_response, error_status, look_up_class
from dragoman.errors import DragomanError
from dragoman.json_bytes import JsonMap

__all__ = ["CANCELLED", "code_of", "dump_error", "error_of", "load_error"]

CANCELLED = "cancelled"
"""Error code of a cancelled run, for peers that know no such outcome."""
_CODES: Mapping[type[DragomanError], str] = {
    errors.DragomanError: "error",
    errors.SettingsError: "settings",
    errors.HistoryError: "invalid_messages",
    errors.DecodeError: "malformed",
    errors.ToolError: "tool_error",
    errors.TypedOutputError: "invalid_output",
    errors.ModelRetry: "model_retry",
    errors.LimitReachedError: "limit_reached",
    errors.StoreError: "store_error",
    errors.RunInterruptedError: "interrupted",
    errors.RunLogError: "run_log_error",
    errors.LeaseLostError: "lease_lost",
    errors.LogFullError: "log_full",
    errors.ConflictError: "conflict",
    errors.ThreadNotFoundError: "thread_not_found",
    errors.ProviderError: "provider_error",
    errors.AuthenticationError: "authentication",
    errors.PermissionDeniedError: "permission_denied",
    errors.ModelNotFoundError: "model_not_found",
    errors.InvalidRequestError: "invalid_request",
    errors.ContextLengthError: "context_length",
    errors.RequestTooLargeError: "request_too_large",
    errors.UnsupportedTypeError: "unsupported_type",
    errors.ResumeError: "invalid_resume",
    errors.ContentRefusedError: "content_refused",
    errors.RateLimitError: "rate_limit",
    errors.BudgetError: "budget",
    errors.OverloadedError: "overloaded",
    errors.CircuitOpenError: "circuit_open",
    errors.ProviderTimeoutError: "timeout",
    errors.ProviderConnectionError: "connection",
    errors.StreamCutError: "stream_cut",
}
"""Exception → error code."""
_CLASSES = {code: error_class for error_class, code in _CODES.items()}
_READER = ErrorReader(rules=ErrorRules())
load_error = _READER.load_error


def code_of(error: DragomanError) -> str:
    """Returns the error code for an exception."""
    return look_up_class(_CODES, error, "error")


def error_of(event: JsonMap) -> DragomanError:
    """Returns the exception for `RUN_ERROR`, `SUBAGENT_ERROR` or a refusal's body. An unknown code
    goes before the message."""
    fields = {**event, **if_object(event.get("error"))}
    message, code = if_text(fields.get("message")), if_text(fields.get("code"))
    error_class = _CLASSES.get(code)
    if error_class is None:
        if code and message:
            message = f"{code}: {message}"
        else:
            message = message or code
    return (error_class or errors.ProviderError)(message or "the agent failed and does not say why")


def dump_error(error: DragomanError) -> ErrorResponse:
    """See `Wire.dump_error`."""
    body = {"error": {"message": error.message, "code": code_of(error)}}
    return error_response(error, error_status(error), body)
