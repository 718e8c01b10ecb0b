"""The latest stored events of a run, for all its readers in the process that drives it: they need
not ask the log."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence

from dragoman.event import Event
from dragoman.runs.batch import weigh_event, weigh_events

__all__ = ["Cursor", "RunTail"]

_MOST = 1024
"""Events that stay here. Who is further behind reads from the log."""
_MOST_BYTES = 512 * 1024
"""Bytes of them."""
_PAGE = 256
"""Events that a reader takes at once."""
_PAGE_BYTES = 128 * 1024
"""Bytes of them, unless one event alone is larger."""
_AHEAD_BYTES = 1024 * 1024
"""So far a run may be ahead of the reader that keeps up best."""


class Cursor:
    """How far a reader has come that the run waits for."""

    __slots__ = ("read_bytes",)

    def __init__(self) -> None:
        self.read_bytes = 0
        """Weight of the events that it has taken and passed on, from the run's first."""


class RunTail:
    """Grows by what was stored. A reader that is slow costs nothing here.

    Readers that `follow` it pace the run: it waits while all of them are far behind, since whatever
    it said meanwhile would pile up. One that keeps up is enough, and without any the run goes on by
    itself.
    """

    def __init__(self) -> None:
        self.end = 0
        """How many events are stored."""
        self.is_closed = False
        """Whether nothing more will come from here; the log may have more, unless the run is
        over."""
        self.is_over = False
        """Whether the run is."""
        self._events: list[Event] = []
        self._sums: list[int] = []
        """Bytes of the run up to and with each of these events."""
        self._bytes = 0
        self._grown: asyncio.Future[None] | None = None
        self._cursors: list[Cursor] = []
        self._moved: asyncio.Future[None] | None = None
        self._is_free = False

    def extend(self, events: Sequence[Event]) -> None:
        """Takes events that are stored."""
        for event in events:
            self._bytes += weigh_event(event)
            self._sums.append(self._bytes)
        self._events += events
        self.end += len(events)
        # Forgotten in large steps, so that each event is moved once on average.
        if len(self._events) > 2 * _MOST:
            self._forget(len(self._events) - _MOST)
        elif self._sums and self._bytes - self._sums[0] > 2 * _MOST_BYTES:
            self._forget(bisect_right(self._sums, self._bytes - _MOST_BYTES))
        self._wake()

    def close(self) -> None:
        """No more events will come."""
        self.is_closed = True
        self._wake()

    def page(self, offset: int) -> list[Event] | None:
        """Some events from there on; `None`: they are no longer here."""
        index = offset - (self.end - len(self._events))
        if index < 0:
            return None
        if index >= len(self._events):
            return []
        stop = bisect_right(self._sums, self._sums[index] + _PAGE_BYTES, index + 1)
        return self._events[index : min(stop, index + _PAGE)]

    async def grown(self) -> None:
        """Waits until there is more, or never will be."""
        if self.is_closed:
            return
        if self._grown is None:
            self._grown = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._grown)

    def follow(self, cursor: Cursor) -> None:
        """Lets a reader pace the run, until it calls `leave`."""
        self._cursors.append(cursor)

    def leave(self, cursor: Cursor) -> None:
        """The run waits for this reader no longer."""
        self._cursors.remove(cursor)
        self._look()

    def move(self, cursor: Cursor, page: Sequence[Event], offset: int) -> None:
        """A reader has passed on this page, behind which is that offset."""
        index = offset - (self.end - len(self._events))
        if index > 0:
            cursor.read_bytes = self._sums[index - 1]
        else:
            # What it read is no longer here.
            cursor.read_bytes += weigh_events(page)
        self._look()

    def free(self) -> None:
        """The run waits for no reader from now on: it is about to end."""
        self._is_free = True
        self._look()

    async def paced(self) -> None:
        """Waits while every reader that follows is too far behind; without any it does not wait."""
        while self._is_ahead():
            self._moved = asyncio.get_running_loop().create_future()
            await self._moved

    def _is_ahead(self) -> bool:
        if self._is_free or not self._cursors:
            return False
        best = max([cursor.read_bytes for cursor in self._cursors])
        return self._bytes - best > _AHEAD_BYTES

    def _look(self) -> None:
        """Lets the run go on if it may."""
        if self._moved is not None and not self._moved.done() and not self._is_ahead():
            self._moved.set_result(None)

    def _forget(self, count: int) -> None:
        """Drops the first of the events that are here."""
        del self._events[:count], self._sums[:count]

    def _wake(self) -> None:
        if self._grown is not None:
            self._grown.set_result(None)
            self._grown = None
