"""Where a server listens, and how it ends."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import anyio

from dragoman.errors import SettingsError

if TYPE_CHECKING:
    import uvicorn

__all__ = ["listening", "url_of", "until_the_end"]


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens. `port`: 0 takes a free one.

    Raises:
        SettingsError: there is no such host.
        OSError: the port is taken.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as error:
        raise SettingsError(f"there is no host {host!r} to serve on: {error.strerror}") from error
    return socket.create_server(address[:2], family=family)


def url_of(host: str, listener: socket.socket) -> str:
    """The URL under which clients reach it."""
    place = f"[{host}]" if ":" in host else host
    return f"http://{place}:{listener.getsockname()[1]}"


async def until_the_end(server: uvicorn.Server, listener: socket.socket) -> None:
    """Serves until the process is asked to end; when this is cancelled, calls are ended first."""
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        server.should_exit = True
        with anyio.CancelScope(shield=True):
            await asyncio.wait((task,))
        raise
