"""A little HTTP server on raw sockets, which does to its clients what a script says."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Do(Enum):
    """What a script may say beside bytes (written at once), seconds (slept) and events (waited
    for)."""

    HANG = "until the client has gone"
    CLOSE = "end the connection"
    RESET = "break the connection"


Script = Sequence[Any]


def answer(
    *steps: Any,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    length: int | None = None,
) -> list[Any]:
    """An answer in chunks, each bytes a chunk; with `length` a plain body instead. It ends, unless
    by a `Do`."""
    kind = {"transfer-encoding": "chunked"} if length is None else {"content-length": str(length)}
    lines = [
        f"HTTP/1.1 {status} Reason",
        *(f"{name}: {value}" for name, value in {**kind, **(headers or {})}.items()),
    ]
    framed = [
        b"%x\r\n%b\r\n" % (len(step), step) if isinstance(step, bytes) and length is None else step
        for step in steps
    ]
    end = [] if length is not None or (steps and isinstance(steps[-1], Do)) else [b"0\r\n\r\n"]
    return ["\r\n".join([*lines, "", ""]).encode(), *framed, *end]


@dataclass
class Received:
    """A request as it came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Server:
    """Answers the n-th request by the n-th script; the last script goes on for ever."""

    scripts: list[Script]
    requests: list[Received] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    ended: int = 0
    """Connections that are closed."""
    came: asyncio.Event = field(default_factory=asyncio.Event)
    """The first request is here."""
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """A client has gone while its script was at `HANG`."""
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    """No connection is open."""
    port: int = 0
    scheme: str = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        self.idle.clear()
        try:
            while (request := await read_request(reader)) is not None:
                self.requests.append(request)
                self.came.set()
                script = self.scripts[min(len(self.requests), len(self.scripts)) - 1]
                if not await self._play(script, reader, writer):
                    return
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            return
        finally:
            self.open -= 1
            writer.close()
            with suppress(Exception, asyncio.CancelledError):
                await writer.wait_closed()
            self.ended += 1
            if not self.open:
                self.idle.set()

    async def _play(
        self, script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        for step in script:
            match step:
                case bytes():
                    writer.write(step)
                    await writer.drain()
                case float():
                    await asyncio.sleep(step)
                case asyncio.Event():
                    await step.wait()
                case Do.CLOSE:
                    return False
                case Do.RESET:
                    writer.transport.abort()
                    return False
                case Do.HANG:
                    with suppress(ConnectionError):
                        await reader.read(1)
                    self.left.set()
                    return False
        return True


async def read_request(reader: asyncio.StreamReader) -> Received | None:
    """The next request of a connection; `None`: it has ended."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    return Received(
        method, target, headers, await reader.readexactly(int(headers.get("content-length", 0)))
    )


@asynccontextmanager
async def serving(*scripts: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """Runs a server on a free port of this machine."""
    server = Server(list(scripts), scheme="https" if tls else "http")
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(server._serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    listener = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls, backlog=1024)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def serving_elsewhere(*scripts: Script) -> Iterator[Server]:
    """Runs a server in a loop and thread of its own, so that it outlives the loops of its
    clients."""
    started: Future[tuple[Server, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def main() -> None:
        stop = asyncio.Event()
        async with serving(*scripts) as server:
            started.set_result((server, asyncio.get_running_loop(), stop))
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=[main()])
    thread.start()
    server, loop, stop = started.result(10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


@asynccontextmanager
async def proxying(server: Server) -> AsyncIterator[list[Received]]:
    """Runs a proxy that leads everything, `CONNECT` too, to `server` → what it was asked, and its
    port."""
    asked = Asked()
    tasks: set[asyncio.Task[None]] = set()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        if request is None:
            return
        asked.append(request)
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", server.port)
        if request.method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            head = [
                f"{request.method} {request.target} HTTP/1.1",
                *(f"{k}: {v}" for k, v in request.headers.items()),
            ]
            there_writer.write("\r\n".join([*head, "", ""]).encode() + request.body)
        try:
            await asyncio.gather(relay(reader, there_writer), relay(there_reader, writer))
        finally:
            for end in (writer, there_writer):
                end.close()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(handle(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    listener = await asyncio.start_server(connected, "127.0.0.1", 0)
    asked.port = listener.sockets[0].getsockname()[1]
    try:
        yield asked
    finally:
        listener.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Asked(list[Received]):
    """What a proxy was asked."""

    port: int = 0
