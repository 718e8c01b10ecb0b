"""A UI message stream → events: each step's message of the model's, the results of its calls behind it, and the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.codec.decoder import ResponseDecoder
from dragoman.codec.json_values import if_object, if_text
from dragoman.errors import DecodeError, DragomanError, StreamCutError
from dragoman.event import (
    Custom,
    MessageDropped,
    RunError,
    RunFinished,
    RunStarted,
    StateDelta,
    StateSnapshot,
)
from dragoman.interrupt import Interrupt
from dragoman.message import FinishReason, Origin
from dragoman.wires.ai_sdk.decode_message import Turn
from dragoman.wires.ai_sdk.errors import error_of

__all__ = ["Decoder", "decoder", "load_response"]

_REASONS = {
    "stop": FinishReason.stop,
    "length": FinishReason.length,
    "content-filter": FinishReason.content_filter,
    "tool-calls": FinishReason.tool_calls,
    "error": FinishReason.error,
}
_STEPS = ("start-step", "finish-step", "reset-step")
_WITH_METADATA = ("start", "message-metadata", "finish")


class Decoder(ResponseDecoder):
    """Reads one stream."""

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        super().__init__(origin, new_id)
        self._run_id = new_id() if new_id is not None else "run"
        self._begun = False
        self._turn = Turn(self._events, origin, new_id)
        self._pending: dict[str, Interrupt] = {}

    def take(self, event: dict[str, Any]) -> None:
        """One chunk.

        Raises:
            DragomanError: it tells of an error, or is none of this format.
        """
        kind = event.get("type")
        if not isinstance(kind, str):
            if "error" in event or "message" in event:
                words = (
                    if_object(event.get("error")).get("message")
                    or event.get("message")
                    or event.get("error")
                )
                raise error_of({"errorText": words})
            raise DecodeError("a chunk of a UI message stream has a type, and this one has none")
        if not self._begun:
            self._begun = True
            self._events.append(RunStarted(self._run_id))
        if kind in _WITH_METADATA:
            self._turn.describe(if_object(event.get("messageMetadata")))
        if kind == "start":
            self._turn.name(if_text(event.get("messageId")))
        elif kind in _STEPS:
            self._step(kind)
        elif kind == "error":
            raise error_of(event)
        elif kind in ("finish", "abort"):
            self._finish(kind, event)
        elif kind == "tool-approval-request":
            self._approval(event)
        elif kind == "tool-approval-response":
            self._answered(if_text(event.get("approvalId")))
        elif kind.startswith("data-"):
            self._data(kind, event)
        else:
            self._turn.take(kind, event)  # what is of a later version adds to what there is

    def fail(self, error: DragomanError) -> None:
        """See `ResponseDecoder.fail`."""
        self._over = True
        self._turn.end(None)
        self._events.append(RunError(error, self._run_id if self._begun else None))

    def end(self) -> None:
        """The bytes are at their end."""
        self.fail(StreamCutError("the stream ended before the answer did. Send the request again."))

    def _step(self, kind: str) -> None:
        if kind == "reset-step":
            for dropped in self._turn.drop():
                self._events.append(MessageDropped(dropped, "the agent takes the step back"))
        elif kind == "start-step":
            self._turn.next()

    def _finish(self, kind: str, event: dict[str, Any]) -> None:
        self._over = True
        reason = (
            _REASONS.get(if_text(event.get("finishReason")))
            if kind == "finish"
            else FinishReason.cancelled
        )
        calls = self._turn.open_calls
        self._turn.end(reason)
        waiting = {call.id for call in calls}
        interrupts = {
            id_: each for id_, each in self._pending.items() if each.call is None or id_ in waiting
        }
        for call in calls:
            if reason is FinishReason.tool_calls and call.run_by != "provider":
                interrupts.setdefault(call.id, Interrupt(call.id, "tool", call=call))
        pending = tuple(interrupts.values())
        outcome = "cancelled" if kind == "abort" else "pending" if pending else "success"
        self._events.append(
            RunFinished(self._run_id, outcome, pending=pending if outcome == "pending" else ())
        )

    def _approval(self, event: dict[str, Any]) -> None:
        call_id, id_ = if_text(event.get("toolCallId")), if_text(event.get("approvalId"))
        call = next((each for each in self._turn.open_calls if each.id == call_id), None)
        if call is None:
            raise DecodeError(f"an approval is asked for a call {call_id!r:.100} that is not there")
        message, signature = (
            if_text(event.get("reason")) or None,
            if_text(event.get("signature")) or None,
        )
        self._pending[call_id] = Interrupt(
            id_ or call_id, "approval", call=call, message=message, signature=signature
        )

    def _answered(self, approval_id: str) -> None:
        self._pending = {id_: each for id_, each in self._pending.items() if each.id != approval_id}

    def _data(self, kind: str, event: dict[str, Any]) -> None:
        data = event.get("data")
        if kind == "data-state":
            self._events.append(StateSnapshot(data))
        elif kind == "data-state-delta" and isinstance(data, list):
            self._events.append(StateDelta(tuple([if_object(each) for each in data])))  # pyright: ignore[reportUnknownVariableType]
        elif event.get("transient") is True:
            self._events.append(Custom(kind.removeprefix("data-").replace("-", "_"), data))
        else:
            self._turn.mark(event)
        if kind == "data-interrupt" and (interrupt := _interrupt(if_object(data))) is not None:
            self._pending[interrupt.id] = interrupt


def _interrupt(fields: dict[str, Any]) -> Interrupt | None:
    id_, reason = if_text(fields.get("id")), fields.get("reason")
    if not id_ or reason not in ("tool", "approval", "input", "auth"):
        return None
    return Interrupt(
        id_,
        reason,
        message=if_text(fields.get("message")) or None,
        schema=if_object(fields.get("schema")) or None,
        signature=if_text(fields.get("signature")) or None,
        metadata=if_object(fields.get("metadata")),
    )


decoder, load_response = Decoder.create, Decoder.load_response
