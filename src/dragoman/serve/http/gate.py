"""How many calls run at a time: with one key, and in all; and whether new ones are taken."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager

from dragoman.errors import DragomanError, OverloadedError, RateLimitError
from dragoman.serve.http.callers import Caller
from dragoman.serve.http.connection import Connection
from dragoman.serve.http.limits import ServerLimits

__all__ = ["Gate"]

_AGAIN_SECONDS = 1.0


class Gate:
    """Counts the calls that run, and lets no more in than may."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._by_caller: Counter[str] = Counter()
        self._connections: set[Connection] = set()
        self._idle = asyncio.Event()
        self.open = 0
        """Calls that run."""
        self.bytes = 0
        """Of the bodies of calls that run."""
        self.closed = False
        """Whether new calls are refused."""

    @contextmanager
    def call(self, caller: Caller) -> Generator[None]:
        """Counts a call as long as it runs.

        Raises:
            OverloadedError: as many run as may, or the server is about to end.
            RateLimitError: as many run with this key as may.
        """
        limits, mine = self._limits, self._by_caller
        if self.closed:
            raise OverloadedError(
                "the server is being restarted; send the request again", retry_after=_AGAIN_SECONDS
            )
        if limits.open_calls is not None and self.open >= limits.open_calls:
            raise OverloadedError(
                "the server has as many calls open as it takes; try again",
                retry_after=_AGAIN_SECONDS,
            )
        if limits.calls_per_caller is not None and mine[caller.id] >= limits.calls_per_caller:
            raise RateLimitError(
                "as many calls are open with this key as may be; try again",
                retry_after=_AGAIN_SECONDS,
            )
        self.open += 1
        mine[caller.id] += 1
        try:
            yield
        finally:
            self.open -= 1
            mine[caller.id] -= 1
            if not mine[caller.id]:
                del mine[caller.id]
            if not self.open:
                self._idle.set()

    @contextmanager
    def room(self) -> Generator[Callable[[int], None]]:
        """Counts the bytes of a body that are given to it as long as its call runs; it raises an `OverloadedError` where all bodies together
        have more than may be."""
        held = 0

        def take(count: int) -> None:
            nonlocal held
            most = self._limits.bodies_bytes
            if most is not None and self.bytes + count > most:
                raise OverloadedError(
                    "the server holds as many bytes of requests as it takes; try again",
                    retry_after=_AGAIN_SECONDS,
                )
            held += count
            self.bytes += count

        try:
            yield take
        finally:
            self.bytes -= held

    @contextmanager
    def connection(self, connection: Connection) -> Generator[None]:
        """Knows the connection of a call as long as it is worked at."""
        self._connections.add(connection)
        try:
            yield
        finally:
            self._connections.discard(connection)

    def interrupt(self, error: DragomanError) -> None:
        """Ends what is worked at: each client gets this error, as its API has it."""
        for connection in list(self._connections):
            connection.interrupt(error)

    async def drained(self) -> None:
        """Refuses new calls, and waits until none runs."""
        self.closed = True
        while self.open:
            self._idle.clear()
            await self._idle.wait()
