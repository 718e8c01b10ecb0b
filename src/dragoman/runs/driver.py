"""Drives a run into its log.

`RunDriver` runs two tasks. One reads the events of a source (`RunSource` for a run of an agent) into
a queue; the other stores what has collected in the queue, as many events at a time as there are.
Readers learn of events only once they are stored. A log in memory is given them at
once if a reader waits, without the second task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from dragoman.errors import DragomanError, LogFullError, RunLogError
from dragoman.event import Event, RunError, RunFinished, event_to_json, set_time
from dragoman.logs import logger
from dragoman.result import ChatResult
from dragoman.runs.batch import weigh_events
from dragoman.runs.calls_at_work import CallsAtWork
from dragoman.runs.closing import end_run
from dragoman.runs.log import Lease, RunLog
from dragoman.runs.memory_log import MemoryLog
from dragoman.runs.tail import RunTail
from dragoman.runtime import now

if TYPE_CHECKING:
    from dragoman.run import Run

__all__ = [
    "EndCallback",
    "EventSource",
    "FinalEvent",
    "PutEvents",
    "RunDriver",
    "RunSource",
    "StoreCallback",
    "as_dragoman_error",
]

_LOG = logger("runs")
_MOST_EVENTS = 4096
"""Events that may wait in the queue before the run has to wait for the log."""
_MOST_BYTES = 1024 * 1024
"""Bytes that these events may have together."""

PutEvents = Callable[[Sequence[Event]], Awaitable[None]]
"""Takes events on their way to the log."""
FinalEvent = RunFinished | RunError
"""The event that ends a run."""
EndCallback = Callable[[ChatResult[str], FinalEvent], Awaitable[None]]
"""Called with the result of a run and its final event, however it ended."""
StoreCallback = Callable[[Sequence[Event]], None]
"""Called with events of a run once they are stored."""


class EventSource(Protocol):
    """Where the events of a run come from."""

    @property
    def id(self) -> str:
        """Returns the id of the run."""
        ...

    def cancel(self, driver: RunDriver) -> None:
        """Stops the run, which then ends with outcome `cancelled`."""
        ...

    async def read(self, put: PutEvents) -> None:
        """Gives all events to `put`. The last one ends the run."""
        ...

    async def handle_end(self, last: FinalEvent) -> None:
        """Called when the end of the run is stored, before readers in this process learn of it."""
        ...


class RunSource:
    """The events of an agent's run."""

    def __init__(self, run: Run[Any], on_end: EndCallback | None) -> None:
        self._run, self._on_end = run, on_end

    @property
    def id(self) -> str:
        """See `EventSource`."""
        return self._run.id

    def cancel(self, driver: RunDriver) -> None:  # noqa: ARG002 - the run itself sends its end
        """See `EventSource`."""
        self._run.cancel()

    async def read(self, put: PutEvents) -> None:
        """See `EventSource`."""
        async with self._run as run, aclosing(run.steps(chunks=False)) as steps:
            async for step in steps:
                await put(step.events)

    async def handle_end(self, last: FinalEvent) -> None:
        """See `EventSource`."""
        if self._on_end is not None:
            await self._on_end(self._run.so_far(), last)


class RunDriver:
    """Drives a run to its end. If the log refuses an event, the driver gives the run up: another
    process has taken it over, or will end it."""

    def __init__(
        self,
        log: RunLog,
        source: EventSource,
        lease: Lease,
        tail: RunTail,
        on_stored: StoreCallback | None = None,
    ) -> None:
        self._log, self._source, self._lease, self._tail = log, source, lease, tail
        self._on_stored = on_stored
        # Exact type: another log may wait, and a cancellation come between storing and telling.
        self._appends_at_once = type(log) is MemoryLog
        self._queue = _EventQueue()
        self.calls_at_work = CallsAtWork()
        """The calls whose tools are at work."""
        self._final_event: FinalEvent | None = None
        self._is_handed_over = False

    def hand_over(self) -> None:
        """Stops to drive a durable run, and leaves it to another process. Events that already wait
        are stored before it, then the lease is given back."""
        self._is_handed_over = True
        self._tail.stop_pacing()
        self._queue.close()

    def cancel(self) -> None:
        """Cancels the run that this drives, which then ends with outcome `cancelled`."""
        # A run that waits for slow readers would not notice the cancellation.
        self._tail.stop_pacing()
        self._source.cancel(self)

    def end_with(self, last: FinalEvent) -> None:
        """Ends the driven run at once with this event. Events that already wait are stored before
        it."""
        self._final_event = self._final_event or last
        self._tail.stop_pacing()
        self._queue.close()

    async def wait_until_stored(self) -> None:
        """Waits until all events that the driven run's source has given so far are stored. The log
        is told to hurry."""
        self._log.hurry()
        await self._queue.wait_until_stored()

    async def run(self) -> None:
        """Drives the run until it is over or given up."""
        try:
            await self._run()
        except RunLogError as error:
            _LOG.warning("run %s is left: %s", self._lease.run_id, error.message)
        finally:
            self._tail.close()

    async def _run(self) -> None:
        """Drives the run: stores events until it ends, and ends it if its own end does not come."""
        log, lease, tail, queue = self._log, self._lease, self._tail, self._queue
        reader = asyncio.create_task(self._read_source(), name=f"dragoman-run-{lease.run_id}")
        failure: Exception | None = None
        try:
            while failure is None and not tail.is_over and (events := await queue.take()):
                events = set_time(events, now())
                if queue.is_awaited:
                    log.hurry()
                try:
                    await log.append(lease.run_id, tail.end, events, lease=lease)
                except LogFullError as error:
                    failure, events = error, []
                except RunLogError:
                    raise
                except Exception as error:  # noqa: BLE001
                    # A value of the user's may raise anything when it is encoded. The events before
                    # it are stored, then the run ends with this error.
                    failure, events = error, _select_storable(events)
                    await log.append(lease.run_id, tail.end, events, lease=lease)
                # Publish after storing: a reader must never see an event that the log could lose.
                await self._publish(events)
                queue.note_stored(len(events))
                await tail.wait_for_readers()
        finally:
            await _cancel_and_wait(reader)
        if tail.is_over:
            return
        if self._is_handed_over and failure is None:
            await log.lease(lease.run_id, lease.owner, 0, token=lease.token)
        else:
            await self._publish(await end_run(log, lease, self._choose_final_event(failure)))

    def _choose_final_event(self, failure: Exception | None) -> FinalEvent:
        """Returns the event that ends a driven run whose own end did not come. `failure`: the
        exception with which storing failed."""
        cause = failure or self._queue.failure
        if cause is None and self._final_event is not None:
            return self._final_event
        if cause is None:
            cause = RuntimeError("it ended without an end")
        _LOG.warning("run %s cannot go on: %s", self._lease.run_id, cause)
        return RunError(as_dragoman_error(cause), self._lease.run_id)

    async def _publish(self, events: Sequence[Event]) -> None:
        """Passes stored events of the driven run to the callbacks, then to the readers in this
        process."""
        last = events[-1] if events else None
        is_over = False
        if self._on_stored is not None:
            self._on_stored(events)
        if self._is_end(last):
            is_over = True
            try:
                await self._source.handle_end(last)
            except Exception:  # noqa: BLE001 - the run is over, even if its result cannot be kept
                _LOG.exception("what run %s gave could not be kept", self._source.id)
        self._tail.extend(events)
        self._tail.is_over = is_over

    def _is_end(self, event: Event | None) -> TypeGuard[FinalEvent]:
        """True if an event ends the driven run."""
        return isinstance(event, RunFinished | RunError) and event.run_id == self._lease.run_id

    async def _read_source(self) -> None:
        """Reads the driven run's source into the queue, and closes the queue at its end."""
        queue = self._queue
        try:
            await self._source.read(self._put)
        except Exception as error:  # noqa: BLE001 - the log has to record whatever it was
            queue.failure = error
        finally:
            queue.close()

    async def _put(self, events: Sequence[Event]) -> None:
        """Takes events of the source."""
        # Not when they are stored: what waits in the queue is stored when the run is handed over.
        self.calls_at_work.feed(events)
        if await self._store_now(events):
            await self._tail.wait_for_readers()
        else:
            await self._queue.put(events)

    async def _store_now(self, events: Sequence[Event]) -> bool:
        """Stores events of the driven run in its source's own step if a reader waits for them, so that
        no other task is woken in between. Returns False, and does nothing, if that is left to the
        driver: it tells what failed, and what ended."""
        tail, idle = self._tail, self._queue.is_idle
        if not (self._appends_at_once and tail.is_awaited and idle and events) or self._is_end(
            events[-1]
        ):
            return False
        events = set_time(events, now())
        try:
            await self._log.append(self._lease.run_id, tail.end, events, lease=self._lease)
        except Exception:  # noqa: BLE001 - the driver meets it, too
            return False
        await self._publish(events)
        return True


async def _cancel_and_wait(task: asyncio.Task[None]) -> None:
    """Cancels a driver's task and waits for its end, even if the caller is cancelled meanwhile."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        task.cancel()
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


class _EventQueue:
    """Events on their way from the run to the log."""

    def __init__(self) -> None:
        self.failure: Exception | None = None
        """The exception with which reading the source failed."""
        self._events: list[Event] = []
        self._bytes = 0
        self._closed = False
        self._filled = asyncio.Event()
        self._room = asyncio.Event()
        self._put_count = self._stored_count = self._awaited_count = 0
        self._storing: asyncio.Future[None] | None = None
        """Done when the next events are stored; `None`: nobody waits for that."""

    async def put(self, events: Sequence[Event]) -> None:
        """Adds events of the driven run. Waits if the queue is full."""
        if self._closed:
            # The run is to stop: it treats a cancelled reader as its own cancellation.
            raise asyncio.CancelledError
        if not events:
            # `take` returns an empty list only at the end.
            return
        self._events += events
        self._put_count += len(events)
        self._bytes += weigh_events(events)
        self._filled.set()
        if len(self._events) > _MOST_EVENTS or self._bytes > _MOST_BYTES:
            self._room.clear()
            await self._room.wait()

    async def take(self) -> list[Event]:
        """Waits for events of the driven run and returns all that there are. Returns `[]` at the
        end."""
        await self._filled.wait()
        events, self._events, self._bytes = self._events, [], 0
        if not self._closed:
            self._filled.clear()
        self._room.set()
        return events

    @property
    def is_idle(self) -> bool:
        """True if no event waits, and more may come."""
        return not (self._events or self._closed)

    @property
    def is_awaited(self) -> bool:
        """True if somebody waits until some of the events are stored."""
        return self._stored_count < self._awaited_count

    def note_stored(self, count: int) -> None:
        """Notes that so many more events are stored."""
        self._stored_count += count
        if self._storing is not None:
            self._storing.set_result(None)
            self._storing = None

    async def wait_until_stored(self) -> None:
        """Waits until all events that were added so far are stored."""
        wanted = self._awaited_count = self._put_count
        while self._stored_count < wanted:
            if self._storing is None:
                self._storing = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._storing)

    def close(self) -> None:
        """Ends the queue. Events that are in it can still be taken."""
        self._closed = True
        self._filled.set()


def _select_storable(events: Sequence[Event]) -> list[Event]:
    """Returns the driven run's events before the first one that JSON cannot hold."""
    storable: list[Event] = []
    with suppress(Exception):
        for event in events:
            event_to_json(event)
            storable.append(event)
    return storable


def as_dragoman_error(failure: Exception) -> DragomanError:
    """Returns the exception of a driven run, wrapped if it is not one of dragoman's."""
    if isinstance(failure, DragomanError):
        return failure
    wrapped = DragomanError(
        f"{type(failure).__name__} ended the run, since its log must hold all of it: {failure}"
    )
    wrapped.__cause__ = failure
    return wrapped
