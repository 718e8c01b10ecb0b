"""The laws that the log of a durable run keeps, however often its process died (`check_laws`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

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
    StepFinished,
    StepStarted,
    is_calls_begun,
)
from dragoman.fold import fold
from dragoman.inner_runs import without_inner_runs
from dragoman.message import Message, Role
from dragoman.testing.check import require, require_equal

__all__ = ["list_begun_calls", "check_laws", "check_open", "list_unknown_outcomes"]


def check_laws(events: Sequence[Event], run_id: str) -> list[Message]:
    """Checks what holds for the log of every run that is over. Returns its messages.

    Raises:
        CheckFailed: the run does not begin and end once, a part of it is told outside its place or is
            left open, a name or an id is used twice, or calls and results do not pair.
    """
    own_events = without_inner_runs(events)
    started = [event.run_id for event in own_events if isinstance(event, RunStarted)]
    require_equal(started, [run_id], "the runs that the log begins")
    ends = [event for event in own_events if isinstance(event, RunFinished | RunError)]
    require_equal(ends, list(own_events[-1:]), "the ends of the run")
    check_open(events)
    _check_unique([event.name for event in own_events if isinstance(event, StepStarted)], "step")
    messages = fold(events)
    _check_unique([message.id for message in messages], "id of a message")
    for before, after in pairwise(messages):
        require(before.role != after.role, f"two messages of {after.role} follow each other")
        if before.role is Role.MODEL:
            _check_pairs(before, after)
    return messages


def check_open(events: Sequence[Event]) -> None:
    """Checks that messages, parts and steps are spoken of only while they are open, and that all are
    closed.

    Raises:
        CheckFailed: they are not.
    """
    parts: dict[str, set[int]] = {}
    steps: set[tuple[str, str | None]] = set()
    for event in events:
        match event:
            case MessageStarted():
                require(event.message_id not in parts, f"a message begins twice: {event}")
                parts[event.message_id] = set()
            case MessageFinished() | MessageDropped():
                require(parts.pop(event.message_id, None) is not None, f"it is not open: {event}")
            case PartStarted():
                require(event.message_id in parts, f"its message is not open: {event}")
                parts[event.message_id].add(event.index)
            case PartDelta() | PartFinished():
                require(event.index in parts.get(event.message_id, ()), f"it is not open: {event}")
            case StepStarted():
                steps.add((event.name, event.run_id))
            case StepFinished():
                require((event.name, event.run_id) in steps, f"it is not open: {event}")
                steps.remove((event.name, event.run_id))
            case _:
                pass
    require(not parts and not steps, f"left open: {[*parts]}, {[*steps]}")


def list_begun_calls(events: Iterable[Event]) -> list[str]:
    """Returns the ids of the calls that the log says have begun, in order."""
    marks = [event for event in events if isinstance(event, Custom) and is_calls_begun(event)]
    return [name for mark in marks for name in mark.value]


def list_unknown_outcomes(messages: Iterable[Message]) -> list[str]:
    """Returns the ids of the calls whose results say that nobody knows what they did."""
    return [
        part.id
        for message in messages
        for part in message.tool_results
        if part.is_error and "outcome unknown" in str(part.result)
    ]


def _check_pairs(asked: Message, answered: Message) -> None:
    """Checks that each call of a message has one result in the next, or none has."""
    calls = Counter(call.id for call in asked.tool_calls)
    results = Counter(result.id for result in answered.tool_results)
    require(calls == results or not results, f"calls and results differ: {calls}, {results}")


def _check_unique(names: Sequence[str | None], what: str) -> None:
    require(len(names) == len(set(names)), f"a {what} is used twice: {names}")
