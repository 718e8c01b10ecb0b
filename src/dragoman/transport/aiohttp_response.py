"""A streamed HTTP response of aiohttp, with limits of size and time.

`read` returns what aiohttp has, and `_apply_bounds` counts its bytes and the length of its current
line. A timer calls `check_progress` every few seconds instead of once for each packet; it ends the
wait of a reader if nothing came or the connection is gone. Timers hold the response weakly, so
that one that nobody closed is collected, and closed then. The connection is aborted at the end,
because an orderly TLS shutdown would go on reading until the server agrees.
"""

from __future__ import annotations

import asyncio
import math
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import cast

import aiohttp

from dragoman.errors import ProviderError
from dragoman.transport.base import Bounds, Timeouts
from dragoman.transport.failure import FAILURES, host_and_port, translate_error

__all__ = ["AiohttpResponse"]

_CHECK_SECONDS = 5.0
_LINE_TYPES = ("text/event-stream", "application/x-ndjson", "application/jsonl")


class AiohttpResponse:
    """A `Response` of aiohttp's.

    It has a read timeout of its own: aiohttp's sets a timer for every packet (2 µs), also runs
    while nobody reads, and is off when a body breaks the rules of HTTP, where aiohttp closes the
    connection and lets the reader wait for ever. So a look is taken now and then: has anything
    come, does the connection stand?

    Of an answer that is no success it ends the body where a bound is reached; of others it refuses
    what goes beyond.
    """

    __slots__ = (
        "__weakref__",
        "_bounds",
        "_complete",
        "_connection",
        "_content",
        "_deadline",
        "_idle",
        "_line",
        "_lines",
        "_owner",
        "_refusal",
        "_response",
        "_seen",
        "_size",
        "_succeeds",
        "_timeouts",
        "_timer",
        "_url",
        "_waiting",
        "headers",
        "status",
    )

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        url: str,
        timeouts: Timeouts,
        bounds: Bounds,
        owner: object,
    ) -> None:
        """Wraps a response of aiohttp whose body is still to be read."""
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        self._response = response
        self._content = response.content
        self._url = url
        self._timeouts = timeouts
        self._bounds = bounds
        self._succeeds = 200 <= response.status < 300
        self._lines = self.headers.get("content-type", "").startswith(_LINE_TYPES)
        self._size = self._line = 0
        self._complete = False
        self._refusal: ProviderError | None = None
        # Keeps the transport alive, which closes its connections once nothing refers to it.
        self._owner = owner
        self._waiting = False
        self._seen = self._idle = 0
        self._timer: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None
        if not self._succeeds and bounds.error_seconds is not None:
            self._deadline = asyncio.get_running_loop().call_later(
                bounds.error_seconds, _end_body, weakref.ref(self)
            )
        self._connection = response.connection
        if self._connection is not None and self._connection.protocol is not None:
            self._connection.protocol.read_timeout = None
            # Without a timeout set, this stops the timer that aiohttp has started.
            self._connection.protocol.start_timeout()
            self._schedule_check()

    async def read(self) -> bytes:
        """Returns the next bytes of aiohttp's response. See `Response.read`."""
        if self._complete:
            return self._finish_read()
        self._waiting = True
        try:
            data = await self._content.readany()
        except FAILURES as error:
            data = self._read_arrived()
            if not data and not self._complete:
                raise translate_error(error, self._url, self._timeouts) from None
        finally:
            self._waiting = False
        if not data:
            self._cancel_timers()
        return self._apply_bounds(data) or self._finish_read()

    async def close(self) -> None:
        """See `Response.close`."""
        self._end_connection()

    def __del__(self) -> None:
        # The event loop may be closed by now.
        with suppress(RuntimeError):
            self._end_connection()

    def _end_connection(self) -> None:
        """Ends the response's connection at once, without waiting for the server."""
        self._cancel_timers()
        connection = self._response.connection
        if connection is not None and connection.transport is not None:
            # An orderly TLS shutdown would go on reading until the server has agreed.
            connection.transport.abort()
        self._response.close()

    def _apply_bounds(self, data: bytes) -> bytes:
        """Returns the bytes of a response that are within the bounds. If some are beyond them, the
        next read ends the body."""
        bounds = self._bounds
        self._size += len(data)
        most = bounds.body if self._succeeds else bounds.error_body
        if most is not None and self._size > most:
            self._stop_at_bound(f"a body of more than {most} bytes", "Bounds.body")
            return data[: len(data) - (self._size - most)]
        if self._lines:
            end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
            # Only the length is kept: the line itself may be in many reads.
            self._line = len(data) - end if end else self._line + len(data)
            if bounds.line is not None and self._line > bounds.line:
                self._stop_at_bound(f"a line of more than {bounds.line} bytes", "Bounds.line")
                return data[:end]
        return data

    def _stop_at_bound(self, what: str, bound: str) -> None:
        """Stops reading an aiohttp response at a bound. A successful response fails then; an
        error's body is merely cut."""
        if self._succeeds:
            self._refusal = ProviderError(
                f"{host_and_port(self._url)} sent {what}: ask for less, or raise {bound} of the transport"
            )
        self._complete = True
        self._end_connection()

    def _finish_read(self) -> bytes:
        """Returns the empty last read of an aiohttp response, or raises the error that ended it."""
        if self._refusal is not None:
            raise self._refusal
        return b""

    def end_body(self) -> None:
        """Ends an aiohttp response's body whose time is up."""
        if not self._content.is_eof():
            self._complete = True
            # Wakes the reader that waits for more.
            self._content.set_exception(aiohttp.SocketTimeoutError())
            self._end_connection()

    def _read_arrived(self) -> bytes:
        """Returns the bytes that came before the connection broke, which aiohttp hides once there
        is an error."""
        error = self._content.exception()
        if error is None or self._response.closed:
            return b""
        self._content.set_exception(cast("BaseException", None))
        try:
            return self._content.read_nowait()
        finally:
            self._content.set_exception(error)

    @property
    def _period(self) -> float:
        return min(_CHECK_SECONDS, (self._timeouts.read or math.inf) / 4)

    def _schedule_check(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(
            self._period, _check_progress, weakref.ref(self)
        )

    def _cancel_timers(self) -> None:
        """Cancels the aiohttp response's timers for progress and for the deadline."""
        for timer in (self._timer, self._deadline):
            if timer is not None:
                timer.cancel()
        self._timer = self._deadline = None

    def check_progress(self) -> None:
        """Ends the wait for an aiohttp response if the connection is gone or has been silent for
        too long."""
        content, seen = self._content, self._seen
        if content.is_eof() or content.exception() is not None:
            return
        self._seen = content.total_bytes
        self._idle = self._idle + 1 if self._waiting and self._seen == seen else 0
        if self._connection is None or self._connection.closed:
            content.set_exception(aiohttp.ClientPayloadError())
        elif self._idle * self._period >= (self._timeouts.read or math.inf):
            content.set_exception(aiohttp.SocketTimeoutError())
        else:
            self._schedule_check()


def _end_body(answer: Callable[[], AiohttpResponse | None]) -> None:
    if (living := answer()) is not None:
        living.end_body()


def _check_progress(answer: Callable[[], AiohttpResponse | None]) -> None:
    """Checks the progress of an aiohttp response that still exists. A timer that kept its response
    alive would keep the connection of one that was never closed."""
    if (living := answer()) is not None:
        living.check_progress()
