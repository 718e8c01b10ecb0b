"""A run, driven into its log: one task reads it, another stores what it says while it goes on
(`Driving`).

A run whose own end never comes, since the process that drove it is gone or it cannot go on, is
ended by `end_run`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from dragoman.errors import DragomanError, LogFullError, RunLogError
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
    event_to_json,
)
from dragoman.fold import MessageBuilder
from dragoman.logs import logger
from dragoman.message import FinishReason
from dragoman.result import ChatResult
from dragoman.runs.batch import weigh_events
from dragoman.runs.log import Lease, RunLog
from dragoman.runs.tail import RunTail

if TYPE_CHECKING:
    from dragoman.run import Run

__all__ = [
    "Driving",
    "Ended",
    "Last",
    "Put",
    "RunSource",
    "EventSource",
    "Stored",
    "end_run",
    "closing_events",
]

_LOG = logger("runs")
_MOST = 4096
"""Events that wait to be stored, before the run has to wait for that too."""
_MOST_BYTES = 1024 * 1024
"""Bytes of them."""

Put = Callable[[Sequence[Event]], Awaitable[None]]
"""Takes events on their way to the log."""
Last = RunFinished | RunError
"""The event that ends a run."""
Ended = Callable[[ChatResult[str], Last], Awaitable[None]]
"""Is given what a run gave, however it ended, and how it did."""
Stored = Callable[[Sequence[Event]], None]
"""Is given events of a run that were stored."""


class EventSource(Protocol):
    """What the events of a run come from."""

    @property
    def id(self) -> str:
        """Id of the run."""
        ...

    def cancel(self, driving: Driving) -> None:
        """Stops the run, which ends with outcome `cancelled`."""
        ...

    async def read(self, put: Put) -> None:
        """Gives all events to `put`, the last of which ends the run."""
        ...

    async def ended(self, last: Last) -> None:
        """The run's end is stored, and nobody in this process has read of it yet."""
        ...


class RunSource:
    """A run of an agent."""

    def __init__(self, run: Run[Any], ended: Ended | None) -> None:
        self._run, self._cancel_and_wait = run, ended

    @property
    def id(self) -> str:
        """See `EventSource`."""
        return self._run.id

    def cancel(self, driving: Driving) -> None:  # noqa: ARG002 the run says its end itself
        """See `EventSource`."""
        self._run.cancel()

    async def read(self, put: Put) -> None:
        """See `EventSource`."""
        async with self._run as run, aclosing(run.steps(chunks=False)) as steps:
            async for step in steps:
                await put(step.events)

    async def ended(self, last: Last) -> None:
        """See `EventSource`."""
        if self._cancel_and_wait is not None:
            await self._cancel_and_wait(self._run.so_far(), last)


class Driving:
    """Drives a run to its end, which is stored before anybody is told of it. What the log refuses
    ends the run here: another has it now, or will end it."""

    def __init__(
        self,
        log: RunLog,
        source: EventSource,
        lease: Lease,
        tail: RunTail,
        follow: Stored | None = None,
    ) -> None:
        self._log, self._source, self._lease, self._tail = log, source, lease, tail
        self._follow = follow
        self._waiting = _Waiting()
        self._last: Last | None = None

    def cancel(self) -> None:
        """Stops the run, which ends with outcome `cancelled`."""
        self._tail.free()
        self._source.cancel(self)

    def end_with(self, last: Last) -> None:
        """Ends the run here and now. What it has said until now is stored before that."""
        self._last = self._last or last
        self._tail.free()
        self._waiting.close()

    async def run(self) -> None:
        """Drives it."""
        try:
            await self._run()
        except RunLogError as error:
            _LOG.warning("run %s is left: %s", self._lease.run_id, error.message)
        finally:
            self._tail.close()

    async def _run(self) -> None:
        log, lease, tail, waiting = self._log, self._lease, self._tail, self._waiting
        reader = asyncio.create_task(self._read(), name=f"dragoman-run-{lease.run_id}")
        failure: Exception | None = None
        try:
            while failure is None and not tail.is_over and (events := await waiting.take()):
                try:
                    await log.append(lease.run_id, tail.end, events, lease=lease)
                except LogFullError as error:
                    failure, events = error, []
                except RunLogError:
                    raise
                except Exception as error:  # noqa: BLE001 - a value of the user's raises what it likes
                    failure, events = error, _storable(events)
                    await log.append(lease.run_id, tail.end, events, lease=lease)
                # Stored first, told then: a reader never sees an event that the log could lose.
                await self._tell_stored(events)
                await tail.paced()
        finally:
            await _cancel_and_wait(reader)
        if tail.is_over:
            return
        if failure is None and waiting.failure is None and self._last is not None:
            last = self._last
        else:
            cause = failure or waiting.failure or RuntimeError("it ended without an end")
            _LOG.warning("run %s cannot go on: %s", lease.run_id, cause)
            last = RunError(_ours(cause), lease.run_id)
        await self._tell_stored(await end_run(log, lease, last))

    async def _tell_stored(self, events: Sequence[Event]) -> None:
        """Events are stored: tells whom it concerns."""
        last = events[-1] if events else None
        is_over = False
        if self._follow is not None:
            self._follow(events)
        if isinstance(last, RunFinished | RunError) and last.run_id == self._lease.run_id:
            is_over = True
            try:
                await self._source.ended(last)
            except Exception:  # noqa: BLE001 - the run is over, whatever becomes of what it gave
                _LOG.exception("what run %s gave could not be kept", self._source.id)
        self._tail.extend(events)
        self._tail.is_over = is_over

    async def _read(self) -> None:
        waiting = self._waiting
        try:
            await self._source.read(waiting.put)
        except Exception as error:  # noqa: BLE001 - the log must tell whatever it was
            waiting.failure = error
        finally:
            waiting.close()


async def _cancel_and_wait(task: asyncio.Task[None]) -> None:
    """Cancels a task and waits for its end, however often we are cancelled ourselves meanwhile."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        task.cancel()
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


class _Waiting:
    """Events on their way from the run to the log."""

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self._events: list[Event] = []
        self._bytes = 0
        self._closed = False
        self._filled = asyncio.Event()
        self._room = asyncio.Event()

    async def put(self, events: Sequence[Event]) -> None:
        if self._closed:
            # Nothing is wanted any more, and a run that is stopped takes the reader's cancellation
            # for its own.
            raise asyncio.CancelledError
        if not events:
            # `take` says by an empty list that nothing will come any more.
            return
        self._events += events
        self._bytes += weigh_events(events)
        self._filled.set()
        if len(self._events) > _MOST or self._bytes > _MOST_BYTES:
            self._room.clear()
            await self._room.wait()

    async def take(self) -> list[Event]:
        """All that there is; `[]`: nothing will come any more."""
        await self._filled.wait()
        events, self._events, self._bytes = self._events, [], 0
        if not self._closed:
            self._filled.clear()
        self._room.set()
        return events

    def close(self) -> None:
        self._closed = True
        self._filled.set()


def _storable(events: Sequence[Event]) -> list[Event]:
    """The events before the first that JSON cannot hold."""
    storable: list[Event] = []
    with suppress(Exception):
        for event in events:
            event_to_json(event)
            storable.append(event)
    return storable


def _ours(failure: Exception) -> DragomanError:
    if isinstance(failure, DragomanError):
        return failure
    wrapped = DragomanError(
        f"{type(failure).__name__} ended the run, since its log must hold all of it: {failure}"
    )
    wrapped.__cause__ = failure
    return wrapped


_replace = msgspec.structs.replace


def closing_events(events: Iterable[Event], last: RunFinished | RunError) -> list[Event]:
    """The events with which a run that stands at these ends: what is open is closed as it was told,
    parts as cut; a message that holds nothing is dropped. `last`: the event that ends the run, an
    error or `cancelled`."""
    failed = isinstance(last, RunError)
    reason = last.error.message if failed else last.outcome
    finish = FinishReason.error if failed else FinishReason.cancelled
    messages: dict[str, MessageBuilder] = {}
    steps: dict[tuple[str, str | None], None] = {}
    inner: dict[str, None] = {}
    for event in events:
        if isinstance(event, (PartDelta, PartStarted, PartFinished)):
            if (builder := messages.get(event.message_id)) is not None:
                builder.add(event)
        elif isinstance(event, MessageStarted):
            messages[event.message_id] = MessageBuilder(event)
        elif isinstance(event, (MessageFinished, MessageDropped)):
            messages.pop(event.message_id, None)
        elif isinstance(event, StepStarted):
            steps[event.name, event.run_id] = None
        elif isinstance(event, StepFinished):
            steps.pop((event.name, event.run_id), None)
        elif isinstance(event, RunStarted):
            inner[event.run_id] = None
        elif isinstance(event, RunFinished) or (
            isinstance(event, RunError) and event.run_id is not None
        ):
            inner.pop(event.run_id or "", None)
    closing: list[Event] = []
    for message_id, builder in messages.items():
        closing += builder.cut()
        empty = not builder.content()
        closing.append(
            MessageDropped(message_id, reason) if empty else MessageFinished(message_id, finish)
        )
    closing += [StepFinished(name, run_id=of) for name, of in reversed(steps)]
    return [
        *closing,
        *[
            _replace(last, run_id=inner_id)
            for inner_id in reversed(inner)
            if inner_id != last.run_id
        ],
        last,
    ]


async def end_run(log: RunLog, lease: Lease, last: RunFinished | RunError) -> list[Event]:
    """Ends the run of that lease, where its log stands → the events that did so.

    Raises:
        RunLogError: as `RunLog.append`.
    """
    events: list[Event] = []
    while page := await log.read(lease.run_id, len(events)):
        events += page
    closing = closing_events(events, last)
    await log.append(lease.run_id, len(events), closing, lease=lease)
    return closing
