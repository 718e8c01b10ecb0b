"""Helpers of a session: streams that report their end, the failure of a request, and waiting for
tasks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal, Self

import msgspec

__all__ = ["Failure", "wait_for_end", "watch_streams"]


@asynccontextmanager
async def watch_streams(
    transport: AbstractAsyncContextManager[Any], ended: Callable[[], object]
) -> AsyncGenerator[tuple[Any, Any], None]:
    """Opens a transport, and calls `ended` as soon as nothing more comes from the MCP server."""
    async with transport as (read, write):
        yield _WatchedStream(read, ended), write


class _WatchedStream:
    """A stream to read from, which reports its end. The library reads `last_context` of some
    streams: the context in which a message was sent."""

    def __init__(self, stream: Any, ended: Callable[[], object]) -> None:
        self._stream = stream
        self._ended = ended

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        return await self._stream.receive()

    async def aclose(self) -> None:
        await self._stream.aclose()

    def close(self) -> None:
        self._stream.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        """Returns the next message of the watched MCP stream."""
        try:
            return await self._stream.__anext__()
        except StopAsyncIteration:
            self._ended()
            raise

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stream.__aexit__(*error)


class Failure(msgspec.Struct, frozen=True):
    """What ended a request on this side of the connection. Nothing that a server sends can make
    one."""

    kind: Literal["unreached", "forgotten", "lost", "status", "sign_in"]
    """`unreached`: the server did not receive the request. `forgotten`: the server does not know
    the session any more and did not run the request. `lost`: it may have run. `status`: HTTP
    refused it. `sign_in`: somebody must sign in."""
    text: str
    """What was wrong, in words."""
    url: str = ""
    """The sign-in page."""


async def wait_for_end(tasks: Iterable[asyncio.Task[Any]], patience: float = 0.0) -> None:
    """Waits until all tasks of the MCP streams have ended. After `patience` seconds it cancels
    them, again and again.

    Raises:
        CancelledError: the caller was cancelled meanwhile. It is raised when all tasks have ended.
    """
    running, cancelled = [task for task in tasks if not task.done()], None
    while running:
        if patience <= 0.0:
            for task in running:
                task.cancel()
        # Cancelled again each second: code of a library may swallow a cancellation.
        try:
            _, late = await asyncio.wait(running, timeout=patience or 1.0)
            running, patience = [*late], 0.0
        except asyncio.CancelledError as error:
            cancelled = error
            running = [task for task in running if not task.done()]
    if cancelled is not None:
        raise cancelled
