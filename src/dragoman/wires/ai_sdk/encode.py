"""Events of a run → the chunks of a UI message stream. All messages of the run's turn are one UI
message; a step begins with each but the first.

The stream has no field for much of what a message is. So the last chunk has the metadata of the
whole UI message, made from all events of the run, and a client's message is the run's messages as
they were.

A client that reads a stream again from its beginning has nothing of a message that the run goes on
with: `again` writes that before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import dropwhile
from typing import Any

from dragoman.codec.json_values import drop_none, if_object, if_text
from dragoman.codec.serving import SSE_PING
from dragoman.codec.turns import next_turn_id
from dragoman.event import (
    Custom,
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
    RunStarted,
    StateDelta,
    StateSnapshot,
)
from dragoman.fold import fold, unfold
from dragoman.inner_runs import InnerRuns
from dragoman.interrupt import Interrupt
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, Message, Role, ToolCallPart, ToolResultPart
from dragoman.request import RunRequest
from dragoman.wires.ai_sdk.encode_parts import PartEncoder
from dragoman.wires.ai_sdk.quirks import OURS, Quirks
from dragoman.wires.ai_sdk_messages.conversation import dump_ui

__all__ = [
    "Encoder",
    "encoder",
    "envelope",
    "envelope_again",
    "ping",
    "stream_headers",
    "stream_type",
]

stream_type = "text/event-stream"
"""Media type of a stream."""
stream_headers: Mapping[str, str] = {"x-vercel-ai-ui-message-stream": "v1"}
"""Headers by which clients recognize the stream."""
ping = SSE_PING
"""Bytes that keep an idle stream open."""
_REASONS: Mapping[FinishReason | None, str] = {
    FinishReason.stop: "stop",
    FinishReason.length: "length",
    FinishReason.tool_calls: "tool-calls",
    FinishReason.content_filter: "content-filter",
    FinishReason.refusal: "content-filter",
    FinishReason.recitation: "content-filter",
    FinishReason.error: "error",
}
_PRELIMINARY = "tool_preliminary"
"""Name of the event with the output of a tool that is still running."""
_STREAM_CHUNKS = ("start", "finish")
"""Types of chunks that belong to the stream instead of its message."""


class Encoder(PartEncoder):
    """Writes the events of a run as chunks, framed as server-sent events.

    Keys of `envelope`:
        request: what the run answers.
        quirks: what the peer takes.
        again: True if the client reads the message from its beginning.
    """

    DONE = b"data: [DONE]\n\n"

    def __init__(self, envelope: JsonMap) -> None:
        """Creates the encoder of a run as an AI SDK UI message stream."""
        request: RunRequest | None = envelope.get("request")
        self._quirks: Quirks = envelope.get("quirks") or Quirks()
        self._before = request.messages if request is not None else ()
        super().__init__(self._before)
        self._again = _chunks_before(self._before, self._quirks) if envelope.get("again") else ()
        self._inner = InnerRuns()
        self._events: list[Event] = []
        """All events of the answer except deltas."""
        self._message_ids: set[str] = set()
        """Ids of the messages in the answer."""
        self._results: set[str] = set()
        """Ids of those that hold results."""
        self._step = ""
        """Id of the current step's message."""
        self._is_begun = self._is_reset = self._goes_on = self._has_answer = False
        self._reason: FinishReason | None = None

    def admit(self, event: Event) -> bool:
        """See `RunEncoder.admit`. Skips the events of runs within tools, and messages that are no
        part of the AI SDK answer."""
        if self.over:
            return False
        if type(event) is PartDelta:
            return True
        # A UI message has no place for the messages of another run.
        if self._inner.has(event):
            return False
        if not isinstance(event, PartStarted | PartFinished | MessageFinished | MessageDropped):
            return True
        if event.message_id not in self._message_ids:
            return False
        if not isinstance(event, PartStarted):
            self._events.append(event)
        return True

    def end_stream(self) -> None:
        """Implements `RunEncoder.end_stream` for the AI SDK."""
        self.begin_stream()
        self.end_parts()
        self._write_finish("other" if self._reason is None else None)

    def begin_stream(self, turn: str | None = None) -> None:
        """Writes the start of the AI SDK stream once.

        Args:
            turn: id of its message, unless the run continues one.
        """
        if self._is_begun:
            return
        self._is_begun = True
        # A run goes on with the last answer if calls of that are answered now, or if its messages
        # have that turn's name.
        names = _names_of_answer(self._before)
        is_named = turn is not None and turn in names
        self._goes_on = is_named or next_turn_id(self._before) is not None
        if turn is None and self._goes_on and names:
            turn = names[0] or names[-1]
        start: Json = {"type": "start"}
        if turn:
            start["messageId"] = turn
        self.write(start)
        if self._goes_on:
            self.write(*self._again)

    # steps: messages

    def _message_started(self, event: MessageStarted) -> None:
        """Begins an AI SDK step with each message of the model but the first."""
        if event.candidate or not self._is_of_turn(event.role):
            return
        self._message_ids.add(event.message_id)
        self._events.append(event)
        if event.role is not Role.MODEL:
            self._results.add(event.message_id)
            return
        self.begin_stream(event.turn or event.message_id)
        # The client's message begins with a step by itself.
        is_next_step = self._has_answer or self._goes_on
        self._has_answer, self._step = True, event.message_id
        if is_next_step and not self._is_reset:
            self.write({"type": "start-step"})

    def _is_of_turn(self, role: Role) -> bool:
        """True for messages that belong to the turn of an AI SDK stream: the model's, and for a
        user's with results.

        A user's message before the answer is the run's prompt.
        """
        if role is Role.USER:
            return self._has_answer or self.has_unanswered_calls or self._is_begun
        return role is Role.MODEL

    def _message_finished(self, event: MessageFinished) -> None:
        """Ends the AI SDK step of a model message."""
        if event.message_id in self._results:
            return
        self._reason = event.finish_reason or self._reason
        self.end_parts(event.message_id)
        self._is_reset = False
        self.write({"type": "finish-step"})

    def _message_dropped(self, event: MessageDropped) -> None:
        """Retracts the current step. If the client cannot do that, the AI SDK stream fails."""
        self._message_ids.discard(event.message_id)
        self.take_parts([event.message_id])
        # A step that is taken back is still open for the client: the next message goes on in it.
        self._is_reset = event.message_id in self.seen
        self.seen.discard(event.message_id)
        if not self._is_reset:
            return
        # A step behind another cannot be taken back.
        if self._quirks.resets and event.message_id == self._step:
            self.write({"type": "reset-step"})
        else:
            self._fail_stream("the answer broke off; send the request again")

    # steps: the run

    def _run_started(self, event: RunStarted) -> None:  # noqa: ARG002 its id is no part of the stream
        """Begins the AI SDK stream if calls of the earlier conversation have no result yet."""
        # Their results come before the run's first message, which otherwise begins the stream.
        if self.has_unanswered_calls:
            self.begin_stream()

    def _state_snapshot(self, event: StateSnapshot) -> None:
        """Writes the shared state as a transient data part of the AI SDK stream."""
        self.begin_stream()
        self.write(
            {
                "type": "data-state",
                "id": "state",
                "data": event.state,
                "transient": True,
            }
        )

    def _state_delta(self, event: StateDelta) -> None:
        """Writes a change of the shared state as a transient data part of the AI SDK stream."""
        self.begin_stream()
        operations = [dict(operation) for operation in event.operations]
        self.write(
            {
                "type": "data-state-delta",
                "data": operations,
                "transient": True,
            }
        )

    def _custom(self, event: Custom) -> None:
        """Writes a custom event: a preliminary tool output, or an AI SDK data part."""
        value = if_object(event.value)
        if event.name == _PRELIMINARY and if_text(value.get("call_id")) in self.calls:
            output = {"toolCallId": value["call_id"], "output": value.get("result")}
            self.write(
                {
                    "type": "tool-output-available",
                    **output,
                    "preliminary": True,
                }
            )
            return
        self.begin_stream()
        if event.name.startswith("data-") and event.name != "data-":
            self.write({"type": event.name, "data": event.value})
        else:
            name = event.name.replace("_", "-")
            self.write(
                {
                    "type": f"data-{name}",
                    "data": event.value,
                    "transient": True,
                }
            )

    def _run_finished(self, event: RunFinished) -> None:
        """Ends the AI SDK stream, with a question for each interrupt."""
        self.over = True
        self.begin_stream()
        self.end_parts()
        if event.outcome == "cancelled":
            self.write({"type": "abort", "reason": "cancelled"})
            return
        for interrupt in event.pending:
            if interrupt.reason != "tool":  # the client finds the calls that are its own
                self.write(self._dump_question(interrupt))
        self._write_finish("tool-calls" if event.pending else None)

    def _run_error(self, event: RunError) -> None:
        """Ends the stream with the error's message."""
        self._fail_stream(event.error.message)

    STEPS = {
        **PartEncoder.PART_STEPS,
        MessageStarted: _message_started,
        MessageFinished: _message_finished,
        MessageDropped: _message_dropped,
        RunStarted: _run_started,
        RunFinished: _run_finished,
        RunError: _run_error,
        StateSnapshot: _state_snapshot,
        StateDelta: _state_delta,
        Custom: _custom,
    }

    def _dump_question(self, interrupt: Interrupt) -> Json:
        """Returns the AI SDK chunk that asks for an approval, or a data chunk for any other
        interrupt."""
        call = ""
        if interrupt.call is not None:
            call = interrupt.call.id
        call_id = next((id_ for id_ in (*interrupt.parent, call) if id_), "")
        if interrupt.reason == "approval" and call_id in self.calls:
            ids = {"approvalId": interrupt.id, "toolCallId": call_id}
            more = {"reason": interrupt.message, "signature": interrupt.signature}
            return {"type": "tool-approval-request", **ids, **drop_none(more)}
        expires = interrupt.expires_at
        fields: Json = {
            "id": interrupt.id,
            "reason": interrupt.reason,
            "message": interrupt.message,
            "schema": interrupt.schema and dict(interrupt.schema),
            "toolCallId": call_id or None,
            "expiresAt": None if expires is None else expires.isoformat(),
            "signature": interrupt.signature,
            "metadata": dict(interrupt.metadata) or None,
        }
        data = drop_none(fields)
        return {
            "type": "data-interrupt",
            "id": interrupt.id,
            "data": data,
            "transient": True,
        }

    def _fail_stream(self, message: str) -> None:
        """Ends the AI SDK UI message stream with an error chunk."""
        self.over = True
        self.begin_stream()
        self.end_parts()
        self.write({"type": "error", "errorText": message})
        self.write({"type": "finish", "finishReason": "error"})

    def _write_finish(self, reason: str | None) -> None:
        """Writes the chunk that ends an AI SDK stream, with the metadata of its message. `reason`:
        None for that of the last model message."""
        finish: Json = {
            "type": "finish",
            "finishReason": reason or _REASONS.get(self._reason, "other"),
        }
        if metadata := self._turn_metadata():
            finish["messageMetadata"] = metadata
        self.write(finish)

    def _turn_metadata(self) -> Json:
        """Returns the metadata of the UI message, or an empty object if the AI SDK stream has only
        its end."""
        if self._goes_on or not self._events:
            return {}
        # Deltas are left out of the events that are kept: the parts that they made are in their
        # ends.
        messages = [message for message in fold(self._events) if _is_of_answer(message)]
        ui_messages = dump_ui(messages, [], "v7")
        if len(ui_messages) == 1:
            metadata = dict(if_object(ui_messages[0].get("metadata")))
        else:
            metadata = {}
        if not self._quirks.extras:
            metadata.pop(OURS, None)
        return metadata


def encoder(**envelope: Any) -> Encoder:
    """Returns an encoder for one run."""
    return Encoder(envelope)


def envelope(request: RunRequest | None, *, id: str, now: datetime) -> Json:  # noqa: A002, ARG001 the protocol's
    """Returns the arguments of `encoder` for an AI SDK request."""
    if request is None:
        return {}
    return {"request": request}


def envelope_again(request: RunRequest, *, id: str, now: datetime) -> Json:  # noqa: A002 the protocol's
    """Returns the arguments of `encoder` for a client that reads an AI SDK stream from its
    beginning.

    The client starts its message anew, of which the run may be only the end.
    """
    return {**envelope(request, id=id, now=now), "again": True}


def _chunks_before(before: Sequence[Message], quirks: Quirks) -> list[Json]:
    """Returns the last answer of a conversation as AI SDK chunks, or an empty list without one."""
    messages = _last_answer(before)
    if not messages:
        return []
    run = Encoder({"quirks": quirks})
    # The answer before is written as if it were streamed once more, without what begins and ends a
    # stream.
    chunks = [dict(chunk) for event in unfold(messages) for chunk in run.objects(event)]
    described = [
        {"type": "message-metadata", "messageMetadata": chunk["messageMetadata"]}
        for chunk in run.close_objects()
        if "messageMetadata" in chunk
    ]
    return [*(chunk for chunk in chunks if chunk["type"] not in _STREAM_CHUNKS), *described]


def _last_answer(messages: Sequence[Message]) -> list[Message]:
    """Returns the messages of the last answer in an AI SDK conversation."""
    names = _names_of_answer(messages)
    if not names:
        return []
    turn = names[0] or names[-1]
    answer = dropwhile(
        lambda message: message.role is not Role.MODEL or turn not in (message.turn, message.id),
        messages,
    )
    return [message for message in answer if _is_of_answer(message)]


def _names_of_answer(messages: Sequence[Message]) -> list[str]:
    """Returns the AI SDK turn and the id of the last model message, as far as it has them."""
    for message in reversed(messages):
        if message.role is Role.MODEL:
            return [name for name in (message.turn, message.id) if name is not None]
    return []


def _is_of_answer(message: Message) -> bool:
    """True for a message of the answer in an AI SDK stream: a model message, or one of results
    alone."""
    return message.role is Role.MODEL or all(
        isinstance(piece, ToolResultPart | ToolCallPart) for piece in message.content
    )
