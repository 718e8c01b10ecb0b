"""Closes what a process has left open in the log of a run (`Unfinished`).

`end_run` ends a run that cannot end by itself, for example because its process is gone. It first
closes the messages, steps and nested runs that are still open (`closing_events`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable

import msgspec

from dragoman.errors import RunInterruptedError
from dragoman.event import (
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
    set_time,
)
from dragoman.fold import MessageBuilder
from dragoman.message import FinishReason, MarkPart
from dragoman.runs.log import Lease, RunLog
from dragoman.runtime import now

__all__ = ["Unfinished", "closing_events", "end_run", "read_pages"]

_replace = msgspec.structs.replace


class Unfinished:
    """The messages, steps and runs that are open after some events."""

    def __init__(self) -> None:
        self._messages: dict[str, MessageBuilder] = {}
        """Open messages by their ids."""
        self._steps: dict[tuple[str, str | None], None] = {}
        """Open steps: name, and id of the run."""
        self._runs: dict[str, None] = {}
        """Ids of open runs, the outermost first."""

    def feed(self, events: Iterable[Event]) -> None:
        """Takes the next events."""
        for event in events:
            self._feed(event)

    def _feed(self, event: Event) -> None:
        """Tracks which messages and parts of a run are open, by the next event."""
        if isinstance(event, (PartDelta, PartStarted, PartFinished)):
            if (builder := self._messages.get(event.message_id)) is not None:
                builder.add(event)
        elif isinstance(event, MessageStarted):
            self._messages[event.message_id] = MessageBuilder(event)
        elif isinstance(event, (MessageFinished, MessageDropped)):
            self._messages.pop(event.message_id, None)
        elif isinstance(event, StepStarted):
            self._steps[event.name, event.run_id] = None
        elif isinstance(event, StepFinished):
            self._steps.pop((event.name, event.run_id), None)
        elif isinstance(event, RunStarted):
            self._runs[event.run_id] = None
        elif isinstance(event, (RunFinished, RunError)) and event.run_id is not None:
            self._runs.pop(event.run_id, None)

    def end(self, last: RunFinished | RunError) -> list[Event]:
        """Returns the events that end the run; see `closing_events`."""
        if isinstance(last, RunError):
            reason, finish_reason = last.error.message, FinishReason.error
        else:
            reason, finish_reason = last.outcome, FinishReason.cancelled
        closing: list[Event] = []
        for message_id, builder in self._messages.items():
            closing += builder.cut()
            if builder.content():
                closing.append(MessageFinished(message_id, finish_reason))
            else:
                closing.append(MessageDropped(message_id, reason))
        nested_ids = [run_id for run_id in reversed(self._runs) if run_id != last.run_id]
        nested = [_replace(last, run_id=nested_id) for nested_id in nested_ids]
        return [*closing, *self._end_steps(), *nested, last]

    def cut(self, run_id: str) -> list[Event]:
        """Returns the events that close what the earlier process of a durable run has left open, so
        that the run can go on. Messages that were cut are dropped: what they said is told again.
        Runs of agents in tools end; those that go on begin again, under their ids."""
        reason = "the process that drove the run ended"
        closing: list[Event] = []
        for message_id, builder in self._messages.items():
            # The marks of what waits come last: all results are there.
            if any(isinstance(part, MarkPart) for part in builder.content()):
                closing += [*builder.cut(), MessageFinished(message_id)]
            else:
                closing.append(MessageDropped(message_id, reason))
        nested_ids = [nested_id for nested_id in reversed(self._runs) if nested_id != run_id]
        nested = [RunError(RunInterruptedError(reason), nested_id) for nested_id in nested_ids]
        return [*closing, *self._end_steps(), *nested]

    def _end_steps(self) -> list[StepFinished]:
        return [StepFinished(name, run_id=run_id) for name, run_id in reversed(self._steps)]


def closing_events(events: Iterable[Event], last: RunFinished | RunError) -> list[Event]:
    """Returns the events that end a run after these events.

    Open parts are closed as cut, a message without content is dropped, and open steps and nested
    runs end from the inside out. `last` is the event that ends the run: an error, or outcome
    `cancelled`.
    """
    unfinished = Unfinished()
    unfinished.feed(events)
    return unfinished.end(last)


async def read_pages(log: RunLog, run_id: str) -> AsyncGenerator[list[Event], None]:
    """Yields all events that the log of a run to be closed holds, piece by piece."""
    end = 0
    while page := await log.read(run_id, end):
        end += len(page)
        yield page


async def end_run(log: RunLog, lease: Lease, last: RunFinished | RunError) -> list[Event]:
    """Closes the run of a lease after the events that its log has. Returns the events that end it.

    Raises:
        RunLogError: see `RunLog.append`.
    """
    unfinished, end = Unfinished(), 0
    async for page in read_pages(log, lease.run_id):
        unfinished.feed(page)
        end += len(page)
    closing = set_time(unfinished.end(last), now())
    await log.append(lease.run_id, end, closing, lease=lease)
    return closing
