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

from collections.abc import Iterable, Mapping
from copy import copy
from datetime import datetime
from typing import Any, cast

import msgspec

from dragoman import json_bytes
from dragoman.codec import run_encoder
from dragoman.codec.encoder import NO_OBJECTS, Objects
from dragoman.codec.framing import frame_server_event
from dragoman.codec.json_values import if_text
from dragoman.codec.run_encoder import Key, RunEncoder, split_frame
from dragoman.codec.serving import SSE_PING
from dragoman.errors import ContentRefusedError, StreamCutError
from dragoman.event import (
    Custom,
    Event,
    InnerRuns,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
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
from dragoman.fold import close_part, compact
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss
from dragoman.message import (
    Content,
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
from dragoman.wires.a2a.encode_objects import WORKING, ArtifactIds, TaskObjects
from dragoman.wires.a2a.interrupts import dump_pending, waiting_state
from dragoman.wires.a2a.messages import dump_message
from dragoman.wires.a2a.quirks import CANONICAL, EXTENSION, OWN, PATCH_TYPE, text_of, with_events
from dragoman.wires.a2a.runs import rpc_result
from dragoman.wires.a2a.tasks import aggregated, dump_usage

__all__ = ["Encoder", "dump_response", "encoder", "envelope", "ping", "stream_type"]

_encode = json_bytes.encode
stream_type = "text/event-stream"
"""Of a stream's bytes."""
ping = SSE_PING
"""Keeps a stream open."""
_MESSAGE_FIELDS = (
    "messageId",
    "role",
    "parts",
    "contextId",
    "taskId",
    "extensions",
    "referenceTaskIds",
)
"""Fields of a message beside its metadata."""
_IN_ARTIFACTS = (TextPart, DataPart, LinkPart, FilePart, ToolCallPart, ToolResultPart)
_ARTIFACT_NAMES: Mapping[type, str] = {
    TextPart: "response",
    OpenText: "response",
    ToolCallPart: "tool-call",
    ToolResultPart: "tool-result",
}
"""Type of a part → the name of its artifact; others are files."""


class ArtifactPart(run_encoder.EncodedPart):
    """A part of a message that clients see, and whose end is to come."""

    __slots__ = ("artifact_id", "is_begun", "key", "name")

    def __init__(self, key: Key, begun: Content | OpenText, artifact_id: str) -> None:
        super().__init__(begun)
        self.key = key
        self.artifact_id = artifact_id
        """Empty for thinking, which is no artifact."""
        self.name = _ARTIFACT_NAMES.get(type(begun), "file")
        self.is_begun = False
        """Whether a piece of its artifact was written."""


class Encoder(RunEncoder[ArtifactPart]):
    """Events → objects, and their bytes.

    `envelope`: `task_id`, `context_id`; `history`: messages of A2A that the task begins with;
    `goes_on`: the task was there before, and begins as one that works; `now`: a callable that gives
    the time of a status; `metadata` of the task; `rpc_id`: of the request, where the bytes are
    answers of JSON-RPC (without it they are plain objects, as in the REST binding); `extras`:
    whether what the protocol has no field for is sent.
    """

    def __init__(self, envelope: JsonMap) -> None:
        super().__init__()
        self._envelope = envelope
        self._extras: bool = envelope.get("extras", True)
        task_id: str = envelope.get("task_id") or "task"
        context_id: str = envelope.get("context_id") or task_id
        self._task = TaskObjects(task_id, context_id, envelope.get("now"), extras=self._extras)
        self._inner = InnerRuns()
        self._messages: dict[str, MessageStarted] = {}
        self._artifacts: dict[str, list[str]] = {}
        """Id of a message → ids of the artifacts that show it."""
        self._artifact_ids = ArtifactIds()
        self._held: tuple[Key, ArtifactPart, str] | None = None
        """The delta of text that is not written yet, and the part that it is of."""
        self._is_begun = self._is_run = self._has_state = False

    def frame(self, data: JsonMap) -> bytes:
        """See `RunEncoder.frame`."""
        if "rpc_id" in self._envelope:
            data = rpc_result(data, self._envelope["rpc_id"])
        return frame_server_event(_encode(data))

    def delta_bytes(self, event: PartDelta) -> bytes | None:
        """The bytes of the text that is held, if this is more of the same and nothing else is to be
        told; `None`: it is not so."""
        if self._held is None or self.pending or type(event.delta) is not str or not event.delta:
            return None
        key, part, text = self._held
        if not part.is_begun or key[1] != event.index or key[0] != event.message_id:
            return None
        if part.frame is None:
            # All further pieces differ in their text alone, so one is made as an object, and its
            # bytes are cut at the text.
            self._write_piece(part, [{"text": ""}], append=True, last=False)
            part.frame = split_frame(self._framed(self._taken()))
        part.deltas.append(event.delta)
        self._held = key, part, event.delta
        before, behind = part.frame
        return before + _encode(text) + behind

    def admit(self, event: Event) -> bool:
        """See `RunEncoder.admit`: begins the task, and carries the events of runs within tools."""
        if self.over:
            return False
        if not self._is_begun:
            self._begin(event)
            if self._is_run:  # the task tells of it
                return False
        if type(event) is PartDelta and (event.message_id, event.index) in self.open:
            return True
        # Clients see nothing of runs within tools, but that the task still works.
        if self._inner.has(event):
            self._carry(_without_details(event))
            self._write_working()
            return False
        return True

    def close_objects(self) -> Objects:
        """See `RunEncoder.close_objects`. Of no events there is no task."""
        return super().close_objects() if self._is_begun else NO_OBJECTS

    def end_stream(self) -> None:
        """See `RunEncoder.end_stream`. A run that was not ended was cut; messages alone are a task
        that is completed."""
        # Messages without a run, as a gateway has them, are complete when they end.
        if self._is_run:
            error = StreamCutError("the run was cut before its end. Ask again.")
            self._end_failed(RunError(error))
        else:
            self._release()
            self._write_end("TASK_STATE_COMPLETED", [])

    # objects

    def _begin(self, event: Event) -> None:
        """Writes the task, before anything else of it."""
        self._is_begun = True
        self._is_run = isinstance(event, RunStarted) and not self._inner.has(event)
        # A new task is told as submitted first, and works from then on.
        state = WORKING if self._envelope.get("goes_on") else "TASK_STATE_SUBMITTED"
        metadata = dict(cast("JsonMap", self._envelope.get("metadata") or {}))
        if self._extras:
            events = with_events([event] if self._is_run else [])
            metadata[EXTENSION] = {"type": "RUN_STARTED", "events": "[]", **events}
        history = cast("Iterable[Any]", self._envelope.get("history") or ())
        self.write(self._task.task(state, history, metadata))
        if state != WORKING:
            self.write(self._task.status_update(WORKING))

    def _carry(self, event: Event) -> None:
        """Leaves an event that has no object of its own to the next object."""
        self._release()
        self.pending.append(event)

    def _carried(self, **fields: str) -> Json:
        """Returns the field `metadata` of an object: the events that wait, and these fields."""
        events, self.pending = self.pending, []
        if not self._extras:
            return {}
        return {"metadata": {EXTENSION: {"events": "[]", **with_events(compact(events)), **fields}}}

    def _write_working(self, message: Json | None = None, **fields: str) -> None:
        """Writes a status that goes on, with the events that wait."""
        if message is None and not self._extras:  # it would say nothing
            self.pending.clear()
        else:
            self.write(self._task.status_update(WORKING, message, self._carried(**fields)))

    def _write_piece(
        self, part: ArtifactPart, parts: list[Json], *, append: bool, last: bool, **fields: str
    ) -> None:
        """Writes a piece of the artifact that shows a part."""
        artifact: Json = {"artifactId": part.artifact_id}
        if not append:
            artifact["name"] = part.name
            message_id, index = part.key
            artifact |= self._task.extension({"messageId": message_id, "index": str(index)})
        artifact["parts"] = parts
        carried: Json = {}
        if self.pending or fields or not append:
            carried = self._carried(**fields)
        part.is_begun = True
        self.write(self._task.artifact_update(artifact, carried, append=append, last=last))

    def _write_artifact(self, name: str, part: Json, *, append: bool = False) -> None:
        artifact = self._task.whole_artifact(name, part)
        self.write(self._task.artifact_update(artifact, self._carried(), append=append, last=True))

    def _release(self, *, last: bool = False, **fields: str) -> None:
        """Writes the text that is held."""
        if self._held is None:
            return
        (_, part, text), self._held = self._held, None
        if not part.is_begun:
            fields["delta"] = text_of(part.key)
        self._write_piece(part, [{"text": text}], append=part.is_begun, last=last, **fields)

    # steps: messages

    def _message_started(self, event: MessageStarted) -> None:
        self._carry(event)
        self._messages[event.message_id] = event

    def _part_started(self, event: PartStarted) -> None:
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
            call_id = event.part.id if isinstance(event.part, ToolCallPart) else ""
            part.artifact_id = self._artifact_ids.take(call_id or event.message_id)
            self._artifacts.setdefault(event.message_id, []).append(part.artifact_id)
        self.open[key] = part

    def _is_seen(self, event: PartStarted) -> bool:
        """True if clients see the part: what the model says in its first candidate, and all
        results."""
        if isinstance(event.part, ToolResultPart):
            return True
        message = self._messages.get(event.message_id)
        is_answer = message is None or (message.role is Role.MODEL and message.candidate == 0)
        return is_answer and isinstance(event.part, (*_IN_ARTIFACTS, ThinkingPart))

    def _part_delta(self, event: PartDelta) -> None:
        part = self.open.get((event.message_id, event.index))
        if part is None:
            self._carry(event)
            return
        if not event.delta:
            return
        if isinstance(event.delta, str) and isinstance(part.begun, TextPart):
            self._release()
            self._held = part.key, part, event.delta
        else:
            self._carry(event)
            if isinstance(part.begun, ThinkingPart):
                self._write_working()
        part.deltas.append(event.delta)

    def _part_finished(self, event: PartFinished) -> None:
        part = self.take_part((event.message_id, event.index))
        if part is None:
            self._carry(event)
            return
        finished = _dump_end(event, part)
        # The text that is held is the last piece, if it is this part's: one object less.
        if self._held is not None and self._held[1] is part:
            self._release(last=True, finished=finished)
            return
        self._release()
        if isinstance(event.part, ThinkingPart):
            thought = [{"text": event.part.text, "metadata": {"thought": True}}]
            message = self._task.message(thought) if event.part.text else None
            self._write_working(message, finished=finished)
        elif not part.artifact_id:
            self._write_working(finished=finished)
        else:
            is_begun = part.is_begun
            shown = [] if is_begun else dump_content(event.part)
            self._write_piece(
                part, shown or [{"text": ""}], append=is_begun, last=True, finished=finished
            )

    def _message_dropped(self, event: MessageDropped) -> None:
        self._carry(event)
        self.take_parts([event.message_id])
        artifact_ids = self._artifacts.pop(event.message_id, [])
        for artifact_id in artifact_ids:
            artifact = self._task.retracted_artifact(artifact_id)
            self.write(self._task.artifact_update(artifact, self._carried(), last=True))
        if not artifact_ids:
            self._write_working()

    # steps: the run

    def _state_snapshot(self, event: StateSnapshot) -> None:
        self._carry(event)
        self._has_state = True
        self._write_artifact("state", dump_data(event.state))

    def _state_delta(self, event: StateDelta) -> None:
        self._carry(event)
        operations = [dict(operation) for operation in event.operations]
        # Changes are appended to the artifact of the state, so that a reader that comes late can
        # apply them in order.
        part = {"data": operations, "mediaType": PATCH_TYPE}
        self._write_artifact("state", part, append=self._has_state)
        self._has_state = True

    def _custom(self, event: Custom) -> None:
        self._carry(event)
        self._write_working()

    def _run_finished(self, event: RunFinished) -> None:
        self._release()
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
        self._release()
        state = "TASK_STATE_FAILED"
        if isinstance(event.error, ContentRefusedError):
            state = "TASK_STATE_REJECTED"
        message = self._task.message([{"text": event.error.message or "the agent failed"}])
        self._write_end(state, [_without_details(event)], message)

    def _write_end(
        self, state: str, events: list[Event], message: Json | None = None, **fields: str
    ) -> None:
        self.pending += events
        carried = self._carried(type="end", **fields)
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


def _dump_end(event: PartFinished, part: ArtifactPart) -> str:
    """Returns where the part is that ends, and the fields in which its start and its deltas make
    another part; all fields, and its type, if they make one of another type."""
    built = close_part(part.begun, part.deltas)
    if built is None or type(built) is not type(event.part):
        return text_of([*part.key, msgspec.to_builtins(event.part)])
    fields = {
        name: msgspec.to_builtins(value)
        for name in built.__struct_fields__
        if not _is_same(value := getattr(event.part, name), getattr(built, name))
    }
    return text_of([*part.key, fields] if fields else part.key)


def _is_same(value: Any, other: Any) -> bool:
    """True if two values are the same JSON, with the same order of keys: `1`, `1.0` and `true`
    differ."""
    return msgspec.json.encode(value) == msgspec.json.encode(other)


def _without_details(event: Event) -> Event:
    """An error without what the run had come to, of which the client has its part, and without what
    an upstream answered."""
    if not isinstance(event, RunError):
        return event
    # The exception itself belongs to the server, which logs it whole.
    error = copy(event.error)
    error.body = error.partial = error.result = None
    return RunError(error, event.run_id, event.native)


def encoder(**envelope: Any) -> Encoder:
    """An encoder of one run."""
    return Encoder(envelope)


def envelope(request: RunRequest | None, *, id: str, now: datetime) -> Json:  # noqa: A002 the protocol's
    """What `encoder` takes of a request: the task that it goes on with, else a new one of that id,
    and what was said to it."""
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
            _without_carried({**dump_message(message, f"{id}:asked"), **ids})
            for message in questions
        ],
        "now": lambda: now,
    }
    notes = OWN.notes(request.native)
    if "rpc" in notes:
        fields["rpc_id"] = notes["rpc"].get("id")
    return fields


def _without_carried(message: Json) -> Json:
    """Returns a message of a client's with the protocol's fields only."""
    metadata = {
        name: value for name, value in message.get("metadata", {}).items() if name != CANONICAL
    }
    fields = {name: message[name] for name in _MESSAGE_FIELDS if name in message}
    return {**fields, "metadata": metadata} if metadata else fields


def dump_response(
    events: Iterable[Event],
    *,
    losses: list[Loss] | None = None,  # noqa: ARG001 nothing is lost
    **envelope: Any,
) -> Json:
    """Events → the whole task that their stream tells of. `envelope`: as for `encoder`."""
    events, run = list(events), Encoder(envelope)
    objects = [data for event in events for data in run.objects(event)]
    task = aggregated([*objects, *run.close_objects()])
    if envelope.get("extras", True):
        fields = with_events(compact([_without_details(event) for event in events]))
        # A task that is read whole has no objects that could carry the events, so it carries all of
        # them.
        held = {"type": "run", "run": fields.get("events", "[]")}
        task["metadata"] = {**task.get("metadata", {}), EXTENSION: held}
    return task
