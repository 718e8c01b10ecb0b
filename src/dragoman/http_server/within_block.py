"""Serves an application beside other work of an event loop, until a block ends.

Not in `listener`, which commands import before they know whether uvicorn is installed.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import anyio
import uvicorn

__all__ = ["SignalFreeServer", "serve_within"]


class SignalFreeServer(uvicorn.Server):
    """uvicorn's server, which leaves signals to whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """See uvicorn."""
        yield


@asynccontextmanager
async def serve_within(config: uvicorn.Config, listener: socket.socket) -> AsyncGenerator[None]:
    """Serves on a listener's socket within the block, which begins when the server has started."""
    server = SignalFreeServer(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not (server.started or task.done()):  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.005)
        yield
    finally:
        server.should_exit = True
        with anyio.CancelScope(shield=True):
            await asyncio.wait((task,))
