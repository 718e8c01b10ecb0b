"""Serves the proxy on this machine, until a block ends."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Route

from dragoman.http_server.guard import HostGuard
from dragoman.http_server.listener import make_config
from dragoman.proxy.server import RecordingProxy

__all__ = ["make_app", "serve_proxy"]

_CLOSING_SECONDS = 2
"""Seconds that open answers have when the proxy ends."""


def make_app(proxy: RecordingProxy, routes: list[BaseRoute]) -> Starlette:
    """Returns the ASGI application of the proxy. `routes`: those beside the hosts' names."""
    application = Starlette(
        routes=[*routes, Route("/{path:path}", proxy, methods=None)],
        middleware=[Middleware(HostGuard)],
    )
    application.router.redirect_slashes = False
    return application


@asynccontextmanager
async def serve_proxy(app: Starlette, listener: socket.socket) -> AsyncGenerator[None]:
    """Serves the application within the block. Signals are left to the caller."""
    # It tells of answers that were cut, as they have to be where the provider's was.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    server = _Server(make_config(app, closing_seconds=_CLOSING_SECONDS))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not (server.started or task.done()):  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.005)
        yield
    finally:
        server.should_exit = True
        with anyio.CancelScope(shield=True):
            await asyncio.wait((task,))


class _Server(uvicorn.Server):
    """uvicorn's, which leaves signals to us."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """See uvicorn."""
        yield
