"""Serves an application of `serve.app` over HTTP until the process is asked to end (`run_server`,
`serve_http`), or as one of several processes (`run_process`).

The first signal refuses new calls and lets open ones finish. After `drain_seconds`, or at a second
signal, the rest is ended with an error that each client understands.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import anyio

from dragoman.arguments import wrong_type_error
from dragoman.errors import SettingsError
from dragoman.http_server.listener import (
    handle_signals,
    make_config,
    open_listener,
    run_in_loop,
    server_url,
)
from dragoman.http_server.server_process import ConnectionInbox, ServerProcess
from dragoman.http_server.within_block import SignalFreeServer
from dragoman.runtime import is_loopback
from dragoman.serve.core.service import Service

if TYPE_CHECKING:
    from starlette.applications import Starlette

__all__ = ["ServerOptions", "run_server", "run_process", "serve_http"]

_CLOSING_SECONDS = 2
"""Seconds that clients have to read the end of an answer that the server ended."""


class ServerOptions(TypedDict, total=False):
    """Where a server listens, and how it ends."""

    host: str
    """Name or address; the default is 127.0.0.1, which other machines cannot reach."""
    port: int
    """The default is 8000; 0 takes a free one."""
    drain_seconds: float
    """Seconds that calls may go on once the process was asked to end; the default is 30."""
    ready: Callable[[str], object]
    """Called with the URL once clients can connect."""


def run_server(app: Starlette, **options: Unpack[ServerOptions]) -> None:
    """Runs `serve_http` in an event loop of its own, with uvloop if that is installed.

    Raises:
        SettingsError: as `serve_http`.
    """
    run_in_loop(serve_http(app, **options))


def run_process(
    app: Starlette,
    process: ServerProcess,
    *,
    host: str,
    drain_seconds: float,
    ready: Callable[[str], str],
) -> None:
    """Serves the connections that the supervising process hands over, until that process asks this
    one to end or is gone. The end is as in `serve_http`.

    `host`: what the supervising process listens on. `ready`: gets the URL, and returns the text that
    is to be printed once every process can serve.

    Raises:
        SettingsError: others than this machine could reach it, and there are no keys; or the
            processes would each keep their own answers.
        TypeError: `app` is something else.
    """
    service = _find_service(app)
    _check_access(service, host)
    service.check_processes(len(process.counts))
    service.metrics.share(process.counts, process.index)
    run_in_loop(_serve_channel(app, service, process, drain_seconds, ready))


async def serve_http(
    app: Starlette,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    drain_seconds: float = 30.0,
    ready: Callable[[str], object] | None = None,
) -> None:
    """Serves what `serve.app` made until the process is asked to end (Ctrl-C, SIGTERM), or this is
    cancelled.

    Then new calls are refused, and those that run may come to their end; what is left after
    `drain_seconds` is ended with an error that its client understands. A second signal, or being
    cancelled, does that at once.

    Args:
        app: the application.
        host: name or address; any other than this machine's own needs keys (`auth=` of the application).
        port: 0 takes a free one.
        drain_seconds: so long calls may go on once the process was asked to end.
        ready: gets the URL once clients can connect.

    Raises:
        SettingsError: others than this machine could reach it, and there are no keys; there is no such host; or the port is taken.
        TypeError: `app` is something else.
    """
    service = _find_service(app)
    _check_access(service, host)
    # The listener is opened before the application starts, so that a port in use is reported
    # at once.
    with open_listener(host, port) as listener:
        server = _Server(
            app, (lambda: ready(server_url(host, listener))) if ready is not None else None
        )
        await _serve(server, _Shutdown(server, service, drain_seconds), [listener])


async def _serve_channel(
    app: Starlette,
    service: Service,
    process: ServerProcess,
    drain_seconds: float,
    ready: Callable[[str], str],
) -> None:
    """Serves the connections that come through a process's channel."""
    server = _Server(app, lambda: inbox.open(server.make_protocol, ready(process.url)))
    shutdown = _Shutdown(server, service, drain_seconds)
    inbox = ConnectionInbox(
        socket.socket(fileno=process.channel), drain=shutdown.begin, stop=shutdown.stop_now
    )
    try:
        await _serve(server, shutdown, [])
    finally:
        inbox.close()


async def _serve(server: _Server, shutdown: _Shutdown, listeners: list[socket.socket]) -> None:
    """Runs a server until it is asked to end or this is cancelled."""
    shutdown.reopen()
    task = asyncio.create_task(server.serve(listeners))
    try:
        with handle_signals(shutdown.begin, shutdown.stop_now):
            # Shielded: uvicorn must end its connections itself, after
            # `stop_now` has told it to.
            await asyncio.shield(task)
    finally:
        shutdown.stop_now()
        with anyio.CancelScope(shield=True):
            await asyncio.wait((task,))
            await shutdown.wait()


def _find_service(app: object) -> Service:
    """Returns the service of an application. Raises `TypeError` if it is something else."""
    service = getattr(getattr(app, "state", None), "service", None)
    if not isinstance(service, Service):
        raise wrong_type_error(
            "app", app, "what dragoman.serve.app made", "give dragoman.serve.app(agent)"
        )
    return service


def _check_access(service: Service, host: str) -> None:
    """Raises `SettingsError` if other machines could reach a server without keys."""
    if not service.has_keys and not is_loopback(host):
        raise SettingsError(
            f"{host} can be reached from other machines; give keys that clients must send (auth=), or serve on 127.0.0.1"
        )


class _Server(SignalFreeServer):
    """uvicorn's, which leaves signals to us and says when it has started."""

    def __init__(self, app: Any, ready: Callable[[], object] | None) -> None:
        super().__init__(make_config(app, closing_seconds=_CLOSING_SECONDS))
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts uvicorn, then calls the function that waits for it. Raises `SettingsError` if the
        application cannot start."""
        try:
            await super().startup(sockets)
        except SystemExit:
            raise SettingsError("the application could not be started; the log says why") from None
        if self._ready is not None and not self.should_exit:
            self._ready()

    def make_protocol(self) -> asyncio.Protocol:
        """Returns the protocol of a new connection, as uvicorn makes those of its own listeners."""
        protocol: Any = self.config.http_protocol_class
        return protocol(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )


class _Shutdown:
    """Ends a server, first gently and then at once."""

    def __init__(self, server: _Server, service: Service, seconds: float) -> None:
        self._server, self._service, self._seconds = server, service, seconds
        self._draining: asyncio.Task[None] | None = None

    def reopen(self) -> None:
        """Takes calls again, if the application was served before."""
        self._service.gate.closed = False

    def begin(self) -> None:
        """Refuses new calls, and gives open ones time to finish."""
        self._service.gate.closed = True
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain_calls())

    def stop_now(self) -> None:
        """Ends all calls now."""
        self._service.interrupt()
        self._server.should_exit = True

    async def wait(self) -> None:
        """Waits until all tasks and connections are closed."""
        if self._draining is not None:
            self._draining.cancel()
            await asyncio.wait((self._draining,))
        # Their clients read nothing.
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()
        if tasks := set(self._server.server_state.tasks):
            await asyncio.wait(tasks, timeout=_CLOSING_SECONDS)

    async def _drain_calls(self) -> None:
        """Waits for running calls to end, then stops the server."""
        with anyio.move_on_after(self._seconds):
            await self._service.drain()
        self._service.interrupt()
        self._server.should_exit = True
