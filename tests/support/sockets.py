"""A server on a port of this machine, and clients of bare sockets that behave as badly as a test
wants."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import uvicorn

from dragoman.http_server.protocol import BoundedProtocol

__all__ = ["Listening", "listening"]


class Listening:
    """A server that runs in a thread."""

    def __init__(self, server: uvicorn.Server, port: int) -> None:
        self._server = server
        self.port = port

    @property
    def tasks(self) -> int:
        """Requests that are worked at."""
        return len(self._server.server_state.tasks)

    @property
    def connections(self) -> int:
        """Sockets that are open."""
        return len(self._server.server_state.connections)

    def connect(self, data: bytes = b"", *, buffer: int | None = None) -> socket.socket:
        """A client that sent that. `buffer`: bytes that it takes without reading."""
        client = socket.socket()
        if buffer is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        client.settimeout(30)
        client.connect(("127.0.0.1", self.port))
        client.sendall(data)
        return client

    def idle(self) -> None:
        """Waits until no request is worked at and no socket is open."""
        wait(lambda: not self.tasks and not self.connections)


def wait(condition: Callable[[], bool]) -> None:
    """Waits until it holds; one that never does fails the test."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.005)


def everything(client: socket.socket) -> bytes:
    """What comes until the server closes the connection."""
    pieces: list[bytes] = []
    try:
        while piece := client.recv(65536):
            pieces.append(piece)
    except ConnectionError:
        pass
    return b"".join(pieces)


@contextmanager
def listening(app: Any, *, loop: Any = "auto", **bounds: Any) -> Generator[Listening]:
    """Serves an application. `loop`: "asyncio", or "auto" for uvloop where it is; `bounds`: of the
    protocol."""
    protocol = type("Protocol", (BoundedProtocol,), bounds)
    config = uvicorn.Config(
        app, http=protocol, loop=loop, ws="none", log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=0,
        timeout_keep_alive=bounds.get("keep_alive", 1),
    )  # fmt: skip
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            wait(lambda: server.started or not thread.is_alive())
            yield Listening(server, listener.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join()
