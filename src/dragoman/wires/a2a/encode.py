"""Events of a run → the objects of a task's stream (`StreamResponse`): the task first, then its
status and what it gives, piece by piece.

What the agent says are artifacts: a text is streamed into its own; a call, a result and a file are
one each; the shared state is one that is replaced. Thinking is the message of a working status. The
protocol can replace an artifact, so what is retracted is replaced by an empty one.

Events that the protocol has no form for wait in `pending` and travel with the next object, under
our extension. There the first piece of an artifact names the part that it shows (`delta`), and the
object that ends a part says so (`finished`). From these three our decoder has the very events;
other clients skip them.

One delta of text is always held back: the last piece of an artifact must say that it is the last.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, cast

from dragoman import json_bytes
from dragoman.codec.framing import frame_server_event
from dragoman.codec.json_values import if_text
from dragoman.codec.response_encoder import NO_OBJECTS, Objects
from dragoman.codec.run_encoder import Key, RunEncoder, split_frame
from dragoman.codec.serving import SSE_PING
from dragoman.errors import ContentRefusedError, StreamCutError
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
    StepFinished,
    StepStarted,
)
from dragoman.fold import compact
from dragoman.inner_runs import InnerRuns
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss
from dragoman.message import (
    DataPart,
    FilePart,
    LinkPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.request import RunRequest
from dragoman.wires.a2a.content import dump_content, dump_data
from dragoman.wires.a2a.encode_objects import (
    WORKING,
    ArtifactIds,
    ArtifactPart,
    TaskObjects,
    dump_part_end,
    strip_error,
)
from dragoman.wires.a2a.interrupts import dump_pending, waiting_state
from dragoman.wires.a2a.messages import dump_message, keep_protocol_fields
from dragoman.wires.a2a.quirks import EXTENSION, OWN, PATCH_TYPE, dump_events, text_of
from dragoman.wires.a2a.runs import rpc_result
from dragoman.wires.a2a.tasks import aggregate_task, dump_usage

__all__ = ["Encoder", "dump_response", "encoder", "envelope", "ping", "stream_type"]

_encode = json_bytes.encode
stream_type = "text/event-stream"
"""Media type of a stream."""
ping = SSE_PING
"""Bytes that keep an idle stream open."""
_IN_ARTIFACTS = (TextPart, DataPart, LinkPart, FilePart, ToolCallPart, ToolResultPart)


class Encoder(RunEncoder[ArtifactPart]):
    """Writes the events of a run as stream objects, and as bytes.

    Keys of `envelope`:
        task_id, context_id: ids of the task and of its conversation.
        history: A2A messages that the task begins with.
        goes_on: True if the task existed before, so that it begins as a working one.
        now: returns the time for a status.
        metadata: of the task.
        rpc_id: id of the JSON-RPC request that the objects answer. Without it they are plain
            objects, as in the REST binding.
        extras: False if the extension is not sent.
    """

    def __init__(self, envelope: JsonMap) -> None:
        """Creates the A2A encoder of one run. `envelope`: see `envelope`."""
        super().__init__()
        self._envelope = envelope
        self._extras: bool = envelope.get("extras", True)
        task_id: str = envelope.get("task_id") or "task"
        context_id: str = envelope.get("context_id") or task_id
        self._task = TaskObjects(task_id, context_id, envelope.get("now"), extras=self._extras)
        self._inner = InnerRuns()
        self._messages: dict[str, MessageStarted] = {}
        self._artifacts: dict[str, list[str]] = {}
        """Message id → ids of the artifacts that show it."""
        self._artifact_ids = ArtifactIds()
        self._held: tuple[Key, ArtifactPart, str] | None = None
        """The last delta of text, which is not written yet, with its part and key."""
        self._is_begun = self._is_run = self._has_state = False

    def frame(self, data: JsonMap) -> bytes:
        """Implements `RunEncoder.frame` for A2A."""
        if "rpc_id" in self._envelope:
            data = rpc_result(data, self._envelope["rpc_id"])
        return frame_server_event(_encode(data))

    def delta_bytes(self, event: PartDelta) -> bytes | None:
        """Returns the bytes of the delayed text of an A2A stream if this delta continues it, or
        None for the slow path."""
        if self._held is None or self.pending or type(event.delta) is not str or not event.delta:
            return None
        key, part, text = self._held
        if not part.is_begun or key[1] != event.index or key[0] != event.message_id:
            return None
        if part.frame is None:
            # All further pieces differ in their text alone, so one is made as an object, and its
            # bytes are cut at the text.
            self._write_piece(part, [{"text": ""}], append=True, last=False)
            part.frame = split_frame(self._frame_all(self._take_objects()))
        part.deltas.append(event.delta)
        self._held = key, part, event.delta
        before, behind = part.frame
        return before + _encode(text) + behind

    def admit(self, event: Event) -> bool:
        """Implements `RunEncoder.admit` for A2A. Begins the task, and carries the events of runs
        within tools."""
        if self.over:
            return False
        if not self._is_begun:
            self._begin_task(event)
            if self._is_run:  # the task tells of it
                return False
        if type(event) is PartDelta and (event.message_id, event.index) in self.open:
            return True
        # Clients see nothing of runs within tools, but that the task still works.
        if self._inner.has(event):
            self._carry(strip_error(event))
            self._write_working()
            return False
        return True

    def close_objects(self) -> Objects:
        """Implements `RunEncoder.close_objects` for A2A. Without events there is no task."""
        if self._is_begun:
            return super().close_objects()
        return NO_OBJECTS

    def end_stream(self) -> None:
        """Implements `RunEncoder.end_stream` for A2A. A run without an end was cut. Messages alone
        are a completed task."""
        # Messages without a run, as a gateway has them, are complete when they end.
        if self._is_run:
            error = StreamCutError("the run was cut before its end. Ask again.")
            self._end_failed(RunError(error))
        else:
            self._write_held()
            self._write_end("TASK_STATE_COMPLETED", [])

    # objects

    def _begin_task(self, event: Event) -> None:
        """Writes the A2A task, which comes before all updates."""
        self._is_begun = True
        self._is_run = isinstance(event, RunStarted) and not self._inner.has(event)
        # A new task is reported as submitted first, and works from then on.
        state = "TASK_STATE_SUBMITTED"
        if self._envelope.get("goes_on"):
            state = WORKING
        metadata = dict(cast("JsonMap", self._envelope.get("metadata") or {}))
        if self._extras:
            events = dump_events([event] if self._is_run else [])
            metadata[EXTENSION] = {"type": "RUN_STARTED", "events": "[]", **events}
        history = cast("Iterable[Any]", self._envelope.get("history") or ())
        self.write(self._task.task(state, history, metadata))
        if state != WORKING:
            self.write(self._task.status_update(WORKING))

    def _carry(self, event: Event) -> None:
        """Keeps an event for the next object, because it has no object of its own."""
        self._write_held()
        self.pending.append(event)

    def _take_carried(self, **fields: str) -> Json:
        """Returns the `metadata` field with the waiting events and these fields, or nothing without
        the A2A extension."""
        events, self.pending = self.pending, []
        if not self._extras:
            return {}
        return {
            "metadata": {
                EXTENSION: {
                    "events": "[]",
                    **dump_events(compact(events)),
                    **fields,
                }
            }
        }

    def _write_working(self, message: Json | None = None, **fields: str) -> None:
        """Writes an A2A working status that carries the waiting events."""
        if message is None and not self._extras:  # it would say nothing
            self.pending.clear()
        else:
            self.write(self._task.status_update(WORKING, message, self._take_carried(**fields)))

    def _write_piece(
        self, part: ArtifactPart, parts: list[Json], *, append: bool, last: bool, **fields: str
    ) -> None:
        """Writes a piece of the artifact that shows a part.

        Args:
            part: the part of the message.
            parts: the A2A parts of the piece.
            append: True if the piece continues the artifact, False if it begins it.
            last: True if no further piece follows.
            fields: further fields of the extension.
        """
        artifact: Json = {"artifactId": part.artifact_id}
        if not append:
            artifact["name"] = part.name
            message_id, index = part.key
            artifact |= self._task.extension({"messageId": message_id, "index": str(index)})
        artifact["parts"] = parts
        carried: Json = {}
        if self.pending or fields or not append:
            carried = self._take_carried(**fields)
        part.is_begun = True
        self.write(self._task.artifact_update(artifact, carried, append=append, last=last))

    def _write_artifact(
        self,
        name: str,
        part: Json,
        *,
        append: bool = False,
    ) -> None:
        """Writes an A2A artifact that belongs to the run instead of a message."""
        artifact = self._task.whole_artifact(name, part)
        self.write(
            self._task.artifact_update(artifact, self._take_carried(), append=append, last=True)
        )

    def _write_held(self, *, last: bool = False, **fields: str) -> None:
        """Writes the text of an A2A artifact that was held back, as an update of the task."""
        if self._held is None:
            return
        (_, part, text), self._held = self._held, None
        if not part.is_begun:
            fields["delta"] = text_of(part.key)
        self._write_piece(
            part,
            [{"text": text}],
            append=part.is_begun,
            last=last,
            **fields,
        )

    # steps: messages

    def _message_started(self, event: MessageStarted) -> None:
        """Begins a message, whose start travels with its first artifact."""
        self._carry(event)
        self._messages[event.message_id] = event

    def _part_started(self, event: PartStarted) -> None:
        """Opens a part, with an A2A artifact of its own unless it is thinking."""
        self._carry(event)
        # A part that starts again begins another artifact; what was streamed into the first one
        # stays.
        key = (event.message_id, event.index)
        self.take_part(key)
        if not self._is_seen(event):
            return
        part = ArtifactPart(key, event.part, "")
        if not isinstance(event.part, ThinkingPart):
            # Clients find a call by its id, so its artifact has that id too.
            call_id = ""
            if isinstance(event.part, ToolCallPart):
                call_id = event.part.id
            part.artifact_id = self._artifact_ids.take(call_id or event.message_id)
            self._artifacts.setdefault(event.message_id, []).append(part.artifact_id)
        self.open[key] = part

    def _is_seen(self, event: PartStarted) -> bool:
        """True if clients see the A2A part: results, and what the first candidate of the model
        says."""
        if isinstance(event.part, ToolResultPart):
            return True
        message = self._messages.get(event.message_id)
        is_answer = message is None or (message.role is Role.MODEL and message.candidate == 0)
        return is_answer and isinstance(event.part, (*_IN_ARTIFACTS, ThinkingPart))

    def _part_delta(self, event: PartDelta) -> None:
        """Delays a delta of text in an A2A stream by one, and carries any other delta."""
        part = self.open.get((event.message_id, event.index))
        if part is None:
            self._carry(event)
            return
        if not event.delta:
            return
        # The last piece of an artifact must say that it is the last, so each text waits for the
        # next one.
        if isinstance(event.delta, str) and isinstance(part.begun, TextPart):
            self._write_held()
            self._held = part.key, part, event.delta
        else:
            self._carry(event)
            if isinstance(part.begun, ThinkingPart):
                self._write_working()
        part.deltas.append(event.delta)

    def _part_finished(self, event: PartFinished) -> None:
        """Ends a part by the last piece of its A2A artifact."""
        part = self.take_part((event.message_id, event.index))
        if part is None:
            self._carry(event)
            return
        finished = dump_part_end(event, part)
        # The text that is held is the last piece, if it is this part's: one object less.
        if self._held is not None and self._held[1] is part:
            self._write_held(last=True, finished=finished)
            return
        self._write_held()
        if isinstance(event.part, ThinkingPart):
            thought = [{"text": event.part.text, "metadata": {"thought": True}}]
            message = None
            if event.part.text:
                message = self._task.message(thought)
            self._write_working(message, finished=finished)
        elif not part.artifact_id:
            self._write_working(finished=finished)
        else:
            is_begun = part.is_begun
            parts = [] if is_begun else dump_content(event.part)
            self._write_piece(
                part, parts or [{"text": ""}], append=is_begun, last=True, finished=finished
            )

    def _message_dropped(self, event: MessageDropped) -> None:
        """Replaces the A2A artifacts of a retracted message by empty ones."""
        self._carry(event)
        self.take_parts([event.message_id])
        artifact_ids = self._artifacts.pop(event.message_id, [])
        for artifact_id in artifact_ids:
            artifact = self._task.empty_artifact(artifact_id)
            self.write(self._task.artifact_update(artifact, self._take_carried(), last=True))
        if not artifact_ids:
            self._write_working()

    # steps: the run

    def _state_snapshot(self, event: StateSnapshot) -> None:
        """Writes the shared state as an A2A artifact."""
        self._carry(event)
        self._has_state = True
        self._write_artifact("state", dump_data(event.state))

    def _state_delta(self, event: StateDelta) -> None:
        """Appends a change to the A2A artifact of the shared state."""
        self._carry(event)
        operations = [dict(operation) for operation in event.operations]
        # Changes are appended to the artifact of the state, so that a reader that comes late can
        # apply them in order.
        part = {"data": operations, "mediaType": PATCH_TYPE}
        self._write_artifact("state", part, append=self._has_state)
        self._has_state = True

    def _custom(self, event: Custom) -> None:
        """Carries a custom event on a working status."""
        self._carry(event)
        self._write_working()

    def _run_finished(self, event: RunFinished) -> None:
        """Ends the A2A task: completed, cancelled, or waiting for its client."""
        self._write_held()
        # A text is in the artifact of the model's last message already.
        if event.result is not None and not isinstance(event.result, str):
            self._write_artifact("result", dump_data(event.result))
        state, message = "TASK_STATE_COMPLETED", None
        if event.outcome == "cancelled":
            state = "TASK_STATE_CANCELED"
        elif event.outcome == "pending" or event.pending:
            state = waiting_state(event.pending)
            message_id = f"{self._task.task_id}:question:{event.run_id}"
            question = dump_pending(event.pending, message_id, extras=self._extras)
            message = {**question, **self._task.ids}
        self._write_end(state, [event], message, **dump_usage(event.usage))

    def _end_failed(self, event: RunError) -> None:
        """Ends the A2A task as failed or rejected."""
        self._write_held()
        state = "TASK_STATE_FAILED"
        if isinstance(event.error, ContentRefusedError):
            state = "TASK_STATE_REJECTED"
        message = self._task.message([{"text": event.error.message or "the agent failed"}])
        self._write_end(state, [strip_error(event)], message)

    def _write_end(
        self, state: str, events: list[Event], message: Json | None = None, **fields: str
    ) -> None:
        """Writes the status that ends the A2A stream."""
        self.pending += events
        carried = self._take_carried(type="end", **fields)
        self.write(self._task.status_update(state, message, carried))
        self.over = True

    STEPS = {
        PartDelta: _part_delta,
        PartStarted: _part_started,
        PartFinished: _part_finished,
        MessageStarted: _message_started,
        MessageFinished: _carry,
        MessageDropped: _message_dropped,
        RunStarted: _carry,
        RunFinished: _run_finished,
        RunError: _end_failed,
        StepStarted: _carry,
        StepFinished: _carry,
        StateSnapshot: _state_snapshot,
        StateDelta: _state_delta,
        Custom: _custom,
    }


def encoder(**envelope: Any) -> Encoder:
    """Returns an encoder for one run."""
    return Encoder(envelope)


def envelope(request: RunRequest | None, *, id: str, now: datetime) -> Json:  # noqa: A002 the protocol's
    """Returns the arguments of `encoder` for an A2A request.

    Args:
        request: the request, or None if it could not be read.
        id: id of a new task.
        now: time of the request.
    """
    if request is None:
        return {"task_id": id, "context_id": id, "now": lambda: now}
    task_id = if_text(OWN.fields(request.native).get("taskId"))
    context_id = request.thread_id or id
    ids = {"taskId": task_id or id, "contextId": context_id}
    # The agent's own history has what came before; the task begins with what is said to it now.
    questions = [message for message in request.messages if message.role is Role.USER][-1:]
    fields: Json = {
        "task_id": ids["taskId"],
        "context_id": context_id,
        "goes_on": bool(task_id),
        "history": [
            keep_protocol_fields({**dump_message(message, f"{id}:asked"), **ids})
            for message in questions
        ],
        "now": lambda: now,
    }
    notes = OWN.notes(request.native)
    if "rpc" in notes:
        fields["rpc_id"] = notes["rpc"].get("id")
    return fields


def dump_response(
    events: Iterable[Event],
    *,
    losses: list[Loss] | None = None,  # noqa: ARG001 nothing is lost
    **envelope: Any,
) -> Json:
    """Returns the complete A2A task that a run's events make. `envelope` is that of `encoder`."""
    events, run = list(events), Encoder(envelope)
    objects = [data for event in events for data in run.objects(event)]
    task = aggregate_task([*objects, *run.close_objects()])
    if envelope.get("extras", True):
        fields = dump_events(compact([strip_error(event) for event in events]))
        # A task that is read whole has no objects to carry the events, so it carries all of them.
        carried = {"type": "run", "run": fields.get("events", "[]")}
        task["metadata"] = {**task.get("metadata", {}), EXTENSION: carried}
    return task
