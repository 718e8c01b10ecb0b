"""The latest stored events of a run, for all its readers in the process that drives it: they need not ask the log."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dragoman.event import Event

__all__ = ["Tail"]

_MOST = 1024
"""Events that are kept. Who is further behind reads from the log."""
_PAGE = 256
"""Events that a reader takes at once."""


class Tail:
    """Grows by what was stored. A reader that is slow costs nothing here, and holds up nobody."""

    def __init__(self) -> None:
        self.end = 0
        """How many events are stored."""
        self.is_closed = False
        """Whether nothing more will come from here; the log may have more, unless the run is over."""
        self.is_over = False
        """Whether the run is."""
        self._events: list[Event] = []
        self._grown: asyncio.Future[None] | None = None

    def extend(self, events: Sequence[Event]) -> None:
        """Takes events that are stored."""
        self._events += events
        self.end += len(events)
        if len(self._events) > 2 * _MOST:
            del self._events[:-_MOST]
        self._wake()

    def close(self) -> None:
        """No more events will come."""
        self.is_closed = True
        self._wake()

    def page(self, offset: int) -> list[Event] | None:
        """Some events from there on; `None`: they are no longer here."""
        place = offset - (self.end - len(self._events))
        return self._events[place : place + _PAGE] if place >= 0 else None

    async def grown(self) -> None:
        """Waits until there is more, or never will be."""
        if self.is_closed:
            return
        if self._grown is None:
            self._grown = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._grown)

    def _wake(self) -> None:
        if self._grown is not None:
            self._grown.set_result(None)
            self._grown = None
