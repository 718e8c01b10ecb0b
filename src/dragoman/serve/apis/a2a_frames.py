"""How answers of A2A are framed for each of its versions and bindings, and the error of a request
that a task does not allow."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman import json_bytes
from dragoman.errors import InvalidRequestError
from dragoman.json_bytes import Json, JsonMap
from dragoman.serve.core.call import Call
from dragoman.wires import a2a

__all__ = ["Frame", "TaskError", "respond"]


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

    @property
    def envelope(self) -> Json:
        """Returns the arguments that make an encoder frame a stream for a client of A2A 1.0."""
        return {"rpc_id": self.id} if self.rpc else {}

    async def respond(self, call: Call, value: Any) -> None:
        """Answers with a value that is not streamed."""
        await respond(call, self._result(value))

    def piece(self, item: JsonMap) -> bytes:
        """Returns the bytes of an object of a stream."""
        return a2a.frame_object(self._result(self.shape(item)))

    def shape(self, item: JsonMap) -> JsonMap:
        """Returns an object of an A2A stream as the frame for the client's version has it."""
        if self.old:
            return self._old_binding.dump_object(item)
        return item

    def task(self, task: JsonMap) -> Any:
        """Returns an A2A task as the frame for the client's version has it."""
        if self.old:
            return self._old_binding.dump_task(task)
        return task

    def push(self, config: JsonMap) -> Any:
        """Returns an address of notifications as the A2A frame for the client's version has it."""
        if self.old:
            return self._old_binding.dump_push(config)
        return config

    @property
    def _old_binding(self) -> a2a.OldBinding:
        return a2a.OLD_RPC if self.rpc else a2a.OLD_REST

    def history_length(self, length: Any) -> Any:
        """Returns how much of an A2A task's history a client wants, or None for all. For clients of
        0.3 that is 0 too."""
        if self.old and type(length) is int and length == 0:
            return None
        return length

    def _result(self, value: Any) -> Any:
        if self.rpc:
            return a2a.rpc_result(value, self.id)
        return value


async def respond(call: Call, value: Any) -> None:
    """Answers with JSON."""
    headers = {"content-type": "application/json"}
    await call.connection.respond(200, headers, json_bytes.encode(value))
