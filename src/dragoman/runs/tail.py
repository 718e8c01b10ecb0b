"""Keeps the latest stored events of a run in memory, so that readers in the process that drives it
need not ask the log."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence

from dragoman.event import Event
from dragoman.runs.batch import weigh_event, weigh_events

__all__ = ["Cursor", "RunTail"]

_MOST_EVENTS = 1024
"""Events that stay here at least. Readers that are further behind read the log."""
_MOST_BYTES = 512 * 1024
"""Bytes of the events that stay here."""
_PAGE = 256
"""Most events of a page that a reader takes at once."""
_PAGE_BYTES = 128 * 1024
"""Most bytes of a page, unless one event alone is larger."""
_AHEAD_BYTES = 1024 * 1024
"""Bytes that a run may be ahead of its fastest reader."""


class Cursor:
    """The position of a reader that the run waits for."""

    __slots__ = ("read_bytes", "tail")

    def __init__(self) -> None:
        """Creates a reader's position in a run's tail of events."""
        self.read_bytes = 0
        """Bytes of the events that the reader has passed on, counted from the start of the run."""
        self.tail: RunTail | None = None
        """The run that waits for this reader."""

    def follow(self, tail: RunTail) -> None:
        """Makes a run's tail wait for this reader, unless one does already."""
        if self.tail is None:
            self.tail = tail
            tail.add_reader(self)

    def advance(self, page: Sequence[Event], offset: int) -> None:
        """Notes that the reader has passed on this page, which ends at `offset`."""
        if self.tail is not None:
            self.tail.advance_reader(self, page, offset)

    def leave(self) -> None:
        """Lets the run go on without this reader."""
        if self.tail is not None:
            self.tail.remove_reader(self)


class _Waiters:
    """Tasks that wait for the same, each with a future of its own: a shared one has to be shielded,
    which takes two turns of the event loop."""

    def __init__(self) -> None:
        self.futures: set[asyncio.Future[None]] = set()
        """Of those that wait."""

    async def wait(self) -> None:
        """Waits until `wake` is called."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.futures.add(future)
        try:
            await future
        finally:
            self.futures.discard(future)

    def wake(self) -> None:
        """Wakes all that wait."""
        futures, self.futures = self.futures, set()
        for future in futures:
            if not future.done():
                future.set_result(None)


class RunTail:
    """The end of a run, which grows as events are stored. Slow readers cost it no memory.

    Readers that are added with `add_reader` pace the run: while all of them are far behind it waits,
    because its events would only pile up. One reader that keeps up is enough. Without any such
    reader the run does not wait.
    """

    def __init__(self, end: int = 0) -> None:
        """Creates a run's tail. `end`: number of events that are stored already."""
        self.end = end
        """Number of events that are stored."""
        self.is_closed = False
        """True if no more events will come from here. The log may get more, unless the run is
        over."""
        self.is_over = False
        """True if the run is over."""
        self._events: list[Event] = []
        self._sums: list[int] = []
        """Bytes of the run up to and including each of these events."""
        self._bytes = 0
        self._growth = _Waiters()
        self._cursors: list[Cursor] = []
        self._progress = _Waiters()
        self._is_unpaced = False

    def extend(self, events: Sequence[Event]) -> None:
        """Adds stored events to the tail of a run, for its readers."""
        for event in events:
            self._bytes += weigh_event(event)
            self._sums.append(self._bytes)
        self._events += events
        self.end += len(events)
        # Deleting from the front moves all later events, so it happens in large steps: each event
        # is moved once on average.
        if len(self._events) > 2 * _MOST_EVENTS:
            self._forget(len(self._events) - _MOST_EVENTS)
        elif self._sums and self._bytes - self._sums[0] > 2 * _MOST_BYTES:
            self._forget(bisect_right(self._sums, self._bytes - _MOST_BYTES))
        self._growth.wake()

    def close(self) -> None:
        """Tells readers that no more events will come from here."""
        self.is_closed = True
        self._growth.wake()

    def read_page(self, offset: int) -> list[Event] | None:
        """Returns some events from `offset` on, or None if they are no longer here."""
        index = offset - (self.end - len(self._events))
        if index < 0:
            return None
        if index >= len(self._events):
            return []
        stop = bisect_right(self._sums, self._sums[index] + _PAGE_BYTES, index + 1)
        return self._events[index : min(stop, index + _PAGE)]

    async def wait_for_growth(self) -> None:
        """Waits until there are more events, or none will come any more."""
        if not self.is_closed:
            await self._growth.wait()

    @property
    def is_awaited(self) -> bool:
        """True if a reader has all events and waits for more."""
        return bool(self._growth.futures)

    def add_reader(self, cursor: Cursor) -> None:
        """Makes the run wait for a reader."""
        self._cursors.append(cursor)

    def remove_reader(self, cursor: Cursor) -> None:
        """Stops waiting for a reader."""
        self._cursors.remove(cursor)
        self._wake_run()

    def advance_reader(self, cursor: Cursor, page: Sequence[Event], offset: int) -> None:
        """Notes that a reader has passed on this page, which ends at `offset`."""
        index = offset - (self.end - len(self._events))
        if 0 < index <= len(self._sums):
            cursor.read_bytes = self._sums[index - 1]
        else:
            # The events that it read are no longer here, or it read them from the log before they
            # came here. So their sizes are computed again.
            cursor.read_bytes += weigh_events(page)
        self._wake_run()

    def stop_pacing(self) -> None:
        """Stops waiting for any reader, because the run is about to end."""
        self._is_unpaced = True
        self._wake_run()

    async def wait_for_readers(self) -> None:
        """Waits while all readers are too far behind. Without readers it does not wait."""
        while self._is_ahead():
            await self._progress.wait()

    def _is_ahead(self) -> bool:
        """True if even the fastest reader is too far behind."""
        if self._is_unpaced or not self._cursors:
            return False
        best = max([cursor.read_bytes for cursor in self._cursors])
        return self._bytes - best > _AHEAD_BYTES

    def _wake_run(self) -> None:
        """Lets the run go on if a reader has caught up."""
        if self._progress.futures and not self._is_ahead():
            self._progress.wake()

    def _forget(self, count: int) -> None:
        """Drops the oldest `count` events."""
        del self._events[:count], self._sums[:count]
