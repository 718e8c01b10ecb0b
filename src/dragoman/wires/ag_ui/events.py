"""The events that are objects of their own on both sides: runs, steps, state, and anything by name. Each is written as the protocol has it; what would
be read otherwise is carried."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.codec.json_values import if_list, if_object, if_objects, if_text, rest
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
from dragoman.message import Native, ToolCallPart
from dragoman.wires.ag_ui.extras import changed, difference, others, unpacked
from dragoman.wires.ag_ui.interrupts import load_interrupt
from dragoman.wires.ag_ui.quirks import OWN
from dragoman.wires.ag_ui.usage import load_usage

__all__ = ["AS_CUSTOM", "EVENT", "READ", "Calls", "load_event", "unread"]

EVENT = "event"
"""Key in the extras of an object: what of its event would be read otherwise."""
Calls = Mapping[str, ToolCallPart]
"""Calls by the ids under which the protocol knows them."""
AS_CUSTOM: Mapping[str, str] = {
    "RAW": "raw",
    "ACTIVITY_SNAPSHOT": "activity",
    "ACTIVITY_DELTA": "activity_delta",
}
"""Types of theirs that are custom events here → by which name."""
_COMMON = ("type", "metadata", "timestamp", "rawEvent")


def load_event(fields: Mapping[str, Any], calls: Calls) -> Event | None:
    """An object whose type is one of `READ` → the event; `None`: it says nothing.

    Raises:
        KeyError: it is of another type.
    """
    made = READ[fields["type"]](fields, calls)
    return (
        None
        if made is None
        else changed(made, unpacked(fields.get("metadata")).get(EVENT), type(made))
    )


def unread(event: Event, fields: Mapping[str, Any], calls: Calls) -> dict[str, Any]:
    """What of an event would not be read from the object that is written for it."""
    read = READ[fields["type"]](fields, calls)
    more = {} if read is None else difference(event, read)
    return {EVENT: more} if more else {}


def _own(fields: Mapping[str, Any], *known: str) -> Native:
    own = rest(fields, *_COMMON, *known)
    metadata = others(fields.get("metadata"))
    return OWN.note({**own, **({"metadata": metadata} if metadata else {})})


def _owner(fields: Mapping[str, Any]) -> str | None:
    return if_text(fields.get("subagentRunId")) or None


def _run_started(fields: Mapping[str, Any], _: Calls) -> Event:
    return RunStarted(
        if_text(fields.get("runId")),
        if_text(fields.get("threadId")) or None,
        if_text(fields.get("parentRunId")) or None,
        native=_own(fields, "runId", "threadId", "parentRunId", "protocolVersion", "input"),
    )


def _run_finished(fields: Mapping[str, Any], calls: Calls) -> Event:
    outcome = if_object(fields.get("outcome"))
    kind = if_text(outcome.get("type"))
    pending = tuple(
        [
            load_interrupt(each, calls.get(if_text(each.get("toolCallId"))))
            for each in if_objects(outcome.get("interrupts"))
        ]
    )
    waits = [id_ for id_ in if_list(outcome.get("pendingToolCallIds")) if isinstance(id_, str)]
    return RunFinished(
        if_text(fields.get("runId")),
        "cancelled"
        if kind == "cancelled"
        else "pending"
        if kind == "interrupt" or waits
        else "success",
        load_usage(fields.get("usage")),
        (*pending, *[Interrupt(id_, "tool", calls.get(id_)) for id_ in waits]),
        fields.get("result"),
        _own(fields, "runId", "threadId", "outcome", "usage", "result"),
    )


def _subagent_started(fields: Mapping[str, Any], _: Calls) -> Event:
    return RunStarted(
        if_text(fields.get("subagentRunId")),
        parent_run_id=if_text(fields.get("parentSubagentRunId")) or None,
        native=_own(fields, "subagentRunId", "parentSubagentRunId"),
    )


def _subagent_finished(fields: Mapping[str, Any], _: Calls) -> Event:
    suspended = if_object(fields.get("outcome")).get("type") == "suspended"
    return RunFinished(
        if_text(fields.get("subagentRunId")),
        "pending" if suspended else "success",
        result=fields.get("result"),
        native=_own(fields, "subagentRunId", "outcome", "result"),
    )


def _step_started(fields: Mapping[str, Any], _: Calls) -> Event:
    name = if_text(fields.get("stepName"))
    return StepStarted(name, _own(fields, "stepName", "subagentRunId"), _owner(fields))


def _step_finished(fields: Mapping[str, Any], _: Calls) -> Event:
    name = if_text(fields.get("stepName"))
    return StepFinished(
        name, native=_own(fields, "stepName", "subagentRunId"), run_id=_owner(fields)
    )


def _snapshot(fields: Mapping[str, Any], _: Calls) -> Event:
    return StateSnapshot(
        fields.get("snapshot"), _own(fields, "snapshot", "subagentRunId"), _owner(fields)
    )


def _delta(fields: Mapping[str, Any], _: Calls) -> Event | None:
    operations = fields.get("delta")
    if operations != [] and not if_objects(operations):
        return None
    return StateDelta(
        tuple(if_objects(operations)), _own(fields, "delta", "subagentRunId"), _owner(fields)
    )


def _custom(fields: Mapping[str, Any], _: Calls) -> Event:
    name = if_text(fields.get("name"))
    return Custom(
        name, fields.get("value"), _own(fields, "name", "value", "subagentRunId"), _owner(fields)
    )


def _as_custom(fields: Mapping[str, Any], _: Calls) -> Event:
    kind = if_text(fields.get("type"))
    value = rest(fields, *_COMMON, "subagentRunId")
    native = _own(dict.fromkeys(["type"], kind) | {"metadata": fields.get("metadata")})
    return Custom(AS_CUSTOM[kind], value, OWN.with_form(native, type=kind), _owner(fields))


READ: Mapping[str, Callable[[Mapping[str, Any], Calls], Event | None]] = {
    "RUN_STARTED": _run_started,
    "RUN_FINISHED": _run_finished,
    "SUBAGENT_STARTED": _subagent_started,
    "SUBAGENT_FINISHED": _subagent_finished,
    "STEP_STARTED": _step_started,
    "STEP_FINISHED": _step_finished,
    "STATE_SNAPSHOT": _snapshot,
    "STATE_DELTA": _delta,
    "CUSTOM": _custom,
    **dict.fromkeys(AS_CUSTOM, _as_custom),
}
"""Type → what an object of it says, without what is carried."""
