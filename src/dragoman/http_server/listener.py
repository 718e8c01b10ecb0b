"""Opens the socket that a server listens on, configures uvicorn, and ends the server on signals."""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from dragoman.arguments import expect
from dragoman.errors import SettingsError

if TYPE_CHECKING:
    import uvicorn

__all__ = [
    "make_config",
    "open_listener",
    "handle_signals",
    "run_in_loop",
    "serve_until_stopped",
    "server_url",
]

T = TypeVar("T")
_MOST_PORT = 65535
_BACKLOG = 2048
"""Connections that may wait until the server accepts them."""
_KEEP_ALIVE_SECONDS = 75
"""Seconds that a connection stays open without a request. Proxies keep connections for a shorter
time, so they never send a request into one that is closing."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))
"""Ctrl-C, a request to end, and a terminal that is closed. Windows has no SIGHUP."""


def make_config(app: Any, *, closing_seconds: int | None = None) -> uvicorn.Config:
    """Returns the listener's configuration of uvicorn for an application: limits for clients that
    send or read slowly, no WebSockets, no logs of its own.

    `closing_seconds`: seconds that open requests have when the server ends; None for no limit.
    """
    import uvicorn

    http: Any = "h11"
    # The bounds need httptools; h11 has its own limits for headers.
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


def open_listener(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Opens a socket that listens.

    Args:
        host: name or address.
        port: 0 takes a free one.
        shared: other processes may listen there as well, where the system can share a port; each
            gets some of the connections.

    Raises:
        SettingsError: the host does not exist, or the port is invalid, in use or not allowed.
        TypeError: `port` is not a number.
    """
    expect("port", port, int)
    if not 0 <= port <= _MOST_PORT:
        raise SettingsError(
            f"port={port} is no port; it is a number up to {_MOST_PORT}, or 0 for any that is free"
        )
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, UnicodeError) as error:
        if isinstance(error, socket.gaierror):
            reason = error.strerror
        else:
            reason = "it is no host name"
        raise SettingsError(f"there is no host {host!r} to serve on: {reason}") from error
    try:
        return socket.create_server(
            address[:2],
            family=family,
            backlog=_BACKLOG,
            reuse_port=shared and hasattr(socket, "SO_REUSEPORT"),
        )
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise SettingsError(
                f"port {port} of {host} is taken by another program; give another port, or 0 for any that is free"
            ) from error
        raise SettingsError(
            f"nothing can be served at port {port} of {host}: {error.strerror}"
        ) from error


def run_in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Runs a server in an event loop of its own, with uvloop if that is installed. Returns its
    result."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    # uvloop is optional; without it asyncio's own loop serves.
    with suppress(ImportError):
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)


def server_url(host: str, listener: socket.socket) -> str:
    """Returns the URL under which clients reach a server."""
    address = f"[{host}]" if ":" in host else host
    return f"http://{address}:{listener.getsockname()[1]}"


async def serve_until_stopped(server: uvicorn.Server, listener: socket.socket) -> None:
    """Serves on a listener's socket until the process is asked to end. If it is cancelled, it ends
    open calls first."""
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
    """Handles, for a listener, SIGINT, SIGTERM and SIGHUP within the block: the first signal calls
    the first action, the next one the second, and so on. The last action is called again for all further signals.
    SIGHUP stays ignored if it is, as below `nohup`.

    It needs a running event loop. Outside the main thread, where no signals arrive, it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop, remaining = asyncio.get_running_loop(), list(actions)
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    if before[_SIGNALS[-1]] is signal.SIG_IGN:
        del before[_SIGNALS[-1]]

    def act() -> None:
        (remaining.pop(0) if len(remaining) > 1 else remaining[0])()

    def schedule_act(_number: int, _frame: FrameType | None) -> None:
        # The handler runs between two bytecodes of the main thread, not in the event
        # loop.
        loop.call_soon_threadsafe(act)

    for number in before:
        try:
            loop.add_signal_handler(number, act)
        except NotImplementedError:  # Windows
            signal.signal(number, schedule_act)
    try:
        yield
    finally:
        for number, handler in before.items():
            with suppress(NotImplementedError):  # Windows
                loop.remove_signal_handler(number)
            signal.signal(number, handler)
