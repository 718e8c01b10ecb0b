"""Framing apart from what is framed: the objects of JSON-RPC, and the names of its methods in both versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman import json_bytes
from dragoman.codec.framing import event_bytes
from dragoman.codec.json_values import if_object

__all__ = ["METHODS", "OLD_METHODS", "framed", "is_rpc", "rpc_failure", "rpc_request", "rpc_result"]

METHODS = (
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
)
"""Of JSON-RPC and gRPC."""
OLD_METHODS: Mapping[str, str] = {
    "message/send": "SendMessage",
    "message/stream": "SendStreamingMessage",
    "tasks/get": "GetTask",
    "tasks/cancel": "CancelTask",
    "tasks/resubscribe": "SubscribeToTask",
    "tasks/pushNotificationConfig/set": "CreateTaskPushNotificationConfig",
    "tasks/pushNotificationConfig/get": "GetTaskPushNotificationConfig",
    "tasks/pushNotificationConfig/list": "ListTaskPushNotificationConfigs",
    "tasks/pushNotificationConfig/delete": "DeleteTaskPushNotificationConfig",
    "agent/getAuthenticatedExtendedCard": "GetExtendedAgentCard",
}
"""Name in 0.3 → in 1.0."""


def is_rpc(value: Any) -> bool:
    """Whether an object is one of JSON-RPC."""
    return "jsonrpc" in if_object(value)


def rpc_request(method: str, params: Mapping[str, Any], id: Any = 1) -> dict[str, Any]:  # noqa: A002 the protocol's
    """A request."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def rpc_result(result: Any, id: Any) -> dict[str, Any]:  # noqa: A002 the protocol's
    """An answer. `id`: the request's."""
    return {"jsonrpc": "2.0", "id": id, "result": result}


def rpc_failure(error: Mapping[str, Any], id: Any = None) -> dict[str, Any]:  # noqa: A002 the protocol's
    """An answer that tells an error (`errors.rpc_error`). `id`: the request's; `None`: it could not be read."""
    return {"jsonrpc": "2.0", "id": id, "error": error}


def framed(value: Mapping[str, Any]) -> bytes:
    """An object of a stream as bytes."""
    return event_bytes(json_bytes.encode(value))
