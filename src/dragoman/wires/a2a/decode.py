"""A streamed run (JSON-RPC's answers or plain objects as Server-Sent Events), or a whole task or message → events.

What an encoder of ours wrote is read from our extension, exactly. What others wrote is read as far as the protocol says it: texts, calls,
results, files, states, questions; 0.3's events with a `kind` too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.codec.decoder import ResponseDecoder
from dragoman.codec.json_values import if_object, if_text
from dragoman.errors import DecodeError, DragomanError, HistoryError, StreamCutError
from dragoman.message import Origin
from dragoman.wires.a2a.decode_foreign import ForeignRun
from dragoman.wires.a2a.decode_own import OwnRun
from dragoman.wires.a2a.errors import error_of
from dragoman.wires.a2a.runs import is_rpc
from dragoman.wires.a2a.tasks import is_over, state_of

__all__ = ["Decoder", "decoder", "load_response"]

_OLD_KINDS: Mapping[str, str] = {
    "task": "task",
    "message": "message",
    "status-update": "statusUpdate",
    "artifact-update": "artifactUpdate",
}
"""Kind of an event in 0.3 → the member that 1.0 has it in."""


class Decoder(ResponseDecoder):
    """Reads one run."""

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        super().__init__(origin, new_id)
        self.task_id = ""
        """Of the task that is told; empty: of none yet."""
        self._own = OwnRun(self._events, origin)
        self._foreign = ForeignRun(self._events, origin)

    def take(self, event: dict[str, Any]) -> None:
        """See `ResponseDecoder.take`."""
        if is_rpc(event):
            if event.get("error") is not None:
                raise error_of(event)
            event = if_object(event.get("result"))
        kind, fields = member(event)
        if not kind:
            if "error" in event:
                raise error_of(event)
            raise DecodeError(
                "an object of the stream is none of task, message, statusUpdate and artifactUpdate"
            )
        self.task_id = if_text(fields.get("id" if kind == "task" else "taskId")) or self.task_id
        try:
            if not self._own.take(kind, fields):
                self._foreign.take(kind, fields)
            elif kind == "task":
                self._foreign.announce(if_text(fields.get("id")) or "task")
        except HistoryError as error:
            raise DecodeError(error.message) from error
        state = state_of(if_object(fields.get("status")).get("state"))
        if kind == "message" or is_over(state):
            self._over = True
            self._foreign.close()

    def end(self) -> None:
        """See `ResponseDecoder.end`."""
        self.fail(
            StreamCutError(
                "the stream ended before the task did. Ask for the task, or send the request again."
            )
        )

    def fail(self, error: DragomanError) -> None:
        """See `ResponseDecoder.fail`."""
        self._over = True
        self._foreign.fail(error)


def member(event: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """What an object of a stream holds: the name of its member, and the member. A task or a message may stand alone, as in 0.3."""
    for name in ("task", "message", "statusUpdate", "artifactUpdate"):
        if isinstance(event.get(name), dict):
            return name, if_object(event[name])
    kind = event.get("kind")
    if isinstance(kind, str) and kind in _OLD_KINDS:
        return _OLD_KINDS[kind], dict(event)
    if "parts" in event and "role" in event:
        return "message", dict(event)
    if isinstance(event.get("id"), str) and "status" in event:
        return "task", dict(event)
    return "", {}


decoder = Decoder.create
load_response = Decoder.load_response
