"""Events of a run → the objects of a task's stream (`StreamResponse`): the task first, then its states and what it gives, piece by piece.

What the agent says are artifacts: a text is streamed into its own, a call, a result, a file are one each; the shared state is one that is
replaced. Thinking stands in a message of a state that goes on. The protocol can replace an artifact, so what is retracted is replaced by
an empty one. What it has no form for stands under our extension, from which a decoder of ours has the very events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from datetime import datetime
from typing import Any, TypeAlias, cast

from dragoman import json_bytes
from dragoman.codec.encoder import Objects
from dragoman.codec.framing import event_bytes
from dragoman.codec.serving import SSE_PING
from dragoman.errors import ContentRefusedError, StreamCutError
from dragoman.event import (
    Custom,
    Event,
    MessageDropped,
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
from dragoman.fold import compact
from dragoman.inner_runs import InnerRuns
from dragoman.loss import Loss
from dragoman.message import Role, ThinkingPart
from dragoman.run_request import RunRequest
from dragoman.wires.a2a.content import dump_content, dump_data
from dragoman.wires.a2a.encode_parts import Key, OpenPart, Parts, finished_field, is_delta_shown
from dragoman.wires.a2a.interrupts import dump_pending, waiting_state
from dragoman.wires.a2a.messages import dump_message
from dragoman.wires.a2a.quirks import EXTENSION, OWN, text_of, with_events
from dragoman.wires.a2a.runs import rpc_result
from dragoman.wires.a2a.tasks import aggregated, dump_usage

__all__ = ["Encoder", "dump_response", "encoder", "envelope", "ping", "stream_type"]

stream_type = "text/event-stream"
"""Of a stream's bytes."""
ping = SSE_PING
"""Keeps a stream open."""
Object: TypeAlias = dict[str, Any]
_WORKING = "TASK_STATE_WORKING"
_MESSAGE = ("messageId", "role", "parts", "contextId", "taskId", "extensions", "referenceTaskIds")
"""Fields of a message beside its metadata."""
CANONICAL = "canonical_type"
"""Key in metadata of what the time before 1.0 wrote there."""
_PATCH = "application/json-patch+json"


class Encoder:
    """Events → objects, and their bytes. One delta of text is held until it is known whether it is the last of its text.

    `envelope`: `task_id`, `context_id`; `history`: messages of A2A that the task begins with; `goes_on`: the task was there before, and
    is told as one that works; `now`: a callable that gives the time of a state; `metadata` of the task; `rpc_id`: of the request, where
    the bytes are answers of JSON-RPC (they are plain objects else, as in the REST binding); `extras`: whether what the protocol has no
    field for is sent.
    """

    def __init__(self, envelope: Mapping[str, Any]) -> None:
        self._envelope = envelope
        self._task_id: str = envelope.get("task_id") or "task"
        self._context_id: str = envelope.get("context_id") or self._task_id
        self._extras: bool = envelope.get("extras", True)
        self._now: Callable[[], datetime] | None = envelope.get("now")
        self._parts = Parts()
        self._inner = InnerRuns()
        self._waiting: list[Event] = []
        """What the next object tells under our extension, before what it shows."""
        self._held: tuple[Key, OpenPart, str] | None = None
        self._out: list[Object] = []
        self._begun = self._over = self._run_known = self._has_state = False
        self._messages = 0

    def feed(self, event: Event) -> bytes:
        """One event → the bytes that tell of it."""
        if (
            type(event) is PartDelta and (data := self._piece(event)) is not None
        ):  # nearly all of a stream
            return data
        return self._framed(self.objects(event))

    def close(self) -> bytes:
        """The end of the events → the bytes that tell of it."""
        return self._framed(self.closing())

    def objects(self, event: Event) -> Objects:
        """One event → the objects that tell of it. What comes after the end of the run tells nothing."""
        if self._over:
            return ()
        if self._begun or not self._begin(event):
            self._take(event)
        return self._taken()

    def closing(self) -> Objects:
        """The end of the events. A run that was not ended was cut; messages alone are a task that is completed."""
        if self._over or not self._begun:
            return ()
        if self._run_known:
            self._run_error(RunError(StreamCutError("the run was cut before its end. Ask again.")))
        else:
            self._flush()
            self._end("TASK_STATE_COMPLETED", [])
        return self._taken()

    def _piece(self, event: PartDelta) -> bytes | None:
        """The bytes of the text that is held, where this is more of the same and nothing else is to be told; `None`: it is not so."""
        if self._held is None or self._waiting or type(event.delta) is not str or not event.delta:
            return None
        key, known, text = self._held
        if not known.is_begun or key[1] != event.index or key[0] != event.message_id:
            return None
        if known.frame is None:
            self._artifact(known, key, [{"text": ""}], append=True, last=False)
            before, field, behind = self._framed(self._taken()).rpartition(b'"text":""')
            known.frame = before + field.removesuffix(b'""'), behind
        known.deltas.append(event.delta)
        self._held = key, known, event.delta
        return known.frame[0] + json_bytes.encode(text) + known.frame[1]

    def _taken(self) -> list[Object]:
        out, self._out = self._out, []
        return out

    def _framed(self, objects: Objects) -> bytes:
        rpc_id = self._envelope.get("rpc_id", ...)
        framed = objects if rpc_id is ... else [rpc_result(each, rpc_id) for each in objects]
        return b"".join([event_bytes(json_bytes.encode(each)) for each in framed])

    # objects

    def _begin(self, event: Event) -> bool:
        """The task, before anything else of it → whether that tells the event."""
        self._begun = True
        state = _WORKING if self._envelope.get("goes_on") else "TASK_STATE_SUBMITTED"
        first = [event] if isinstance(event, RunStarted) and not self._inner.has(event) else []
        self._run_known = bool(first)
        task: Object = {
            "id": self._task_id,
            "contextId": self._context_id,
            "status": self._status(state),
        }
        if history := list(cast("Iterable[Any]", self._envelope.get("history") or ())):
            task["history"] = history
        metadata = dict(cast("Mapping[str, Any]", self._envelope.get("metadata") or {}))
        if self._extras:
            metadata[EXTENSION] = {"type": "RUN_STARTED", "events": "[]", **with_events(first)}
        self._out.append({"task": {**task, "metadata": metadata} if metadata else task})
        if state != _WORKING:
            self._out.append({"statusUpdate": {**self._ids(), "status": self._status(_WORKING)}})
        return self._run_known

    def _ids(self) -> Object:
        return {"taskId": self._task_id, "contextId": self._context_id}

    def _status(self, state: str, message: Object | None = None) -> Object:
        status: Object = {"state": state}
        if message is not None:
            status["message"] = message
        if self._now is not None:
            status["timestamp"] = (
                self._now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
            )
        return status

    def _metadata(self, **fields: str) -> Object:
        """The metadata of an object: what waits to be told, and these fields."""
        waiting, self._waiting = self._waiting, []
        if not self._extras:
            return {}
        return {
            "metadata": {EXTENSION: {"events": "[]", **with_events(compact(waiting)), **fields}}
        }

    def _message(self, parts: list[Object]) -> Object:
        self._messages += 1
        message_id = f"{self._task_id}:status:{self._messages}"
        return {"messageId": message_id, **self._ids(), "role": "ROLE_AGENT", "parts": parts}

    def _tell(self, message: Object | None = None, **fields: str) -> None:
        """A state that goes on, with what waits to be told."""
        if message is None and not self._extras:
            self._waiting.clear()
            return
        update = {
            **self._ids(),
            "status": self._status(_WORKING, message),
            **self._metadata(**fields),
        }
        self._out.append({"statusUpdate": update})

    def _artifact(
        self,
        known: OpenPart,
        key: Key,
        parts: list[Object],
        *,
        append: bool,
        last: bool,
        **fields: str,
    ) -> None:
        artifact: Object = {"artifactId": known.artifact_id}
        if not append:
            artifact["name"] = known.name
            if self._extras:
                place = {"messageId": key[0], "index": str(key[1])}
                artifact |= {"extensions": [EXTENSION], "metadata": {EXTENSION: place}}
        artifact["parts"] = parts
        update: Object = {**self._ids(), "artifact": artifact, "append": append, "lastChunk": last}
        if self._waiting or fields or not append:
            update |= self._metadata(**fields)
        known.is_begun = True
        self._out.append({"artifactUpdate": update})

    def _plain_artifact(
        self, name: str, part: Object, *, append: bool = False, **fields: str
    ) -> None:
        artifact: Object = {"artifactId": name, "name": name, "parts": [part]}
        if self._extras:
            artifact |= {"extensions": [EXTENSION], "metadata": {EXTENSION: {"type": name}}}
        update = {
            **self._ids(),
            "artifact": artifact,
            "append": append,
            "lastChunk": True,
            **self._metadata(**fields),
        }
        self._out.append({"artifactUpdate": update})

    # events

    def _take(self, event: Event) -> None:
        if (
            isinstance(event, PartDelta)
            and (known := self._parts.open.get((event.message_id, event.index))) is not None
        ):
            self._delta(event, known)
        elif self._inner.has(event):
            self._flush()
            self._waiting.append(_shown(event))
            self._tell()
        elif isinstance(event, PartStarted):
            self._wait(event)
            self._parts.started(event)
        elif isinstance(event, PartFinished):
            self._part_finished(event)
        elif isinstance(event, MessageStarted):
            self._wait(event)
            self._parts.message_started(event)
        elif isinstance(event, MessageDropped):
            self._dropped(event)
        elif isinstance(event, StateSnapshot):
            self._wait(event)
            self._has_state = True
            self._plain_artifact("state", dump_data(event.state))
        elif isinstance(event, StateDelta):
            self._wait(event)
            part = {"data": [dict(each) for each in event.operations], "mediaType": _PATCH}
            self._plain_artifact("state", part, append=self._has_state)
            self._has_state = True
        elif isinstance(event, Custom):
            self._wait(event)
            self._tell()
        elif isinstance(event, RunFinished):
            self._run_finished(event)
        elif isinstance(event, RunError):
            self._run_error(event)
        else:
            self._wait(event)

    def _wait(self, event: Event) -> None:
        """What has no object of its own is told with the next."""
        self._flush()
        self._waiting.append(event)

    def _flush(self, *, last: bool = False, **fields: str) -> None:
        if self._held is None:
            return
        (key, known, text), self._held = self._held, None
        if not known.is_begun:
            fields["delta"] = text_of(key)
        self._artifact(known, key, [{"text": text}], append=known.is_begun, last=last, **fields)

    def _delta(self, event: PartDelta, known: OpenPart) -> None:
        if not event.delta:
            return
        if is_delta_shown(event, known):
            self._flush()
            self._held = ((event.message_id, event.index), known, str(event.delta))
        else:
            self._wait(event)
            if isinstance(known.part, ThinkingPart):
                self._tell()
        known.deltas.append(event.delta)

    def _part_finished(self, event: PartFinished) -> None:
        key = (event.message_id, event.index)
        known = self._parts.open.pop(key, None)
        if known is None:
            self._wait(event)
            return
        finished = finished_field(event, known)
        if self._held is not None and self._held[1] is known:
            self._flush(last=True, finished=finished)
            return
        self._flush()
        shown = dump_content(event.part)
        if isinstance(event.part, ThinkingPart):
            thought = [{"text": event.part.text, "metadata": {"thought": True}}]
            self._tell(self._message(thought) if event.part.text else None, finished=finished)
        elif known.is_begun:
            self._artifact(known, key, [{"text": ""}], append=True, last=True, finished=finished)
        elif known.artifact_id:
            self._artifact(
                known, key, shown or [{"text": ""}], append=False, last=True, finished=finished
            )
        else:
            self._tell(finished=finished)

    def _dropped(self, event: MessageDropped) -> None:
        self._wait(event)
        artifacts = self._parts.dropped(event.message_id)
        for artifact_id in artifacts:
            artifact: Object = {
                "artifactId": artifact_id,
                "parts": [{"text": ""}],
                "metadata": {"retracted": True},
            }
            if self._extras:
                artifact["metadata"] = {"retracted": True, EXTENSION: {"type": "retracted"}}
            update = {
                **self._ids(),
                "artifact": artifact,
                "append": False,
                "lastChunk": True,
                **self._metadata(),
            }
            self._out.append({"artifactUpdate": update})
        if not artifacts:
            self._tell()

    # the end

    def _run_finished(self, event: RunFinished) -> None:
        self._flush()
        if event.result is not None and not isinstance(event.result, str):
            self._plain_artifact("result", dump_data(event.result))
        state, message = "TASK_STATE_COMPLETED", None
        if event.outcome == "cancelled":
            state = "TASK_STATE_CANCELED"
        elif event.outcome == "pending" or event.pending:
            state = waiting_state(event.pending)
            message = {
                **dump_pending(
                    event.pending, f"{self._task_id}:question:{event.run_id}", extras=self._extras
                ),
                **self._ids(),
            }
        self._end(state, [event], message, **dump_usage(event.usage))

    def _run_error(self, event: RunError) -> None:
        self._flush()
        refused = isinstance(event.error, ContentRefusedError)
        shown = _shown(event)
        words = self._message([{"text": event.error.message or "the agent failed"}])
        self._end("TASK_STATE_REJECTED" if refused else "TASK_STATE_FAILED", [shown], words)

    def _end(
        self, state: str, events: list[Event], message: Object | None = None, **fields: str
    ) -> None:
        self._waiting += events
        fields = {"type": "end", **fields}
        status = self._status(state, message)
        self._out.append(
            {"statusUpdate": {**self._ids(), "status": status, **self._metadata(**fields)}}
        )
        self._over = True


def encoder(**envelope: Any) -> Encoder:
    """An encoder of one run."""
    return Encoder(envelope)


def envelope(request: RunRequest | None, *, id: str, now: datetime) -> dict[str, Any]:  # noqa: A002 the protocol's
    """What `encoder` takes of a request: the task that it goes on with, else a new one of that id, and what was said to it."""
    if request is None:
        return {"task_id": id, "context_id": id, "now": lambda: now}
    fields, rpc = OWN.fields(request.native), OWN.notes(request.native)
    task_id = fields.get("taskId")
    known = isinstance(task_id, str) and bool(task_id)
    made: dict[str, Any] = {
        "task_id": task_id if known else id,
        "context_id": request.thread_id or id,
        "goes_on": known,
    }
    new = [message for message in request.messages if message.role is Role.USER][-1:]
    ids = {"taskId": made["task_id"], "contextId": made["context_id"]}
    history = [_plain({**dump_message(message, f"{id}:asked"), **ids}) for message in new]
    if "rpc" in rpc:
        made["rpc_id"] = rpc["rpc"].get("id")
    return {**made, "history": history, "now": lambda: now}


def _plain(message: Object) -> Object:
    """A message of a client's, without what it had beside the protocol's fields."""
    metadata = {
        name: value for name, value in message.get("metadata", {}).items() if name != CANONICAL
    }
    kept = {name: message[name] for name in _MESSAGE if name in message}
    return {**kept, **({"metadata": metadata} if metadata else {})}


def dump_response(
    events: Iterable[Event],
    *,
    losses: list[Loss] | None = None,  # noqa: ARG001 nothing is lost
    **envelope: Any,
) -> dict[str, Any]:
    """Events → the whole task that their stream tells of. `envelope`: as for `encoder`."""
    listed, run = list(events), Encoder(envelope)
    objects = [each for event in listed for each in run.objects(event)]
    task = aggregated([*objects, *run.closing()])
    if envelope.get("extras", True):
        fields = with_events(compact([_shown(event) for event in listed]))
        task["metadata"] = {
            **task.get("metadata", {}),
            EXTENSION: {"type": "run", "run": fields.get("events", "[]")},
        }
    return task


def _shown(event: Event) -> Event:
    """An error without what the run had come to, of which the client has its part, and without what an upstream answered."""
    if not isinstance(event, RunError):
        return event
    error = copy(event.error)
    error.body = error.partial = error.result = None
    return RunError(error, event.run_id, event.native)
