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
    """What can be wrong, in the words of each binding."""

    code: int
    """Of JSON-RPC."""
    status: int
    """Of HTTP."""
    grpc: str
    """Name of gRPC's status."""


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
"""Reason (of `ErrorInfo`) → the fault."""
_REASONS: Mapping[type[DragomanError], str] = {
    errors.InvalidRequestError: "INVALID_PARAMS",
    errors.HistoryError: "INVALID_PARAMS",
    errors.DecodeError: "INVALID_AGENT_RESPONSE",
    errors.ModelNotFoundError: "TASK_NOT_FOUND",
}
"""Our exception → the reason by which it is told; all others are `INTERNAL_ERROR`."""
_STATUS_NAMES: Mapping[int, str] = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "RESOURCE_EXHAUSTED",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_KINDS: Mapping[str, type[DragomanError]] = {
    "TASK_NOT_FOUND": errors.ModelNotFoundError,
    "INVALID_AGENT_RESPONSE": errors.DecodeError,
    "INTERNAL_ERROR": errors.ProviderError,
}
"""Reason → our exception; all others are faults of the request."""
_CODES = {fault.code: reason for reason, fault in FAULTS.items()}
_CLASSES: Mapping[str, type[DragomanError]] = {
    name: kind
    for name in errors.__all__
    if isinstance(kind := getattr(errors, name), type) and issubclass(kind, DragomanError)
}
_READER = ErrorReader(rules=ErrorRules())


def fault_of(error: DragomanError, reason: str = "") -> tuple[str, Fault]:
    """The reason by which an exception is told, and what it is in each binding. `reason`: where the
    caller knows it."""
    reason = reason if reason in FAULTS else look_up_class(_REASONS, error, "INTERNAL_ERROR")
    return reason, FAULTS[reason]


def _info(error: DragomanError, reason: str) -> list[Json]:
    names = [cls.__name__ for cls in type(error).__mro__ if _CLASSES.get(cls.__name__) is cls]
    # Clients of ours raise the very class; a subclass of an application's is told as the nearest of
    # ours.
    kind = names[0]
    return [{"@type": _TYPE, "reason": reason, "domain": DOMAIN, "metadata": {"kind": kind}}]


def rpc_error(error: DragomanError, reason: str = "") -> Json:
    """An exception → the `error` of a JSON-RPC answer."""
    reason, fault = fault_of(error, reason)
    return {"code": fault.code, "message": error.message, "data": _info(error, reason)}


def rest_error(error: DragomanError, reason: str = "") -> ErrorResponse:
    """An exception → the answer of the REST binding."""
    reason, fault = fault_of(error, reason)
    status, grpc = fault.status, fault.grpc
    if reason == "INTERNAL_ERROR":  # the protocol has no word for who may ask, and how often
        status = error_status(error)
        grpc = _STATUS_NAMES.get(status, grpc)
    body = {
        "code": status,
        "status": grpc,
        "message": error.message,
        "details": _info(error, reason),
    }
    return error_response(error, status, {"error": body})


def dump_error(error: DragomanError) -> ErrorResponse:
    """As in `Wire`: the answer of the REST binding."""
    return rest_error(error)


def dump_refusal(error: DragomanError, purpose: str, kind: str = "") -> ErrorResponse:
    """An exception before a request was understood → the answer. `purpose`: of the place that it
    goes to; by JSON-RPC it is an answer of that, unless it is about who asks. `kind`: the media
    type of what was sent."""
    plain = rest_error(error)
    # Clients, and proxies between, act on these by the status of HTTP.
    if purpose != "rpc" or plain.status in (401, 403, 413, 429, 503):
        return plain
    reason = ""
    if isinstance(error, errors.InvalidRequestError):
        reason = "CONTENT_TYPE_NOT_SUPPORTED" if kind and "json" not in kind else "PARSE_ERROR"
    failure = rpc_error(error, reason)
    return ErrorResponse(200, plain.headers, {"jsonrpc": "2.0", "id": None, "error": failure})


def error_of(body: JsonMap, status: int | None = None) -> DragomanError:
    """The `error` of an answer, of either binding → the exception."""
    fields = if_object(body.get("error")) or if_object(body)
    details = [*if_list(fields.get("data")), *if_list(fields.get("details"))]
    infos = [info for info in map(if_object, details) if info.get("reason")]
    kind = _kind_of(fields.get("code"), infos[0] if infos else {})
    message = if_text(fields.get("message"))
    if kind is not None and message:
        return kind(message, status=status)
    error = _READER.load_inner_error(dict(body))
    return error if status is None else error.at(status=status)


def _kind_of(code: object, info: JsonMap) -> type[DragomanError] | None:
    """Returns the class of an error: as our own servers name it, else by its reason, else by its
    code."""
    kind = _CLASSES.get(if_text(if_object(info.get("metadata")).get("kind")))
    if kind is not None:
        return kind
    reason = if_text(info.get("reason"))
    if not reason and isinstance(code, int):
        reason = _CODES.get(code, "")
    return _KINDS.get(reason, errors.InvalidRequestError) if reason in FAULTS else None


def load_error(status: int, headers: Mapping[str, str], body: bytes) -> DragomanError:
    """As in `Wire`: an error's response, of either binding → the exception."""
    fields = if_object(parse_body(body))
    error = if_object(fields.get("error"))
    has_details = if_list(error.get("data")) or if_list(error.get("details"))
    if has_details or error.get("code") in _CODES:
        return error_of(fields, status).at(body=body)
    return _READER.load_error(status, headers, body)
