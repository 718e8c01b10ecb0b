"""Where a server listens, and how it ends: by itself, by a signal, or when its connections have had
their time."""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from types import FrameType
from typing import TYPE_CHECKING, Any

import anyio

from dragoman.arguments import expect
from dragoman.errors import SettingsError

if TYPE_CHECKING:
    import uvicorn

__all__ = ["make_config", "open_listener", "handle_signals", "serve_until_stopped", "server_url"]

_MOST_PORT = 65535
_BACKLOG = 2048
"""Connections that may wait for the server to take them."""
_KEEP_ALIVE_SECONDS = 75
"""So long a connection stays open without a request: longer than proxies keep theirs, so that they
never send into one that closes."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def make_config(app: Any, *, closing_seconds: int | None = None) -> uvicorn.Config:
    """Returns uvicorn's configuration for an application: bounds for clients that send or read
    slowly, no WebSockets, no logs of its own.

    `closing_seconds`: so long open requests may take to end when the server does; `None`: as long
    as they take.
    """
    import uvicorn

    http: Any = "h11"
    if find_spec("httptools") is not None:
        from dragoman.http_server.protocol import BoundedProtocol

        http = BoundedProtocol
    return uvicorn.Config(
        app,
        http=http,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=closing_seconds,
    )


def open_listener(host: str, port: int) -> socket.socket:
    """Opens a socket that listens. `port`: 0 takes a free one.

    Raises:
        SettingsError: there is no such host, or the port is none, is taken or may not be taken.
        TypeError: `port` is no number.
    """
    expect("port", port, int)
    if not 0 <= port <= _MOST_PORT:
        raise SettingsError(
            f"port={port} is no port; it is a number up to {_MOST_PORT}, or 0 for any that is free"
        )
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, UnicodeError) as error:
        reason = error.strerror if isinstance(error, socket.gaierror) else "it is no host name"
        raise SettingsError(f"there is no host {host!r} to serve on: {reason}") from error
    try:
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise SettingsError(
                f"port {port} of {host} is taken by another program; give another port, or 0 for any that is free"
            ) from error
        raise SettingsError(
            f"nothing can be served at port {port} of {host}: {error.strerror}"
        ) from error


def server_url(host: str, listener: socket.socket) -> str:
    """Returns the URL under which clients reach a server."""
    address = f"[{host}]" if ":" in host else host
    return f"http://{address}:{listener.getsockname()[1]}"


async def serve_until_stopped(server: uvicorn.Server, listener: socket.socket) -> None:
    """Serves until the process is asked to end; when this is cancelled, calls are ended first."""
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        server.should_exit = True
        with anyio.CancelScope(shield=True):
            await asyncio.wait((task,))
        raise


@contextmanager
def handle_signals(*actions: Callable[[], object]) -> Generator[None]:
    """Within the block SIGINT and SIGTERM do the first of these; each further one the next, and the
    last again and again. It needs a running event loop. Outside of the main thread, where no signal
    arrives, they stay as they are."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop, remaining = asyncio.get_running_loop(), list(actions)
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def act() -> None:
        (remaining.pop(0) if len(remaining) > 1 else remaining[0])()

    def schedule_act(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(act)

    for number in _SIGNALS:
        try:
            loop.add_signal_handler(number, act)
        except NotImplementedError:  # Windows
            signal.signal(number, schedule_act)
    try:
        yield
    finally:
        for number, handler in before.items():
            with suppress(NotImplementedError):
                loop.remove_signal_handler(number)
            signal.signal(number, handler)
