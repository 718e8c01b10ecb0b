"""The events that are objects of their own on both sides: runs, steps, state, and anything by name.
Each is written as the protocol has it, and what would be read otherwise is carried. Texts,
reasoning and calls are families of objects: a start, content and an end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dragoman.codec.difference import apply_difference, find_difference
from dragoman.codec.json_values import (
    if_list,
    if_object,
    if_objects,
    if_text,
    optional_field,
    read_extra_fields,
)
from dragoman.codec.response import dump_usage_entries, load_usage_entries
from dragoman.errors import DragomanError
from dragoman.event import (
    Custom,
    Event,
    RunFinished,
    RunStarted,
    StateDelta,
    StateSnapshot,
    StepFinished,
    StepStarted,
)
from dragoman.interrupt import Interrupt
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import ToolCallPart
from dragoman.wires.ag_ui.errors import code_of
from dragoman.wires.ag_ui.interrupts import dump_interrupt, load_interrupt
from dragoman.wires.ag_ui.quirks import OWN, VERSION, load_extras, load_native

__all__ = [
    "CALL",
    "FAMILIES",
    "READ",
    "REASONING",
    "TEXT",
    "Family",
    "dump_event",
    "dump_failed",
    "dump_finished",
    "dump_started",
    "load_event",
    "unread",
]


class Family(NamedTuple):
    """The types of the objects that tell of one kind of part, and the field that has its id."""

    name: str
    start: str
    content: str
    end: str
    key: str


TEXT = Family("TEXT", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "messageId")
CALL = Family("TOOL", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "toolCallId")
REASONING = Family(
    "REASONING",
    "REASONING_MESSAGE_START",
    "REASONING_MESSAGE_CONTENT",
    "REASONING_MESSAGE_END",
    "messageId",
)
FAMILIES: Mapping[str, Family] = {
    event_type: family
    for family in (TEXT, CALL, REASONING)
    for event_type in (family.start, family.content, family.end)
}
"""Type of an object → the family that it is of."""
Calls = Mapping[str, ToolCallPart]
"""Calls by the ids under which the protocol knows them."""
_EVENT = "event"
"""Key in the extras of an object: what of its event would be read otherwise."""
_AS_CUSTOM: Mapping[str, str] = {
    "RAW": "raw",
    "ACTIVITY_SNAPSHOT": "activity",
    "ACTIVITY_DELTA": "activity_delta",
}
"""Types of theirs that are custom events here → by which name."""
_Reader = Callable[[JsonMap, Calls], Event | None]
_COMMON = ("type", "timestamp", "rawEvent")


def load_event(fields: JsonMap, calls: Calls) -> Event | None:
    """An object whose type is one of `READ` → the event; `None`: it says nothing.

    Raises:
        KeyError: it is of another type.
    """
    read = READ[fields["type"]](fields, calls)
    if read is None:
        return None
    return apply_difference(read, load_extras(fields.get("metadata")).get(_EVENT), type(read))


def unread(event: Event, fields: JsonMap) -> Json:
    """The extras of an object that is written for an event: what would be read otherwise."""
    read = READ[fields["type"]](fields, {})
    # what its reader will make of the object, without the extras
    more = {} if read is None else find_difference(event, read)
    return optional_field(_EVENT, more)


# written


def dump_event(event: Event) -> Json:
    """A step, a state or a custom event → its object, without its extras and without the run that
    it is of."""
    write = _WRITE[type(event)]
    return {**OWN.fields(getattr(event, "native", None)), **write(event)}


def dump_started(thread_id: str, run_id: str, parent: str | None = None) -> Json:
    """The start of a run. `parent`: the run that it goes on from."""
    fields = {
        "type": "RUN_STARTED",
        "threadId": thread_id,
        "runId": run_id,
        "protocolVersion": VERSION,
    }
    return {**fields, "parentRunId": parent} if parent else fields


def dump_failed(error: DragomanError) -> Json:
    """The end of a run that failed."""
    return {"type": "RUN_ERROR", "message": error.message or "error", "code": code_of(error)}


def dump_finished(
    event: RunFinished, thread_id: str, run_id: str, call_ids: Mapping[str, str], *, current: bool
) -> Json:
    """The end of a run. `call_ids`: of calls that wait → under which the protocol knows them.
    `current`: the peer reads what came with 1.0.

    What the client must run is no interrupt: it answers such calls with tool messages.
    """
    fields: Json = {
        "type": "RUN_FINISHED",
        "threadId": thread_id,
        "runId": run_id,
        "outcome": _outcome(event, call_ids, current=current),
    }
    if event.result is not None:
        fields["result"] = event.result
    if usage := dump_usage_entries(event.usage):
        fields["usage"] = usage
    return {**OWN.fields(event.native), **fields}


def _outcome(event: RunFinished, call_ids: Mapping[str, str], *, current: bool) -> Json:
    interrupts = [
        dump_interrupt(interrupt, call_ids.get(interrupt.call.id) if interrupt.call else None)
        for interrupt in event.pending
        if interrupt.reason != "tool"
    ]
    if interrupts:
        return {"type": "interrupt", "interrupts": interrupts}
    if event.outcome == "cancelled" and current:
        return {"type": "cancelled"}
    # the client runs these calls itself, so for the protocol the run is done
    calls = [interrupt.call.id for interrupt in event.pending if interrupt.call]
    if not calls or not current:
        return {"type": "success"}
    return {"type": "success", "pendingToolCallIds": [call_ids.get(id_, id_) for id_ in calls]}


def _dump_state(event: StateSnapshot) -> Json:
    return {"type": "STATE_SNAPSHOT", "snapshot": event.state}


def _dump_patch(event: StateDelta) -> Json:
    return {"type": "STATE_DELTA", "delta": [dict(operation) for operation in event.operations]}


def _dump_custom(event: Custom) -> Json:
    """A custom event; what was read of an object of another type is such an object again."""
    event_type = OWN.form(event.native).get("type")
    value = if_object(event.value)
    # what was read of a RAW or an ACTIVITY object is such an object again
    if value and _AS_CUSTOM.get(str(event_type)) == event.name:
        return {**value, "type": event_type}
    return {"type": "CUSTOM", "name": event.name, "value": event.value}


_WRITE: Mapping[type, Callable[[Any], Json]] = {
    StepStarted: lambda event: {"type": "STEP_STARTED", "stepName": event.name},
    StepFinished: lambda event: {"type": "STEP_FINISHED", "stepName": event.name},
    StateSnapshot: _dump_state,
    StateDelta: _dump_patch,
    Custom: _dump_custom,
}
"""Type of an event → the fields of its object that are neutral."""

# read


def _as_it_is(value: Any) -> Any:
    return value


def _optional_text(value: Any) -> str | None:
    return if_text(value) or None


def _is_suspended(outcome: Any) -> str:
    return "pending" if if_object(outcome).get("type") == "suspended" else "success"


def _operations(value: Any) -> tuple[JsonMap, ...]:
    return tuple(if_objects(value))


def _reader(target: type, *neutral: str, **names: tuple[str, Callable[[Any], Any]]) -> _Reader:
    """What reads an object as an event of a type. `names`: our field → theirs, and what reads its
    value; `neutral`: fields of theirs that say nothing to us."""
    known = (*_COMMON, *neutral, *[name for name, _ in names.values()])

    def read(fields: JsonMap, _: Calls) -> Event:
        values = {ours: load(fields.get(name)) for ours, (name, load) in names.items()}
        return target(**values, native=load_native(fields, *known))

    return read


def _read_finished(fields: JsonMap, calls: Calls) -> Event:
    outcome = if_object(fields.get("outcome"))
    interrupts = [
        load_interrupt(interrupt, calls.get(if_text(interrupt.get("toolCallId"))))
        for interrupt in if_objects(outcome.get("interrupts"))
    ]
    client_calls = [
        Interrupt(id_, "tool", calls.get(id_))
        for id_ in if_list(outcome.get("pendingToolCallIds"))
        if isinstance(id_, str)
    ]
    otherwise = "pending" if client_calls else "success"
    outcomes: JsonMap = {"cancelled": "cancelled", "interrupt": "pending"}
    return RunFinished(
        if_text(fields.get("runId")),
        outcomes.get(if_text(outcome.get("type")), otherwise),
        load_usage_entries(fields.get("usage")),
        (*interrupts, *client_calls),
        fields.get("result"),
        load_native(fields, *_COMMON, "runId", "threadId", "outcome", "usage", "result"),
    )


def _read_patch(fields: JsonMap, calls: Calls) -> Event | None:
    operations = fields.get("delta")
    if operations != [] and not if_objects(operations):
        return None
    return _read_operations(fields, calls)


def _read_as_custom(fields: JsonMap, _: Calls) -> Event:
    event_type = fields["type"]
    value = read_extra_fields(fields, *_COMMON, "metadata", _OWNER[0])
    native = OWN.with_form(load_native({"metadata": fields.get("metadata")}), type=event_type)
    return Custom(_AS_CUSTOM[event_type], value, native, _optional_text(fields.get(_OWNER[0])))


_OWNER = ("subagentRunId", _optional_text)
"""Of what may be of a run within a tool."""
_read_operations = _reader(StateDelta, operations=("delta", _operations), run_id=_OWNER)
READ: Mapping[str, _Reader] = {
    "RUN_STARTED": _reader(
        RunStarted,
        "protocolVersion",
        "input",
        run_id=("runId", if_text),
        thread_id=("threadId", _optional_text),
        parent_run_id=("parentRunId", _optional_text),
    ),
    "RUN_FINISHED": _read_finished,
    "SUBAGENT_STARTED": _reader(
        RunStarted,
        run_id=("subagentRunId", if_text),
        parent_run_id=("parentSubagentRunId", _optional_text),
    ),
    "SUBAGENT_FINISHED": _reader(
        RunFinished,
        run_id=("subagentRunId", if_text),
        outcome=("outcome", _is_suspended),
        result=("result", _as_it_is),
    ),
    "STEP_STARTED": _reader(StepStarted, name=("stepName", if_text), run_id=_OWNER),
    "STEP_FINISHED": _reader(StepFinished, name=("stepName", if_text), run_id=_OWNER),
    "STATE_SNAPSHOT": _reader(StateSnapshot, state=("snapshot", _as_it_is), run_id=_OWNER),
    "STATE_DELTA": _read_patch,
    "CUSTOM": _reader(Custom, name=("name", if_text), value=("value", _as_it_is), run_id=_OWNER),
    **dict.fromkeys(_AS_CUSTOM, _read_as_custom),
}
"""Type of an object → what reads its event, without what is carried."""
