"""Events on their way from tools to whoever reads the run: `Outbox`."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Generator, Iterable
from threading import get_ident

from dragoman.event import Event
from dragoman.logs import logger

__all__ = ["BOUND", "Emission", "Outbox"]

_LOG = logger("tools")
BOUND = 1000
"""Events that may wait to be read before an awaited emission waits too."""


class Emission:
    """An event that was emitted. It is sent whether you await this or not; awaiting it waits while
    too many events are unread."""

    __slots__ = ("_is_excess", "_outbox")

    def __init__(self, outbox: Outbox, *, is_excess: bool) -> None:
        self._outbox = outbox
        self._is_excess = is_excess

    def __await__(self) -> Generator[None, None, None]:
        """Waits until the outbox has room again. An awaited emission does not count as excess, as
        its tool waits and cannot flood the outbox."""
        if self._is_excess:
            self._is_excess = False
            self._outbox.excess -= 1
        return self._outbox.room().__await__()


class Outbox:
    """Emitted events that are not read yet, in order. Any thread may add some; the run's event loop
    takes them.

    Nothing is dropped while the run goes on. Tools that do not await their emissions may exceed the
    bound, which is counted, and logged once. A closed outbox takes nothing.
    """

    __slots__ = (
        "_logged",
        "_loop",
        "_readers",
        "_returns",
        "_thread",
        "_writers",
        "events",
        "excess",
        "is_closed",
    )

    def __init__(self) -> None:
        """Creates an empty outbox, which belongs to the event loop and thread of its first
        reader."""
        self.events: deque[Event] = deque()
        """Those that wait to be read, oldest first."""
        self._readers: list[asyncio.Future[None]] = []
        self._writers: list[asyncio.Future[None]] = []
        self._returns: list[asyncio.Future[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._logged = False
        self.is_closed = False
        self.excess = 0
        """Events that were put in beyond the bound by somebody who did not wait."""

    def __len__(self) -> int:
        return len(self.events)

    def open(self) -> None:
        """Opens the outbox: from now on until `pause`, a reader in this event loop and thread takes
        events."""
        self._loop, self._thread = asyncio.get_running_loop(), get_ident()

    def pause(self) -> None:
        """Pauses the outbox: until the next `open` there is no reader, so no sender waits for
        room."""
        self._loop, self._thread = None, 0
        _wake(self._writers)
        _wake(self._returns)

    def close(self) -> list[Event]:
        """Closes the outbox, because the run is over: what is emitted from now on goes nowhere.
        Gives what is left."""
        self.is_closed = True
        self.pause()
        return self.take()

    def emit(self, event: Event) -> Emission:
        """Puts one event of a tool into the outbox, from any thread."""
        is_excess = len(self.events) >= BOUND
        self.excess += is_excess
        self.put((event,))
        return Emission(self, is_excess=is_excess)

    def put(self, events: Iterable[Event]) -> None:
        """Puts events of a tool into the outbox, from any thread."""
        if self.is_closed:
            return
        self.events.extend(events)
        # A thread must not wake the loop's futures itself.
        loop = self._loop
        if self._thread == get_ident():
            _wake(self._readers)
        elif loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(_wake, self._readers)

    def take(self) -> list[Event]:
        """Takes all events out of the outbox, oldest first."""
        events = [self.events.popleft() for _ in range(len(self.events))]
        _wake(self._writers)
        if self.excess and not self._logged:
            self._logged = True
            _LOG.warning(
                "%d events of tools waited beyond the bound of %d: await ctx.emit() and ctx.progress() where you can, "
                "or emit less",
                self.excess,
                BOUND,
            )
        return events

    def note_return(self) -> None:
        """Notes that the reader has passed on what it took, and comes for more."""
        if self._returns:
            _wake(self._returns)

    async def passed(self) -> None:
        """Waits until the outbox's reader has passed on all events that are in it. Returns at once
        if nobody reads."""
        while self._is_read_here() and self.events:
            await _waits_in(self._writers)
        # A reader that waits for more has passed on everything before.
        if self._is_read_here() and not self._readers:
            await _waits_in(self._returns)

    def _is_read_here(self) -> bool:
        """True if somebody reads in this thread."""
        return self._loop is not None and self._thread == get_ident()

    def wake(self) -> None:
        """Ends `more`, from the loop's own thread."""
        _wake(self._readers)

    async def more(self) -> None:
        """Waits until something is put in from now on, or `wake` is called."""
        await _waits_in(self._readers)

    async def room(self) -> None:
        """Gives the outbox's reader its turn, and waits while too many events wait for it."""
        if self._thread != get_ident():
            return
        await asyncio.sleep(0)
        while self._loop is not None and len(self.events) >= BOUND:
            await _waits_in(self._writers)


def _waits_in(waiters: list[asyncio.Future[None]]) -> asyncio.Future[None]:
    waiters.append(waiter := asyncio.get_running_loop().create_future())
    return waiter


def _wake(waiters: list[asyncio.Future[None]]) -> None:
    while waiters:
        if not (waiter := waiters.pop()).done():
            waiter.set_result(None)
