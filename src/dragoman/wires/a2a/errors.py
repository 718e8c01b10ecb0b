"""Errors: JSON-RPC's with the protocol's codes, and those of its REST binding, both with
`google.rpc.ErrorInfo` ⇄ our exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dragoman import errors
from dragoman.codec.error_body import parse_body
from dragoman.codec.error_rules import ErrorReader, ErrorRules
from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.codec.serving import ErrorResponse, error_response, error_status, look_up_class
from dragoman.errors import DragomanError
from dragoman.json_bytes import Json, JsonMap

__all__ = [
    "DOMAIN",
    "FAULTS",
    "Fault",
    "dump_error",
    "dump_refusal",
    "error_of",
    "fault_of",
    "load_error",
    "rest_error",
    "rpc_error",
]

DOMAIN = "a2a-protocol.org"
_TYPE = "type.googleapis.com/google.rpc.ErrorInfo"


class Fault(NamedTuple):
    """An error of the protocol, as each binding writes it."""

    code: int
    """Code of JSON-RPC."""
    status: int
    """HTTP status."""
    grpc: str
    """Name of the gRPC status."""


FAULTS: Mapping[str, Fault] = {
    "TASK_NOT_FOUND": Fault(-32001, 404, "NOT_FOUND"),
    "TASK_NOT_CANCELABLE": Fault(-32002, 400, "FAILED_PRECONDITION"),
    "PUSH_NOTIFICATION_NOT_SUPPORTED": Fault(-32003, 400, "FAILED_PRECONDITION"),
    "UNSUPPORTED_OPERATION": Fault(-32004, 400, "FAILED_PRECONDITION"),
    "CONTENT_TYPE_NOT_SUPPORTED": Fault(-32005, 415, "INVALID_ARGUMENT"),
    "INVALID_AGENT_RESPONSE": Fault(-32006, 500, "INTERNAL"),
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED": Fault(-32007, 400, "FAILED_PRECONDITION"),
    "EXTENSION_SUPPORT_REQUIRED": Fault(-32008, 400, "FAILED_PRECONDITION"),
    "VERSION_NOT_SUPPORTED": Fault(-32009, 400, "FAILED_PRECONDITION"),
    "INVALID_PARAMS": Fault(-32602, 400, "INVALID_ARGUMENT"),
    "INVALID_REQUEST": Fault(-32600, 400, "INVALID_ARGUMENT"),
    "METHOD_NOT_FOUND": Fault(-32601, 404, "NOT_FOUND"),
    "PARSE_ERROR": Fault(-32700, 400, "INVALID_ARGUMENT"),
    "INTERNAL_ERROR": Fault(-32603, 500, "INTERNAL"),
}
"""Reason (of `ErrorInfo`) → how each binding writes the error."""
_REASONS: Mapping[type[DragomanError], str] = {
    errors.InvalidRequestError: "INVALID_PARAMS",
    errors.HistoryError: "INVALID_PARAMS",
    errors.DecodeError: "INVALID_AGENT_RESPONSE",
    errors.ModelNotFoundError: "TASK_NOT_FOUND",
}
"""Exception → its reason. Others are `INTERNAL_ERROR`."""
_STATUS_NAMES: Mapping[int, str] = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "RESOURCE_EXHAUSTED",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_ERROR_CLASSES: Mapping[str, type[DragomanError]] = {
    "TASK_NOT_FOUND": errors.ModelNotFoundError,
    "INVALID_AGENT_RESPONSE": errors.DecodeError,
    "INTERNAL_ERROR": errors.ProviderError,
}
"""Reason → exception. Others are errors of the request."""
_CODES = {fault.code: reason for reason, fault in FAULTS.items()}
_CLASSES: Mapping[str, type[DragomanError]] = {
    name: error_class
    for name in errors.__all__
    if isinstance(error_class := getattr(errors, name), type)
    and issubclass(error_class, DragomanError)
}
_READER = ErrorReader(rules=ErrorRules())


def fault_of(error: DragomanError, reason: str = "") -> tuple[str, Fault]:
    """Returns A2A's reason for an exception, and how each binding writes it.

    Args:
        error: the exception.
        reason: the reason, if the caller knows it.
    """
    if reason not in FAULTS:
        reason = look_up_class(_REASONS, error, "INTERNAL_ERROR")
    return reason, FAULTS[reason]


def _error_details(error: DragomanError, reason: str) -> list[Json]:
    """Returns the `ErrorInfo` details of an exception in an A2A error, with the nearest dragoman
    class as its kind."""
    names = [cls.__name__ for cls in type(error).__mro__ if _CLASSES.get(cls.__name__) is cls]
    # Clients of ours raise the very class; a subclass of an application's is told as the nearest of
    # ours.
    class_name = names[0]
    return [
        {
            "@type": _TYPE,
            "reason": reason,
            "domain": DOMAIN,
            "metadata": {"kind": class_name},
        }
    ]


def rpc_error(error: DragomanError, reason: str = "") -> Json:
    """Returns the `error` member of an A2A JSON-RPC response for an exception."""
    reason, fault = fault_of(error, reason)
    return {
        "code": fault.code,
        "message": error.message,
        "data": _error_details(error, reason),
    }


def rest_error(error: DragomanError, reason: str = "") -> ErrorResponse:
    """Returns the A2A response of the REST binding for an exception."""
    reason, fault = fault_of(error, reason)
    status, grpc = fault.status, fault.grpc
    if reason == "INTERNAL_ERROR":  # the protocol has no word for who may ask, and how often
        status = error_status(error)
        grpc = _STATUS_NAMES.get(status, grpc)
    body = {
        "code": status,
        "status": grpc,
        "message": error.message,
        "details": _error_details(error, reason),
    }
    return error_response(error, status, {"error": body})


def dump_error(error: DragomanError) -> ErrorResponse:
    """See `Wire.dump_error`. Returns the response of the REST binding."""
    return rest_error(error)


def dump_refusal(error: DragomanError, purpose: str, kind: str = "") -> ErrorResponse:
    """Returns the A2A response to a request that was refused before it was read.

    Args:
        error: why it was refused.
        purpose: the route's purpose. JSON-RPC routes answer with a JSON-RPC error, unless clients
            and proxies act on the HTTP status.
        kind: media type of the request's body.
    """
    plain = rest_error(error)
    # Clients, and proxies between, act on these by the status of HTTP.
    if purpose != "rpc" or plain.status in (401, 403, 413, 429, 503):
        return plain
    reason = ""
    if isinstance(error, errors.InvalidRequestError):
        reason = "PARSE_ERROR"
        if kind and "json" not in kind:
            reason = "CONTENT_TYPE_NOT_SUPPORTED"
    failure = rpc_error(error, reason)
    return ErrorResponse(
        200,
        plain.headers,
        {
            "jsonrpc": "2.0",
            "id": None,
            "error": failure,
        },
    )


def error_of(body: JsonMap, status: int | None = None) -> DragomanError:
    """Returns the exception for the `error` of an A2A response, of either binding."""
    fields = if_object(body.get("error")) or if_object(body)
    details = [*if_list(fields.get("data")), *if_list(fields.get("details"))]
    infos = [info for info in map(if_object, details) if info.get("reason")]
    error_class = _class_of(fields.get("code"), infos[0] if infos else {})
    message = if_text(fields.get("message"))
    if error_class is not None and message:
        return error_class(message, status=status)
    error = _READER.load_inner_error(dict(body))
    if status is None:
        return error
    return error.at(status=status)


def _class_of(code: object, info: JsonMap) -> type[DragomanError] | None:
    """Returns the exception class of an A2A error: dragoman's own name, else its reason, else its
    code."""
    error_class = _CLASSES.get(if_text(if_object(info.get("metadata")).get("kind")))
    if error_class is not None:
        return error_class
    reason = if_text(info.get("reason"))
    if not reason and isinstance(code, int):
        reason = _CODES.get(code, "")
    if reason in FAULTS:
        return _ERROR_CLASSES.get(reason, errors.InvalidRequestError)
    return None


def load_error(status: int, headers: Mapping[str, str], body: bytes) -> DragomanError:
    """Implements `Wire.load_error` for A2A. Reads an error response of either binding."""
    fields = if_object(parse_body(body))
    error = if_object(fields.get("error"))
    has_details = if_list(error.get("data")) or if_list(error.get("details"))
    if has_details or error.get("code") in _CODES:
        return error_of(fields, status).at(body=body)
    return _READER.load_error(status, headers, body)
