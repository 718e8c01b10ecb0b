"""Serves the proxy on this machine, until a block ends."""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Route

from dragoman.http_server.guard import HostGuard
from dragoman.http_server.listener import make_config
from dragoman.http_server.within_block import serve_within
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
    async with serve_within(make_config(app, closing_seconds=_CLOSING_SECONDS), listener):
        yield
