"""One request's connection: what goes out, signs of life in between, and an end when the client is gone or reads nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import anyio
from anyio.abc import TaskGroup
from starlette.types import Message, Receive, Send

from dragoman.logs import logger
from dragoman.serve.limits import ServerLimits

__all__ = ["Connection"]

_LOG = logger("serve")


class Connection:
    """Use it in `async with`: where the client leaves, or reads nothing for too long, the block is cancelled and left in silence.

    One task beside the block's own watches all that; a write costs no task and no timer.
    """

    def __init__(self, receive: Receive, send: Send, limits: ServerLimits) -> None:
        """`receive`: whose body was read already."""
        self._receive = receive
        self._send = send
        self._limits = limits
        self._group: TaskGroup = anyio.create_task_group()
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._writing_since: float | None = None
        self._pinging: asyncio.Event | None = None
        self._start: Message | None = None
        self._ping = b""
        self.started = False
        """Whether the status was sent."""

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._group.start_soon(self._watch)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._group.cancel_scope.cancel()
        return await self._group.__aexit__(kind, error, trace)

    def stream(self, headers: Mapping[str, str], ping: bytes) -> None:
        """A stream is to come: it begins with the first `write`, or where nothing comes for long. `ping`: a sign of life; empty: the
        format has none."""
        self._start, self._ping = _start(200, headers), ping

    def add_headers(self, headers: Mapping[str, str]) -> None:
        """Headers of a stream that has not begun; later they are left out."""
        if self._start is not None and headers:
            self._start["headers"] = [*self._start["headers"], *_encoded(headers)]

    async def write(self, data: bytes) -> None:
        """The next piece of a stream."""
        if self._pinging is not None:
            await self._pinging.wait()
        if self.started:
            await self._sent({"type": "http.response.body", "body": data, "more_body": True})
            return
        await self._begin()
        await self._sent({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        """The end of a stream."""
        if self._pinging is not None:
            await self._pinging.wait()
        if not self.started:
            await self._begin()
        await self._sent({"type": "http.response.body", "body": b"", "more_body": False})

    async def respond(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """A whole response."""
        self._start = None
        self.started = True
        await self._sent(_start(status, {**headers, "content-length": str(len(body))}))
        await self._sent({"type": "http.response.body", "body": body, "more_body": False})

    async def _begin(self) -> None:
        start, self.started = self._start, True
        assert start is not None, "stream() comes before what is streamed"
        await self._sent(start)

    async def _sent(self, message: Message) -> None:
        loop = self._loop
        self._writing_since = loop.time()
        await self._send(message)
        self._last, self._writing_since = loop.time(), None

    async def _watch(self) -> None:
        """Waits for the client's leaving; looks after the writing now and then."""
        leaving = asyncio.ensure_future(self._left())
        try:
            while True:
                await asyncio.wait((leaving,), timeout=self._limits.ping_seconds)
                if leaving.done() or self._is_stuck():
                    self._group.cancel_scope.cancel()
                    return
                if self._writing_since is None and self._loop.time() - self._last >= self._limits.ping_seconds / 2:
                    await self._give_sign()
        finally:
            leaving.cancel()

    async def _left(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def _is_stuck(self) -> bool:
        since, most = self._writing_since, self._limits.write_seconds
        if since is None or most is None or self._loop.time() - since < most:
            return False
        _LOG.warning("a client read nothing for %g seconds; its call is ended", most)
        return True

    async def _give_sign(self) -> None:
        if self._start is None or not (self._ping or not self.started):
            return
        self._pinging = asyncio.Event()
        try:
            if not self.started:
                await self._begin()
            if self._ping:
                await self._sent({"type": "http.response.body", "body": self._ping, "more_body": True})
        finally:
            self._pinging.set()
            self._pinging = None


def _start(status: int, headers: Mapping[str, str]) -> Message:
    return {"type": "http.response.start", "status": status, "headers": _encoded(headers)}


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [
        (name.lower().encode("latin-1"), _one_line(value).encode("latin-1", "replace"))
        for name, value in headers.items()
    ]


def _one_line(value: str) -> str:
    return value.replace("\r", " ").replace("\n", " ")
