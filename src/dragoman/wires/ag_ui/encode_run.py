"""One run as AG-UI has it: what is open, and what closes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoman.codec.json_values import if_object, rest
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
from dragoman.request import RunRequest
from dragoman.wires.ag_ui.encode_end import dump_failed, dump_finished, dump_started
from dragoman.wires.ag_ui.encode_messages import MessageEncoder, Object
from dragoman.wires.ag_ui.events import AS_CUSTOM, unread
from dragoman.wires.ag_ui.ids import Ids
from dragoman.wires.ag_ui.quirks import CARRIED, OWN, Quirks

__all__ = ["RunEncoder"]

_SUBAGENT = "agent"


class RunEncoder:
    """Events → objects. Whatever comes, in whatever order, the objects are a stream that the protocol allows."""

    def __init__(
        self,
        quirks: Quirks,
        request: RunRequest | None,
        *,
        thread_id: str | None,
        run_id: str | None,
    ) -> None:
        """`request`: what the run answers, whose messages the peer has. `thread_id`, `run_id`: where no event tells them."""
        self._quirks = quirks
        self._given = (thread_id, run_id)
        self._ids = (thread_id or run_id or "thread", run_id or "run")
        self._out: list[Object] = []
        self._messages = MessageEncoder(quirks, request, self._out, self._owner)
        self.delta = self._messages.delta
        self._meta = self._messages.meta
        self._carry = self._messages.carry
        self._steps: set[tuple[str | None, str]] = set()
        self._subagents: dict[str, str] = {}
        """Ids of the runs within tools that go on → under which the protocol knows them."""
        self._subagent_ids = Ids()
        self._run: tuple[str, str] | None = None
        """Thread and run that are open."""
        self._run_id = ""
        """Of that run, as events tell it."""
        self._over = False
        self._steps_of: Mapping[type, Callable[[Any], None]] = {
            **self._messages.steps,
            RunStarted: self._run_started,
            RunFinished: self._run_finished,
            RunError: self._run_error,
            StepStarted: self._step_started,
            StepFinished: self._step_finished,
            StateSnapshot: self._state,
            StateDelta: self._state,
            Custom: self._custom,
        }

    def objects(self, event: Event) -> Sequence[Mapping[str, Any]]:
        """One event → the objects that tell of it."""
        if self._over and not isinstance(event, RunStarted):
            return ()
        self._open(event)
        self._messages.settle(event)
        self._steps_of[type(event)](event)
        return self._taken()

    def close(self) -> Sequence[Mapping[str, Any]]:
        """The end of the events. A run that has begun and was not ended was cut; a stream of messages alone is a run that ended."""
        if self._over:
            return ()
        self._open(None)
        self._messages.release()
        if self._announced:
            self._end_all()
            error = StreamCutError("the run was cut before its end. Ask again.")
            self._out.append({**dump_failed(error), **self._meta({"made": True})})
        else:
            self._finish(RunFinished(self._ids[1]), {"made": True})
        self._over = True
        return self._taken()

    _announced = False
    """Whether an event told of the run."""

    def _taken(self) -> list[Object]:
        out = self._out.copy()
        self._out.clear()
        return out

    def _open(self, event: Event | None) -> None:
        """Opens a run, where a stream begins without one."""
        if self._run is None and not isinstance(event, RunStarted):
            self._run = self._ids
            self._out.append({**dump_started(*self._ids), **self._meta({"v": 1, "made": True})})

    def _run_started(self, event: RunStarted) -> None:
        if self._run is not None and not self._over:
            if self._announced and self._is_parent(event.parent_run_id):
                self._subagent_started(event)
            else:
                self._carry(event)
            return
        self._over, self._announced = False, True
        self._run_id = event.run_id
        thread_id, run_id = self._given
        self._run = (
            thread_id or event.thread_id or event.run_id or "thread",
            run_id or event.run_id or "run",
        )
        self._steps.clear()
        self._messages.clear()
        fields = dump_started(*self._run, event.parent_run_id)
        self._out.append({**fields, **self._meta({"v": 1, **unread(event, fields, {})})})

    def _is_parent(self, run_id: str | None) -> bool:
        return (
            run_id is not None
            and self._run is not None
            and (run_id == self._run_id or run_id in self._subagents)
        )

    def _subagent_started(self, event: RunStarted) -> None:
        if event.run_id in self._subagents:
            self._carry(event)
            return
        id_ = self._subagent_ids.take(event.run_id or _SUBAGENT)
        parent = self._subagents.get(event.parent_run_id or "")
        fields: Object = {
            "name": _SUBAGENT,
            **OWN.fields(event.native),
            "type": "SUBAGENT_STARTED",
            "subagentRunId": id_,
        }
        if parent is not None:
            fields["parentSubagentRunId"] = parent
        self._subagents[event.run_id] = id_
        self._tell(event, fields)

    def _tell(self, event: Event, fields: Object) -> None:
        """An object, with what would be read otherwise."""
        self._out.append(
            {
                **rest(fields, "metadata"),
                **self._meta(unread(event, fields, {}), if_object(fields.get("metadata"))),
            }
        )

    def _run_finished(self, event: RunFinished) -> None:
        if (id_ := self._subagents.get(event.run_id)) is not None:
            self._messages.end(id_)
            suspended = {"type": "suspended", "interruptIds": [each.id for each in event.pending]}
            outcome = suspended if event.pending else {"type": "success"}
            fields = {"type": "SUBAGENT_FINISHED", "subagentRunId": id_, "outcome": outcome}
            if event.result is not None:
                fields["result"] = event.result
            del self._subagents[event.run_id]
            self._tell(event, fields)
        elif self._announced and event.run_id != self._run_id:
            self._carry(event)
        else:
            self._finish(event, {} if self._announced else {"opened": True})

    def _finish(self, event: RunFinished, extras: Mapping[str, Any]) -> None:
        assert self._run is not None
        self._end_all()
        self._over = True
        waiting = {
            call_id: self._messages.group.called(call_id)
            for each in event.pending
            if each.call
            for call_id in [each.call.id]
        }
        cancelled = event.outcome == "cancelled" and not self._quirks.current
        fields = dump_finished(event, *self._run, waiting, current=self._quirks.current)
        more = {**extras, **unread(event, {**fields, "type": "RUN_FINISHED"}, {})}
        if cancelled:
            more = {**more, "finished": fields}
            fields = {"type": "RUN_ERROR", "message": "The run was cancelled.", "code": "cancelled"}
        self._out.append({**fields, **self._meta(more)})

    def _run_error(self, event: RunError) -> None:
        if (id_ := self._subagents.get(event.run_id or "")) is not None:
            self._messages.end(id_)
            del self._subagents[event.run_id or ""]
            held = self._meta({"error": _error_fields(event)})
            self._out.append(
                {**dump_failed(event.error), "type": "SUBAGENT_ERROR", "subagentRunId": id_, **held}
            )
            return
        self._end_all()
        self._over = True
        self._out.append(
            {**dump_failed(event.error), **self._meta({"error": _error_fields(event)})}
        )

    def _end_all(self) -> None:
        """Closes what is open."""
        self._messages.release()
        self._messages.end(None)
        made = self._meta({"made": True})
        for owner, name in sorted(self._steps, key=str):
            self._out.append({"type": "STEP_FINISHED", "stepName": name, **self._of(owner), **made})
        self._steps.clear()
        for id_ in reversed(self._subagents.values()):
            self._out.append({"type": "SUBAGENT_FINISHED", "subagentRunId": id_, **made})
        self._subagents.clear()

    def _of(self, owner: str | None) -> Object:
        return {} if owner is None else {"subagentRunId": owner}

    def _owner(self, run_id: str | None) -> str | None:
        return None if run_id is None else self._subagents.get(run_id)

    def _step_started(self, event: StepStarted) -> None:
        key = (self._owner(event.run_id), event.name)
        if key in self._steps:
            self._carry(event)
            return
        self._steps.add(key)
        self._tell(
            event,
            {
                **OWN.fields(event.native),
                "type": "STEP_STARTED",
                "stepName": event.name,
                **self._of(key[0]),
            },
        )

    def _step_finished(self, event: StepFinished) -> None:
        key = (self._owner(event.run_id), event.name)
        if key not in self._steps:
            self._carry(event)
            return
        self._steps.discard(key)
        self._tell(
            event,
            {
                **OWN.fields(event.native),
                "type": "STEP_FINISHED",
                "stepName": event.name,
                **self._of(key[0]),
            },
        )

    def _state(self, event: StateSnapshot | StateDelta) -> None:
        whole = isinstance(event, StateSnapshot)
        value: Object = (
            {"snapshot": event.state}
            if whole
            else {"delta": [dict(each) for each in event.operations]}
        )
        kind = "STATE_SNAPSHOT" if whole else "STATE_DELTA"
        self._tell(
            event,
            {
                **OWN.fields(event.native),
                "type": kind,
                **value,
                **self._of(self._owner(event.run_id)),
            },
        )

    def _custom(self, event: Custom) -> None:
        kind = OWN.form(event.native).get("type")
        owner = self._of(self._owner(event.run_id))
        if AS_CUSTOM.get(str(kind)) == event.name and (value := if_object(event.value)):
            self._tell(event, {**OWN.fields(event.native), **value, "type": kind, **owner})
        elif event.name == CARRIED:
            self._carry(event)
        else:
            fields = {"type": "CUSTOM", "name": event.name, "value": event.value}
            self._tell(event, {**OWN.fields(event.native), **fields, **owner})


def _error_fields(event: RunError) -> Object:
    return {"run_id": event.run_id, **({"native": event.native} if event.native else {})}
