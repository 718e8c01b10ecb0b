"""How answers about tasks are framed, and what a task does not allow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from dragoman import json_bytes
from dragoman.errors import InvalidRequestError
from dragoman.serve.calls.call import Call
from dragoman.wires.serving import TaskWire

__all__ = ["Frame", "TaskError", "respond", "task_wire"]


class TaskError(InvalidRequestError):
    """A request that its task does not allow. `reason`: the protocol's name for that."""

    def __init__(self, message: str, reason: str = "UNSUPPORTED_OPERATION") -> None:
        super().__init__(message)
        self.reason = reason


class Frame(msgspec.Struct, frozen=True):
    """How the answers to one request are framed."""

    old: bool = False
    """Whether the client is one of 0.3."""
    rpc: bool = False
    """Whether it asks by JSON-RPC."""
    id: Any = None
    """Of its request."""

    def result(self, wire: TaskWire, value: Any) -> Any:
        """A whole answer."""
        return wire.rpc_result(value, self.id) if self.rpc else value

    @property
    def envelope(self) -> dict[str, Any]:
        """What an encoder takes to frame a stream for a client of today."""
        return {"rpc_id": self.id} if self.rpc else {}

    def piece(self, wire: TaskWire, each: Mapping[str, Any]) -> bytes:
        """An object of a stream."""
        return wire.framed(self.result(wire, self.shape(wire, each)))

    def shape(self, wire: TaskWire, each: Mapping[str, Any]) -> Mapping[str, Any]:
        """An object of a stream, as the client's version has it."""
        if not self.old:
            return each
        return wire.old_object(each) if self.rpc else wire.old_rest(each)

    def task(self, wire: TaskWire, value: Mapping[str, Any]) -> Any:
        """A task."""
        if not self.old:
            return value
        return wire.old_task(value) if self.rpc else wire.old_rest({"task": value})["task"]

    def push(self, wire: TaskWire, config: Mapping[str, Any]) -> Any:
        """An address that notifications go to."""
        if not self.old:
            return config
        return wire.old_push(config) if self.rpc else wire.old_rest_push(config)

    def history_length(self, given: Any) -> Any:
        """How much of a task's history a client wants; `None`: all. For clients of 0.3 that is 0 too."""
        return None if self.old and type(given) is int and given == 0 else given


def task_wire(call: Call) -> TaskWire:
    """A call's wire, which has tasks."""
    return cast("TaskWire", call.wire)


async def respond(call: Call, value: Any) -> None:
    """Answers with JSON."""
    await call.connection.respond(
        200, {"content-type": "application/json"}, json_bytes.encode(value)
    )
