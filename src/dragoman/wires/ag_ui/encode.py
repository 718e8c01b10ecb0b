"""Events of a run → the events of AG-UI, streamed. The protocol shows a run as it is: calls with
their results, steps, state, runs within tools.

Whatever comes, in whatever order, the objects are a stream that the protocol allows: a run is
opened where none was, what is open is closed before the run ends, and what fits nowhere is carried
as it is.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from dragoman.codec.fit_ids import DistinctIds
from dragoman.codec.json_values import if_object, optional_field, read_extra_fields
from dragoman.codec.response_encoder import Objects
from dragoman.codec.serving import SSE_PING
from dragoman.errors import StreamCutError
from dragoman.event import (
    Custom,
    Event,
    RunError,
    RunFinished,
    RunStarted,
    StateDelta,
    StateSnapshot,
    StepFinished,
    StepStarted,
)
from dragoman.json_bytes import Json, JsonMap
from dragoman.request import RunRequest
from dragoman.wires.ag_ui.encode_messages import MessagesEncoder
from dragoman.wires.ag_ui.events import (
    dump_event,
    dump_failed,
    dump_finished,
    dump_started,
    find_unread,
)
from dragoman.wires.ag_ui.quirks import CARRIED, OWN, Quirks, is_current

__all__ = ["Encoder", "encoder", "envelope", "ping", "stream_type"]

stream_type = "text/event-stream"
"""Media type of a stream."""
ping = SSE_PING
"""Bytes that keep an idle stream open."""
_SUBAGENT = "agent"
_MADE = {"made": True}
"""Extras of an object that no event caused."""


class Encoder(MessagesEncoder):
    """Writes the events of a run as server-sent events.

    Their lines end in LF alone, and the stream has no end mark, since the official client accepts
    neither.
    """

    def __init__(self, envelope: JsonMap) -> None:
        """Creates an encoder of AG-UI events.

        Keys of `envelope`:
            thread_id, run_id: ids of the run, as the client knows them.
            request: what the run answers.
            version: the protocol version that the peer declares.
            extras: False to leave out what the protocol has no field for.
        """
        current = is_current(envelope.get("version", ""))
        extras = envelope.get("extras", True)
        super().__init__(Quirks(current=current, extras=extras), envelope.get("request"))
        self._thread_id: str | None = envelope.get("thread_id")
        self._run_id: str | None = envelope.get("run_id")
        self._opened: tuple[str, str] | None = None
        """The ids of the open thread and run, as the peer knows them."""
        self._started: RunStarted | None = None
        """The event that started the run, or None if there was none."""
        self._steps: set[tuple[str | None, str]] = set()
        self._subagent_ids = DistinctIds()

    def objects(self, event: Event) -> Objects:
        """Implements `RunEncoder.objects` for AG-UI. Each object has the time of its event, in
        milliseconds since 1970; deltas on their short way have none."""
        objects = super().objects(event)
        if event.at is None:
            return objects
        milliseconds = int(event.at.timestamp() * 1000)
        return [{**fields, "timestamp": milliseconds} for fields in objects]

    def admit(self, event: Event) -> bool:
        """Implements `RunEncoder.admit` for AG-UI. Another run may follow the first."""
        if self.over and not isinstance(event, RunStarted):
            return False
        if not isinstance(event, RunStarted):
            self._open_run()
        # what waits comes behind the start of the run, and before the event
        self.carry_unjoined(event)
        return True

    def end_stream(self) -> None:
        """Implements `RunEncoder.end_stream` for AG-UI. A run without an end was cut. Messages
        alone are a run that ended."""
        self._open_run()
        self.carry_pending()
        if self._started is None:
            self._finish(RunFinished(self._ids()[1]), _MADE)
        else:
            error = StreamCutError("the run was cut before its end. Ask again.")
            self._fail(dump_failed(error), _MADE)

    # the run

    def _ids(self) -> tuple[str, str]:
        """Returns the ids of the thread and of the run."""
        return self._thread_id or self._run_id or "thread", self._run_id or "run"

    def _open_run(self) -> None:
        """Opens a run if the AG-UI stream begins without one."""
        if self._opened is None:
            self._opened = self._ids()
            self.write({**dump_started(*self._opened), **self.meta({"v": 1, **_MADE})})

    def _write_event(
        self,
        event: Event,
        fields: Json,
        extras: JsonMap = {},
    ) -> None:
        """Writes the AG-UI object of an event, and carries what its reader would read otherwise."""
        metadata = self.meta(
            {**extras, **find_unread(event, fields)}, if_object(fields.get("metadata"))
        )
        self.write({**read_extra_fields(fields, "metadata"), **metadata})

    def _run_started(self, event: RunStarted) -> None:
        """Opens an AG-UI run, or a run within it."""
        if self._opened is not None and not self.over:
            self._inner_run_started(event)
            return
        self.over = False
        self._started = event
        self._opened = (
            # the ids are those that the client asked for; where the event has others, it carries
            # them
            self._thread_id or event.thread_id or event.run_id or "thread",
            self._run_id or event.run_id or "run",
        )
        self._steps.clear()
        self.messages.clear()
        self._write_event(event, dump_started(*self._opened, event.parent_run_id), {"v": 1})

    def _inner_run_started(self, event: RunStarted) -> None:
        """Opens the AG-UI run of a tool, if its parent is open. Other runs are carried."""
        parent = event.parent_run_id
        is_known = self._started is not None and parent is not None
        parents = (self._started and self._started.run_id, *self.subagents)
        # a run that nobody here started has no end that could close it
        if not is_known or parent not in parents or event.run_id in self.subagents:
            self.carry(event)
            return
        id_ = self._subagent_ids.take(event.run_id or _SUBAGENT)
        fields: Json = {
            "name": _SUBAGENT,
            **OWN.fields(event.native),
            "type": "SUBAGENT_STARTED",
            "subagentRunId": id_,
        }
        if (parent_id := self.owner_of(parent)) is not None:
            fields["parentSubagentRunId"] = parent_id
        self.subagents[event.run_id] = id_
        self._write_event(event, fields)

    def _run_finished(self, event: RunFinished) -> None:
        """Ends the AG-UI run, or a run within it."""
        if (id_ := self.subagents.get(event.run_id)) is not None:
            self._subagent_finished(event, id_)
        elif self._started is not None and event.run_id != self._started.run_id:
            self.carry(event)
        else:
            self._finish(event, {} if self._started is not None else {"opened": True})

    def _subagent_finished(self, event: RunFinished, id_: str) -> None:
        """Writes the end of a run within a tool as AG-UI events."""
        self.end_parts(self.messages_of(id_))
        del self.subagents[event.run_id]
        outcome: Json = {"type": "success"}
        if event.pending:
            ids = [interrupt.id for interrupt in event.pending]
            outcome = {"type": "suspended", "interruptIds": ids}
        fields = {
            "type": "SUBAGENT_FINISHED",
            "subagentRunId": id_,
            "outcome": outcome,
        }
        if event.result is not None:
            fields["result"] = event.result
        self._write_event(event, fields)

    def _finish(self, event: RunFinished, extras: JsonMap) -> None:
        """Ends the AG-UI run. Peers before 1.0 get an error for a cancelled one."""
        assert self._opened is not None
        self._end_all()
        call_ids = {
            interrupt.call.id: self.group.find_call_id(interrupt.call.id)
            for interrupt in event.pending
            if interrupt.call
        }
        fields = dump_finished(event, *self._opened, call_ids, current=self.quirks.current)
        if event.outcome == "cancelled" and not self.quirks.current:
            # a peer of the time before 1.0 has no such outcome
            extras = {**extras, **find_unread(event, fields), "finished": fields}
            fields = {
                "type": "RUN_ERROR",
                "message": "The run was cancelled.",
                "code": "cancelled",
            }
            self.write({**fields, **self.meta(extras)})
        else:
            self._write_event(event, fields, extras)

    def _run_error(self, event: RunError) -> None:
        """Ends the AG-UI run, or a run within it, with an error."""
        failed, extras = dump_failed(event.error), {"error": _error_fields(event)}
        if (id_ := self.subagents.pop(event.run_id or "", None)) is None:
            self._fail(failed, extras)
            return
        self.end_parts(self.messages_of(id_))
        fields = {**failed, "type": "SUBAGENT_ERROR", "subagentRunId": id_}
        self.write({**fields, **self.meta(extras)})

    def _fail(self, failed: Json, extras: JsonMap) -> None:
        """Writes the error that ends the run."""
        self._end_all()
        self.write({**failed, **self.meta(extras)})

    def _end_all(self) -> None:
        """Closes everything that is open, since the AG-UI run ends."""
        self.over = True
        # the protocol allows no end of a run within which anything is open
        self.carry_pending()
        self.end_parts(list(self.messages.values()))
        metadata = self.meta(_MADE)
        for owner, name in sorted(self._steps, key=str):
            fields = {"type": "STEP_FINISHED", "stepName": name}
            self.write({**fields, **_owner_field(owner), **metadata})
        self._steps.clear()
        for id_ in reversed(self.subagents.values()):
            self.write(
                {
                    "type": "SUBAGENT_FINISHED",
                    "subagentRunId": id_,
                    **metadata,
                }
            )
        self.subagents.clear()

    # steps, state, anything by name

    def _write_step(self, event: StepStarted | StepFinished) -> None:
        """Writes the AG-UI event that starts or ends a step. A step that is already open, or not
        open, is carried."""
        key = (self.owner_of(event.run_id), event.name)
        if (key in self._steps) is isinstance(event, StepStarted):
            self.carry(event)
            return
        self._steps ^= {key}
        self._event(event)

    def _event(
        self, event: StepStarted | StepFinished | StateSnapshot | StateDelta | Custom
    ) -> None:
        """Writes an event that is an AG-UI object of its own."""
        owner = self.owner_of(event.run_id)
        self._write_event(event, {**dump_event(event), **_owner_field(owner)})

    def _custom(self, event: Custom) -> None:
        """Writes an AG-UI custom event. One with the reserved name is carried."""
        if event.name == CARRIED:
            self.carry(event)
        else:
            self._event(event)

    STEPS = {
        **MessagesEncoder.STEPS,
        RunStarted: _run_started,
        RunFinished: _run_finished,
        RunError: _run_error,
        StepStarted: _write_step,
        StepFinished: _write_step,
        StateSnapshot: _event,
        StateDelta: _event,
        Custom: _custom,
    }


def _owner_field(owner: str | None) -> Json:
    """Returns the field that names the run of a tool, or nothing."""
    return optional_field("subagentRunId", owner)


def _error_fields(event: RunError) -> Json:
    """Returns the fields of an error event that `RUN_ERROR` has no place for."""
    return {"run_id": event.run_id, **optional_field("native", event.native)}


def encoder(**envelope: Any) -> Encoder:
    """Returns an encoder for one run."""
    return Encoder(envelope)


def envelope(request: RunRequest | None, *, id: str, now: datetime) -> Json:  # noqa: A002, ARG001 the protocol's
    """Returns the arguments of `encoder` for an AG-UI request. `id` is for a run without one."""
    if request is None:
        return {"run_id": id, "thread_id": id}
    run_id = request.run_id or id
    return {
        "run_id": run_id,
        "thread_id": request.thread_id or run_id,
        "version": OWN.fields(request.native).get("protocolVersion", ""),
        "request": request,
    }
