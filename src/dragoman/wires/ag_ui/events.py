"""The events that are objects of their own on both sides: runs, steps, state, and anything by name.
Each is written as the protocol has it, and what would be read otherwise is carried. Texts,
reasoning and calls are families of objects: a start, content and an end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dragoman.codec.json_difference import apply_difference, find_difference
from dragoman.codec.json_values import (
    if_list,
    if_object,
    if_objects,
    if_text,
    optional_field,
    read_extra_fields,
)
from dragoman.codec.response_state import dump_usage_entries, load_usage_entries
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
    "find_unread",
]


class Family(NamedTuple):
    """The object types of texts, calls or reasoning, and the field with their id."""

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
"""Type of an object → its family."""
Calls = Mapping[str, ToolCallPart]
"""Calls by the protocol's ids of them."""
_EVENT = "event"
"""Key in an object's extras: the fields of its event that would be read otherwise."""
_AS_CUSTOM: Mapping[str, str] = {
    "RAW": "raw",
    "ACTIVITY_SNAPSHOT": "activity",
    "ACTIVITY_DELTA": "activity_delta",
}
"""Types without an event of their own → the name of the custom event that they become."""
_Reader = Callable[[JsonMap, Calls], Event | None]
_COMMON = ("type", "timestamp", "rawEvent")


def load_event(fields: JsonMap, calls: Calls) -> Event | None:
    """Returns the event of an AG-UI object whose type is in `READ`, or None if it says nothing.

    Raises:
        KeyError: the object has another type.
    """
    read = READ[fields["type"]](fields, calls)
    if read is None:
        return None
    return apply_difference(read, load_extras(fields.get("metadata")).get(_EVENT), type(read))


def find_unread(event: Event, fields: JsonMap) -> Json:
    """Returns the extras for the AG-UI object of an event: what its reader would read otherwise."""
    read = READ[fields["type"]](fields, {})
    # what its reader will make of the object, without the extras
    more = {} if read is None else find_difference(event, read)
    return optional_field(_EVENT, more)


# written


def dump_event(event: Event) -> Json:
    """Returns the object of a step, a state or a custom event, without its extras and run."""
    write = _WRITE[type(event)]
    return {**OWN.fields(getattr(event, "native", None)), **write(event)}


def dump_started(thread_id: str, run_id: str, parent: str | None = None) -> Json:
    """Returns the AG-UI object that starts a run. `parent` is the run that it continues."""
    fields = {
        "type": "RUN_STARTED",
        "threadId": thread_id,
        "runId": run_id,
        "protocolVersion": VERSION,
    }
    if parent:
        return {**fields, "parentRunId": parent}
    return fields


def dump_failed(error: DragomanError) -> Json:
    """Returns the AG-UI object that ends a failed run."""
    return {
        "type": "RUN_ERROR",
        "message": error.message or "error",
        "code": code_of(error),
    }


def dump_finished(
    event: RunFinished, thread_id: str, run_id: str, call_ids: Mapping[str, str], *, current: bool
) -> Json:
    """Returns the AG-UI object that ends a run.

    Calls that the client must run are no interrupts: it answers them with tool messages.

    Args:
        event: the end of the run.
        thread_id, run_id: as the client knows them.
        call_ids: id of a waiting call → the protocol's id of it.
        current: True if the peer reads what 1.0 added.
    """
    fields: Json = {
        "type": "RUN_FINISHED",
        "threadId": thread_id,
        "runId": run_id,
        "outcome": _dump_outcome(event, call_ids, current=current),
    }
    if event.result is not None:
        fields["result"] = event.result
    if usage := dump_usage_entries(event.usage):
        fields["usage"] = usage
    return {**OWN.fields(event.native), **fields}


def _dump_outcome(event: RunFinished, call_ids: Mapping[str, str], *, current: bool) -> Json:
    """Returns the outcome of an AG-UI run: an interrupt, cancelled or success."""
    interrupts: list[Json] = []
    client_calls: list[str] = []
    for interrupt in event.pending:
        id_ = ""
        if interrupt.call:
            id_ = interrupt.call.id
        if interrupt.reason != "tool":
            interrupts.append(dump_interrupt(interrupt, call_ids.get(id_)))
        elif interrupt.call:
            client_calls.append(call_ids.get(id_, id_))
    if interrupts:
        return {"type": "interrupt", "interrupts": interrupts}
    if event.outcome == "cancelled" and current:
        return {"type": "cancelled"}
    # the client runs these calls itself, so for the protocol the run is done
    if client_calls and current:
        return {"type": "success", "pendingToolCallIds": client_calls}
    return {"type": "success"}


def _dump_state(event: StateSnapshot) -> Json:
    """Returns the object of a whole state."""
    return {"type": "STATE_SNAPSHOT", "snapshot": event.state}


def _dump_patch(event: StateDelta) -> Json:
    """Returns the object of a changed state."""
    return {"type": "STATE_DELTA", "delta": [dict(operation) for operation in event.operations]}


def _dump_custom(event: Custom) -> Json:
    """Returns the AG-UI object of a custom event. One that was read from another type gets that
    type again."""
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
"""Type of an event → a function that writes the neutral fields of its object."""

# read


def _as_it_is(value: Any) -> Any:
    """Returns the value unchanged."""
    return value


def _optional_text(value: Any) -> str | None:
    """Returns a text, or None if it is empty or no text."""
    return if_text(value) or None


def _is_suspended(outcome: Any) -> str:
    """Returns the outcome of a tool's run in an AG-UI event: `pending` if it is suspended, else
    `success`."""
    if if_object(outcome).get("type") == "suspended":
        return "pending"
    return "success"


def _operations(value: Any) -> tuple[JsonMap, ...]:
    """Returns the operations of a JSON patch."""
    return tuple(if_objects(value))


def _event_reader(
    target: type, *neutral: str, **names: tuple[str, Callable[[Any], Any]]
) -> _Reader:
    """Returns a function that reads an AG-UI object as an event of this type.

    Args:
        target: class of the event.
        neutral: fields of the object that are ignored.
        names: field of the event → field of the object, and the function that reads its value.
    """
    read_names = (*_COMMON, *neutral, *[name for name, _ in names.values()])

    def read(fields: JsonMap, _: Calls) -> Event:
        values = {field: load(fields.get(name)) for field, (name, load) in names.items()}
        return target(**values, native=load_native(fields, *read_names))

    return read


def _read_finished(fields: JsonMap, calls: Calls) -> Event:
    """Returns the end of an AG-UI run, with its interrupts and the calls that the client must
    run."""
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
    """Returns a change of the AG-UI state, or None if it is no list of operations."""
    operations = fields.get("delta")
    if operations != [] and not if_objects(operations):
        return None
    return _read_operations(fields, calls)


def _read_as_custom(fields: JsonMap, _: Calls) -> Event:
    """Returns an AG-UI object without an event of its own as a custom event."""
    event_type = fields["type"]
    value = read_extra_fields(fields, *_COMMON, "metadata", _OWNER[0])
    native = OWN.with_form(load_native({"metadata": fields.get("metadata")}), type=event_type)
    return Custom(_AS_CUSTOM[event_type], value, native, _optional_text(fields.get(_OWNER[0])))


_OWNER = ("subagentRunId", _optional_text)
"""Field of objects that may belong to a run within a tool."""
_read_operations = _event_reader(StateDelta, operations=("delta", _operations), run_id=_OWNER)
READ: Mapping[str, _Reader] = {
    "RUN_STARTED": _event_reader(
        RunStarted,
        "protocolVersion",
        "input",
        run_id=("runId", if_text),
        thread_id=("threadId", _optional_text),
        parent_run_id=("parentRunId", _optional_text),
    ),
    "RUN_FINISHED": _read_finished,
    "SUBAGENT_STARTED": _event_reader(
        RunStarted,
        run_id=("subagentRunId", if_text),
        parent_run_id=("parentSubagentRunId", _optional_text),
    ),
    "SUBAGENT_FINISHED": _event_reader(
        RunFinished,
        run_id=("subagentRunId", if_text),
        outcome=("outcome", _is_suspended),
        result=("result", _as_it_is),
    ),
    "STEP_STARTED": _event_reader(StepStarted, name=("stepName", if_text), run_id=_OWNER),
    "STEP_FINISHED": _event_reader(StepFinished, name=("stepName", if_text), run_id=_OWNER),
    "STATE_SNAPSHOT": _event_reader(StateSnapshot, state=("snapshot", _as_it_is), run_id=_OWNER),
    "STATE_DELTA": _read_patch,
    "CUSTOM": _event_reader(
        Custom, name=("name", if_text), value=("value", _as_it_is), run_id=_OWNER
    ),
    **dict.fromkeys(_AS_CUSTOM, _read_as_custom),
}
"""Type of an object → a function that reads its event, without what is carried."""
