"""A UI message stream → events: each step's message of the model's, the results of its calls behind
it, and the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.codec.run_decoder import Step
from dragoman.errors import DecodeError, DragomanError
from dragoman.event import (
    Custom,
    MessageDropped,
    RunFinished,
    RunStarted,
    StateDelta,
    StateSnapshot,
)
from dragoman.interrupt import Interrupt
from dragoman.json_bytes import Json
from dragoman.message import FinishReason, Origin
from dragoman.wires.ai_sdk.decode_message import TurnDecoder
from dragoman.wires.ai_sdk.errors import error_of

__all__ = ["Decoder", "decoder", "load_response"]

_REASONS: Mapping[str, FinishReason] = {
    "stop": FinishReason.stop,
    "length": FinishReason.length,
    "content-filter": FinishReason.content_filter,
    "tool-calls": FinishReason.tool_calls,
    "error": FinishReason.error,
}
_WITH_METADATA = ("start", "message-metadata", "finish")


class Decoder(TurnDecoder):
    """Reads one UI message stream."""

    CUT = "the stream ended before the answer did. Send the request again."

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        """Creates the AI SDK decoder. The arguments are those of `TurnDecoder`."""
        super().__init__(origin, new_id)
        # The stream names its message, but no run.
        self._run_id = new_id() if new_id is not None else "run"
        self._is_begun = False
        self._pending: dict[str, Interrupt] = {}
        """Id of a call, or of an interrupt without one → the interrupt."""

    def read_type(self, event: Json) -> tuple[str, Json]:
        """Implements `RunDecoder.read_type` for the AI SDK."""
        kind = event.get("type")
        if isinstance(kind, str):
            return kind, event
        if "error" in event or "message" in event:
            inner = if_object(event.get("error")).get("message")
            raise error_of({"errorText": inner or event.get("message") or event.get("error")})
        raise DecodeError("a chunk of a UI message stream has a type, and this one has none")

    def admit(self, object_type: str, fields: Json) -> bool:
        """Implements `RunDecoder.admit` for the AI SDK."""
        if not self._is_begun:
            self._is_begun = True
            self._events.append(RunStarted(self._run_id))
        if object_type in _WITH_METADATA:
            self.describe_turn(if_object(fields.get("messageMetadata")))
        return True

    def run_id(self) -> str | None:
        """See `RunDecoder.run_id`."""
        return self._run_id if self._is_begun else None

    def cut_run(self, error: DragomanError) -> None:  # noqa: ARG002 it has no part of the answer
        """See `RunDecoder.cut_run`."""
        self.end_turn(None)

    def read_unknown(self, object_type: str, fields: Json) -> None:
        """Implements `RunDecoder.read_unknown` for the AI SDK."""
        for prefix, step in self.PREFIX_STEPS.items():
            if object_type.startswith(prefix):
                step(self, fields)
                return

    # steps

    def _read_start(self, chunk: Json) -> None:
        """Reads the start of the stream, which names its message."""
        self.name_turn(if_text(chunk.get("messageId")))

    def _start_step(self, chunk: Json) -> None:  # noqa: ARG002 there is nothing in it
        """Begins a step."""
        self.begin_step()

    def _reset_step(self, chunk: Json) -> None:  # noqa: ARG002 there is nothing in it
        """Retracts the step."""
        for message_id in self.drop_step():
            self._events.append(MessageDropped(message_id, "the agent takes the step back"))

    def _read_error(self, chunk: Json) -> None:
        """Raises the error that a chunk holds."""
        raise error_of(chunk)

    def _finish(self, chunk: Json) -> None:
        """Ends the AI SDK stream, and the run: as pending if calls wait for the client."""
        self._over = True
        reason = _REASONS.get(if_text(chunk.get("finishReason")))
        calls = self.waiting_calls
        self.end_turn(reason)
        waiting_ids = {call.id for call in calls}
        pending = {
            id_: interrupt
            for id_, interrupt in self._pending.items()
            if interrupt.call is None or id_ in waiting_ids
        }
        for call in calls:
            # Only this reason says that the client is to run them: an answer that was cut leaves
            # calls open too.
            if reason is FinishReason.tool_calls and call.run_by != "provider":
                pending.setdefault(call.id, Interrupt(call.id, "tool", call=call))
        outcome = "pending" if pending else "success"
        self._events.append(RunFinished(self._run_id, outcome, pending=tuple(pending.values())))

    def _abort_stream(self, chunk: Json) -> None:  # noqa: ARG002 its reason is said by the outcome
        """Ends the AI SDK stream, and the run as cancelled."""
        self._over = True
        self.end_turn(FinishReason.cancelled)
        self._events.append(RunFinished(self._run_id, "cancelled"))

    def _request_approval(self, chunk: Json) -> None:
        """Adds the approval that an AI SDK call waits for."""
        call_id, id_ = if_text(chunk.get("toolCallId")), if_text(chunk.get("approvalId"))
        call = next((call for call in self.waiting_calls if call.id == call_id), None)
        if call is None:
            raise DecodeError(f"an approval is asked for a call {call_id!r:.100} that is not there")
        self._pending[call_id] = Interrupt(
            id_ or call_id,
            "approval",
            call=call,
            message=if_text(chunk.get("reason")) or None,
            signature=if_text(chunk.get("signature")) or None,
        )

    def _answer_approval(self, chunk: Json) -> None:
        """Removes an approval that was answered within the AI SDK stream."""
        id_ = if_text(chunk.get("approvalId"))
        self._pending = {
            key: interrupt for key, interrupt in self._pending.items() if interrupt.id != id_
        }

    def _read_state(self, chunk: Json) -> None:
        """Adds the shared state."""
        self._events.append(StateSnapshot(chunk.get("data")))

    def _read_state_delta(self, chunk: Json) -> None:
        """Adds a change of the shared state, or an AI SDK data part if it is no JSON patch."""
        if isinstance(chunk.get("data"), list):
            operations = tuple(map(if_object, if_list(chunk["data"])))
            self._events.append(StateDelta(operations))
        else:
            self._read_data(chunk)

    def _read_data(self, chunk: Json) -> None:
        """Adds an AI SDK data part, or a custom event if it is transient."""
        if chunk.get("transient") is True:
            name = chunk["type"].removeprefix("data-").replace("-", "_")
            self._events.append(Custom(name, chunk.get("data")))
        else:
            self.read_whole(chunk)

    def _read_interrupt(self, chunk: Json) -> None:
        """Adds an interrupt that the protocol has no AI SDK chunk for."""
        self._read_data(chunk)
        interrupt = _load_interrupt(if_object(chunk.get("data")))
        if interrupt is not None:
            self._pending[interrupt.id] = interrupt

    STEPS = {
        **TurnDecoder.PART_STEPS,
        "start": _read_start,
        "start-step": _start_step,
        "reset-step": _reset_step,
        "error": _read_error,
        "finish": _finish,
        "abort": _abort_stream,
        "tool-approval-request": _request_approval,
        "tool-approval-response": _answer_approval,
        "data-state": _read_state,
        "data-state-delta": _read_state_delta,
        "data-interrupt": _read_interrupt,
    }
    PREFIX_STEPS: ClassVar[Mapping[str, Step]] = {**TurnDecoder.PREFIX_STEPS, "data-": _read_data}


def _load_interrupt(fields: Json) -> Interrupt | None:
    """Returns the interrupt in a data chunk of an AI SDK stream, or None if it is none."""
    id_, reason = if_text(fields.get("id")), fields.get("reason")
    if not id_ or reason not in ("tool", "approval", "input", "auth", "doubt"):
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
