"""One run as AG-UI has it: what is open, and what closes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from dragoman import json_bytes
from dragoman.codec.json_values import if_object, rest
from dragoman.errors import HistoryError, StreamCutError
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
    event_to_json,
)
from dragoman.message import Role
from dragoman.run_request import RunRequest
from dragoman.wires.ag_ui.encode_end import dump_failed, dump_finished, dump_started
from dragoman.wires.ag_ui.encode_parts import MessageParts, Part
from dragoman.wires.ag_ui.events import AS_CUSTOM, unread
from dragoman.wires.ag_ui.extras import metadata_of
from dragoman.wires.ag_ui.messages import dump_conversation
from dragoman.wires.ag_ui.messages_dump import Group
from dragoman.wires.ag_ui.quirks import CARRIED, OWN, Quirks

__all__ = ["RunEncoder"]

_SUBAGENT = "agent"
_encode = json_bytes.encode
Object = dict[str, Any]


class RunEncoder:
    """Events → objects. Whatever comes, in whatever order, the objects are a stream that the protocol allows."""

    def __init__(
        self, quirks: Quirks, request: RunRequest | None, *, thread_id: str | None, run_id: str | None
    ) -> None:
        """`request`: what the run answers, whose messages the peer has. `thread_id`, `run_id`: where no event tells them."""
        self._quirks = quirks
        self._request = request
        self._ids = (thread_id or run_id or "thread", run_id or "run")
        self._group = Group(extras=quirks.extras, parts=quirks.current)
        self._known: set[str] = set()
        for message in request.messages if request else ():
            self._group.meet(message)
            if message.id is not None and message.role is not Role.MODEL:
                self._known.add(message.id)
        self._skipped: set[str] = set()
        self._messages: dict[str, MessageParts] = {}
        self._prefixes: dict[tuple[str, int], tuple[bytes, list[Any]]] = {}
        self._held: list[MessageStarted | PartStarted] = []
        self._steps: set[tuple[str | None, str]] = set()
        self._subagents: dict[str, str] = {}
        """Ids of the runs within tools that go on → under which the protocol knows them."""
        self._subagent_ids: set[str] = set()
        self._run: tuple[str, str] | None = None
        """Thread and run that are open."""
        self._over = False
        self._out: list[Object] = []
        self._steps_of: Mapping[type, Callable[[Any], None]] = {
            RunStarted: self._run_started,
            RunFinished: self._run_finished,
            RunError: self._run_error,
            StepStarted: self._step_started,
            StepFinished: self._step_finished,
            MessageStarted: self._message_started,
            PartStarted: self._part_started,
            PartDelta: self._delta,
            PartFinished: self._part_finished,
            MessageFinished: self._carry,
            MessageDropped: self._message_dropped,
            StateSnapshot: self._state,
            StateDelta: self._state,
            Custom: self._custom,
        }

    def delta(self, event: PartDelta) -> bytes | None:
        """The bytes of a delta of a text, of thinking or of arguments; `None`: it is none of those."""
        found = self._prefixes.get((event.message_id, event.index))
        if found is None or self._held or not event.delta or isinstance(event.delta, bytes):
            return None
        prefix, deltas = found
        deltas.append(event.delta)
        return prefix + _encode(event.delta) + b"}\n\n"

    def objects(self, event: Event) -> Sequence[Mapping[str, Any]]:
        """One event → the objects that tell of it."""
        if self._over and not isinstance(event, RunStarted):
            return ()
        self._open(event)
        if self._held and not self._joins(event):
            self._release()
        self._steps_of[type(event)](event)
        return self._taken()

    def close(self) -> Sequence[Mapping[str, Any]]:
        """The end of the events. A run that has begun and was not ended was cut; a stream of messages alone is a run that ended."""
        if self._over:
            return ()
        self._open(None)
        self._release()
        if self._told:
            self._end_all()
            error = StreamCutError("the run was cut before its end. Ask again.")
            self._out.append({**dump_failed(error), **self._meta({"made": True})})
        else:
            self._finish(RunFinished(self._ids[1]), {"made": True})
        self._over = True
        return self._taken()

    _told = False
    """Whether an event told of the run."""

    def _taken(self) -> list[Object]:
        out, self._out = self._out, []
        return out

    def _meta(self, extras: Mapping[str, Any], metadata: Mapping[str, Any] = {}) -> Object:
        return metadata_of(metadata, extras if self._quirks.extras else {})

    # runs

    def _open(self, event: Event | None) -> None:
        """Opens a run, where a stream begins without one."""
        if self._run is None and not isinstance(event, RunStarted | RunError):
            self._run = self._ids
            self._out.append({**dump_started(*self._ids), **self._meta({"v": 1, "made": True})})

    def _run_started(self, event: RunStarted) -> None:
        if self._run is not None and not self._over:
            if self._told and self._is_parent(event.parent_run_id):
                self._subagent_started(event)
            else:
                self._carry(event)
            return
        self._over, self._told = False, True
        self._run = (event.thread_id or self._ids[0], event.run_id or self._ids[1])
        self._steps.clear()
        self._messages.clear()
        fields = dump_started(*self._run, event.parent_run_id)
        self._out.append({**fields, **self._meta({"v": 1, **unread(event, fields, {})})})

    def _is_parent(self, run_id: str | None) -> bool:
        return run_id is not None and self._run is not None and (run_id == self._run[1] or run_id in self._subagents)

    def _subagent_started(self, event: RunStarted) -> None:
        id_ = event.run_id or _SUBAGENT
        while id_ in self._subagent_ids:
            id_ += "'"
        if event.run_id in self._subagents:
            self._carry(event)
            return
        self._subagent_ids.add(id_)
        parent = self._subagents.get(event.parent_run_id or "")
        fields: Object = {"type": "SUBAGENT_STARTED", "subagentRunId": id_, "name": _SUBAGENT}
        fields |= OWN.fields(event.native)
        if parent is not None:
            fields["parentSubagentRunId"] = parent
        self._subagents[event.run_id] = id_
        self._tell(event, fields)

    def _tell(self, event: Event, fields: Object) -> None:
        """An object, with what would be read otherwise."""
        self._out.append(
            {**rest(fields, "metadata"), **self._meta(unread(event, fields, {}), fields.get("metadata", {}))}
        )

    def _run_finished(self, event: RunFinished) -> None:
        if (id_ := self._subagents.get(event.run_id)) is not None:
            self._end_messages(id_)
            suspended = {"type": "suspended", "interruptIds": [each.id for each in event.pending]}
            outcome = suspended if event.pending else {"type": "success"}
            fields = {"type": "SUBAGENT_FINISHED", "subagentRunId": id_, "outcome": outcome}
            if event.result is not None:
                fields["result"] = event.result
            del self._subagents[event.run_id]
            self._tell(event, fields)
        elif self._told and self._run is not None and event.run_id != self._run[1]:
            self._carry(event)
        else:
            self._finish(event, {} if self._told else {"opened": True})

    def _finish(self, event: RunFinished, extras: Mapping[str, Any]) -> None:
        assert self._run is not None
        self._end_all()
        self._over = True
        waiting = {
            call_id: self._group.called(call_id) for each in event.pending if each.call for call_id in [each.call.id]
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
            self._end_messages(id_)
            del self._subagents[event.run_id or ""]
            held = self._meta({"error": _error_fields(event)})
            self._out.append({**dump_failed(event.error), "type": "SUBAGENT_ERROR", "subagentRunId": id_, **held})
            return
        if self._run is not None:
            self._end_all()
        self._over = True
        self._out.append({**dump_failed(event.error), **self._meta({"error": _error_fields(event)})})

    def _end_all(self) -> None:
        """Closes what is open."""
        self._release()
        self._end_messages(None)
        made = self._meta({"made": True})
        for owner, name in sorted(self._steps, key=str):
            self._out.append({"type": "STEP_FINISHED", "stepName": name, **self._of(owner), **made})
        self._steps.clear()
        for id_ in reversed(self._subagents.values()):
            self._out.append({"type": "SUBAGENT_FINISHED", "subagentRunId": id_, **made})
        self._subagents.clear()

    def _end_messages(self, owner: str | None) -> None:
        """Closes the parts that are open: all, or those of a run within a tool."""
        for message in self._messages.values():
            if owner is None or message.owner == owner:
                self._end_parts(message)

    def _end_parts(self, message: MessageParts) -> None:
        for index, part in list(message.open.items()):
            self._prefixes.pop((message.id, index), None)
            self._out += part.cut(self._meta)
            del message.open[index]

    def _of(self, owner: str | None) -> Object:
        return {} if owner is None else {"subagentRunId": owner}

    def _owner(self, run_id: str | None) -> str | None:
        return None if run_id is None else self._subagents.get(run_id)

    # steps, state, anything by name

    def _step_started(self, event: StepStarted) -> None:
        key = (self._owner(event.run_id), event.name)
        if key in self._steps:
            self._carry(event)
            return
        self._steps.add(key)
        self._tell(
            event, {"type": "STEP_STARTED", "stepName": event.name, **self._of(key[0]), **OWN.fields(event.native)}
        )

    def _step_finished(self, event: StepFinished) -> None:
        key = (self._owner(event.run_id), event.name)
        if key not in self._steps:
            self._carry(event)
            return
        self._steps.discard(key)
        self._tell(
            event, {"type": "STEP_FINISHED", "stepName": event.name, **self._of(key[0]), **OWN.fields(event.native)}
        )

    def _state(self, event: StateSnapshot | StateDelta) -> None:
        whole = isinstance(event, StateSnapshot)
        said: Object = {"snapshot": event.state} if whole else {"delta": [dict(each) for each in event.operations]}
        kind = "STATE_SNAPSHOT" if whole else "STATE_DELTA"
        self._tell(event, {"type": kind, **said, **self._of(self._owner(event.run_id)), **OWN.fields(event.native)})

    def _custom(self, event: Custom) -> None:
        kind = OWN.form(event.native).get("type")
        owner = self._of(self._owner(event.run_id))
        if AS_CUSTOM.get(str(kind)) == event.name and (value := if_object(event.value)):
            self._tell(event, {**value, "type": kind, **owner, **OWN.fields(event.native)})
        elif event.name == CARRIED:
            self._carry(event)
        else:
            fields = {"type": "CUSTOM", "name": event.name, "value": event.value}
            self._tell(event, {**fields, **owner, **OWN.fields(event.native)})

    def _carry(self, event: Event) -> None:
        """An event that the protocol has no form for, as it is."""
        if not self._quirks.extras or getattr(event, "message_id", None) in self._skipped:
            return
        try:
            value = event_to_json(event).decode()
        except HistoryError:
            return
        self._out.append({"type": "CUSTOM", "name": CARRIED, "value": value})

    # messages

    def _joins(self, event: Event) -> bool:
        """Whether an event goes on with what is held, so that one object tells of both."""
        last = self._held[-1]
        if isinstance(last, PartStarted):
            return isinstance(event, PartFinished) and event.message_id == last.message_id and event.index == last.index
        return isinstance(event, PartStarted) and event.message_id == last.message_id

    def _release(self) -> None:
        held, self._held = self._held, []
        for event in held:
            self._carry(event)

    def _message_started(self, event: MessageStarted) -> None:
        if event.message_id in self._known and event.role is not Role.MODEL:
            self._skipped.add(event.message_id)
            return
        self._skipped.discard(event.message_id)
        if (before := self._messages.get(event.message_id)) is not None:
            self._end_parts(before)
        self._messages[event.message_id] = MessageParts(event, self._owner(event.run_id), self._group)
        if event.candidate:
            self._carry(event)
        else:
            self._held = [event]

    def _part_started(self, event: PartStarted) -> None:
        message = self._messages.get(event.message_id)
        if event.message_id in self._skipped:
            return
        if message is None or not message.takes(event):
            self._release()
            self._carry(event)
            return
        if message.holds(event):
            self._held.append(event)
            return
        start = self._held[0] if self._held else None
        self._held = []
        part = message.start(event)
        self._out += part.started(self._meta, cast("MessageStarted | None", start))
        self._prefixes[event.message_id, event.index] = (part.prefix(), part.deltas)

    def _delta(self, event: PartDelta) -> None:
        message = self._messages.get(event.message_id)
        part = message.open.get(event.index) if message else None
        if part is None or isinstance(event.delta, bytes):
            self._carry(event)
        elif event.delta:
            part.deltas.append(event.delta)
            self._out.append(part.delta(event.delta))

    def _part_finished(self, event: PartFinished) -> None:
        message = self._messages.get(event.message_id)
        if self._held:
            held, self._held = self._held, []
            begun = cast("PartStarted", held[-1])
            start = cast("MessageStarted | None", held[0] if len(held) > 1 else None)
            result = None if message is None else message.result(event, begun, start, self._meta)
            if result is None:
                self._held = held
                self._release()
                self._carry(event)
            else:
                self._out.append(result)
            return
        part: Part | None = message.open.pop(event.index, None) if message else None
        if part is None:
            self._carry(event)
            return
        self._prefixes.pop((event.message_id, event.index), None)
        self._out += part.finished(event, self._meta)

    def _message_dropped(self, event: MessageDropped) -> None:
        message = self._messages.pop(event.message_id, None)
        if message is None:
            self._carry(event)
            return
        self._end_parts(message)
        if not message.shown:
            self._carry(event)
            return
        message.forget()
        fields = {"type": "MESSAGES_SNAPSHOT", "messages": self._standing()}
        self._out.append(
            {**fields, **self._meta({"dropped": {"message_id": event.message_id, "reason": event.reason}})}
        )

    def _standing(self) -> list[Object]:
        """All messages that stand: those of the request, and what was told and not taken back."""
        before = dump_conversation(self._request.messages, extras=self._quirks.extras) if self._request else []
        return [*before, *[entry for message in self._messages.values() for entry in message.entries(self._meta)]]


def _error_fields(event: RunError) -> Object:
    return {"run_id": event.run_id, **({"native": event.native} if event.native else {})}
