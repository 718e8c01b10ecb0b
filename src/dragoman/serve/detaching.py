"""Answers that are made to their end although their client left."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing

import anyio

from dragoman.errors import DragomanError, ProviderTimeoutError, StoreError, public
from dragoman.event import Event, RunError
from dragoman.logs import logger
from dragoman.serve.call import Call
from dragoman.serve.recording import Recording

__all__ = ["detached"]

_LOG = logger("serve")
_AHEAD = 256
"""Lists of events that may wait for a client that reads slowly."""


async def detached(
    call: Call, events: AsyncGenerator[list[Event], None], recording: Recording
) -> AsyncGenerator[list[Event], None]:
    """The same events. They are read in the background: where this stream is left before its end, the answer is kept at its own.

    Raises:
        OverloadedError: the server takes no work in the background.
    """
    if call.service.background.is_running(call.id):  # it has no client to leave
        async with aclosing(events):
            async for batch in events:
                yield batch
        return
    pump = _Pump(call, events, recording)
    call.service.background.start(call.id, pump.run)
    try:
        async for batch in pump.read():
            yield batch
    finally:
        await pump.leave()


class _Pump:
    """Reads events in a task of the server's own, for a reader who may leave."""

    def __init__(self, call: Call, events: AsyncGenerator[list[Event], None], recording: Recording) -> None:
        self._call, self._events, self._recording = call, events, recording
        self._waiting: deque[list[Event]] = deque()
        self._changed, self._storing = asyncio.Event(), asyncio.Lock()
        self._error: Exception | None = None
        self._is_over = self._is_left = self._is_read = False

    async def run(self) -> None:
        """Reads all events."""
        finished = False
        try:
            with anyio.fail_after(self._call.service.limits.run_seconds):
                async with aclosing(self._events):
                    async for batch in self._events:
                        await self._take(batch)
            finished = True
        except TimeoutError:
            self._error = ProviderTimeoutError("the answer took longer than this server waits for one")
        except Exception as error:  # noqa: BLE001 - its reader raises it
            self._error = error
        finally:
            self._is_over = True
            self._changed.set()
            if not finished and self._error is None:
                self._error = DragomanError("the server ended")
            if self._is_left:
                await self._keep()

    async def read(self) -> AsyncGenerator[list[Event], None]:
        """The events, until all are read."""
        while True:
            while self._waiting:
                batch = self._waiting.popleft()
                self._changed.set()
                yield batch
            if self._is_over:
                self._is_read = True
                if self._error is not None:
                    raise self._error
                return
            self._changed.clear()
            await self._changed.wait()

    async def leave(self) -> None:
        """The reader needs no more."""
        if self._is_read or self._is_left:
            return
        self._is_left = True
        self._changed.set()
        for batch in self._waiting:
            self._recording.add(batch)
        self._waiting.clear()
        if self._is_over:
            await self._keep()
            return
        try:
            with anyio.CancelScope(shield=True):
                async with self._storing:  # the end is kept after this
                    await self._recording.begin()
        except StoreError as failure:
            _LOG.warning("an answer whose client left could not be kept: %s", failure)

    async def _take(self, batch: list[Event]) -> None:
        if self._is_left:
            self._recording.add(batch)
            return
        self._waiting.append(batch)
        self._changed.set()
        while len(self._waiting) > _AHEAD and not self._is_left:
            self._changed.clear()
            await self._changed.wait()

    async def _keep(self) -> None:
        if self._error is not None:
            self._recording.add([RunError(public(self._error))])
        with anyio.CancelScope(shield=True):
            async with self._storing:
                await self._recording.keep()
