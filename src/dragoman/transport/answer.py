"""An answer from the network: reading it, giving it up, and noticing that no more is coming."""

from __future__ import annotations

import asyncio
import math
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import cast

import aiohttp

from dragoman.transport.base import Timeouts
from dragoman.transport.failure import FAILURES, translate

__all__ = ["Answer"]

_LOOK_SECONDS = 5.0


class Answer:
    """A `Response` of aiohttp's.

    It has a read timeout of its own: aiohttp's sets a timer for every packet (2 µs), also runs while nobody reads, and
    is off when a body breaks the rules of HTTP, where aiohttp closes the connection and lets the reader wait for ever.
    So a look is taken now and then: has anything come, does the connection stand?
    """

    __slots__ = (
        "__weakref__",
        "_connection",
        "_content",
        "_idle",
        "_owner",
        "_response",
        "_seen",
        "_timeouts",
        "_timer",
        "_url",
        "_waiting",
        "headers",
        "status",
    )

    def __init__(self, response: aiohttp.ClientResponse, url: str, timeouts: Timeouts, owner: object) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        self._response = response
        self._content = response.content
        self._url = url
        self._timeouts = timeouts
        self._owner = owner  # keeps the transport, which closes connections when nobody refers to it
        self._waiting = False
        self._seen = self._idle = 0
        self._timer: asyncio.TimerHandle | None = None
        self._connection = response.connection
        if self._connection is not None and self._connection.protocol is not None:
            self._connection.protocol.read_timeout = None
            self._connection.protocol.start_timeout()  # with none set, this ends the one that runs
            self._look_later()

    async def read(self) -> bytes:
        """See `Response.read`."""
        self._waiting = True
        try:
            data = await self._content.readany()
        except FAILURES as error:
            data = self._arrived()
            if not data:
                raise translate(error, self._url, self._timeouts) from None
        finally:
            self._waiting = False
        if not data:
            self._look_no_more()
        return data

    async def close(self) -> None:
        """See `Response.close`."""
        self._end()

    def __del__(self) -> None:
        with suppress(RuntimeError):  # its event loop may be closed
            self._end()

    def _end(self) -> None:
        self._look_no_more()
        connection = self._response.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()  # a polite TLS close would go on reading until the server has agreed
        self._response.close()

    def _arrived(self) -> bytes:
        """What came before the connection broke: aiohttp hides it as soon as there is an error."""
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
        return min(_LOOK_SECONDS, (self._timeouts.read or math.inf) / 4)

    def _look_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._period, _look, weakref.ref(self))

    def _look_no_more(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def look(self) -> None:
        """Ends the wait of a reader to whom nothing can come, or has come for too long."""
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
            self._look_later()


def _look(answer: Callable[[], Answer | None]) -> None:
    """A timer that kept its answer alive would keep the connection of one that nobody closed."""
    if (living := answer()) is not None:
        living.look()
