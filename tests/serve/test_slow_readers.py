"""Clients of agent protocols that read nothing: the run waits for them, so that the process does
not grow by what it would say."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, serve
from dragoman.http_server.listener import open_listener
from dragoman.request import ModelRequest
from dragoman.runs import Runs, open_log
from dragoman.runs.memory_log import MemoryLog
from dragoman.serve import AgentPolicy, ServerLimits
from dragoman.serve.server import serve_http
from dragoman.testing import ScriptedModel
from support.protocols import STREAMED
from support.until import until

pytestmark = [pytest.mark.anyio, pytest.mark.mend("1.6")]

PIECE = "x" * 100_000
PIECES = 2000
MOST_BYTES = 24 * 1024 * 1024
"""That may be on their way: what the kernel takes of a connection is most of it."""


class Source:
    """A model that says a great deal."""

    def __init__(self, pieces: int = PIECES) -> None:
        self.said = 0
        """Bytes of it."""
        self._pieces = pieces

    async def reply(self, request: ModelRequest) -> AsyncGenerator[str]:
        for _ in range(self._pieces):
            self.said += len(PIECE)
            await asyncio.sleep(0)
            yield PIECE

    async def pause(self) -> None:
        """Waits until it says nothing more."""
        before = -1
        while self.said > before:
            before = self.said
            await asyncio.sleep(0.4)


@asynccontextmanager
async def serving(source: Source, **how: Any) -> AsyncGenerator[tuple[Any, int]]:
    app = serve.app(Agent(ScriptedModel(source.reply)), **how)
    urls: asyncio.Queue[str] = asyncio.Queue()
    task = asyncio.create_task(serve_http(app, port=0, drain_seconds=0, ready=urls.put_nowait))
    try:
        yield app, int((await urls.get()).rpartition(":")[2])
    finally:
        task.cancel()
        await asyncio.wait([task])


@asynccontextmanager
async def asking(port: int, wire: str) -> AsyncGenerator[asyncio.StreamReader]:
    """A client that has sent its request."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(sock=connection, limit=65536)
    path, body = STREAMED[wire]
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {len(data)}\r\n"
    writer.write(
        head.encode() + b"Content-Type: application/json\r\nA2A-Version: 1.0\r\n\r\n" + data
    )
    try:
        yield reader
    finally:
        writer.transport.abort()


@pytest.mark.parametrize("store", ["memory", "sqlite"])
@pytest.mark.parametrize("on_disconnect", ["cancel", "detach"])
@pytest.mark.parametrize("wire", list(STREAMED))
async def test_a_client_that_reads_nothing_holds_its_run_back(
    wire: str, on_disconnect: Any, store: str, tmp_path: Path
) -> None:
    source, url = Source(), "memory:" if store == "memory" else f"sqlite:///{tmp_path}/s.db"
    policy = AgentPolicy(on_disconnect=on_disconnect)
    async with serving(source, store=url, policy=policy) as (_, port), asking(port, wire):
        await until(lambda: source.said > 0)
        await source.pause()
        assert source.said < MOST_BYTES


@pytest.mark.slow
@pytest.mark.parametrize("wire", list(STREAMED))
async def test_the_run_goes_on_once_its_client_reads(wire: str) -> None:
    source = Source(300)
    async with serving(source) as (_, port), asking(port, wire) as reader:
        await until(lambda: source.said > 0)
        await source.pause()
        data = bytearray()
        while piece := await reader.read(1 << 20):
            data += piece
        assert source.said == 300 * len(PIECE)
        assert data.count(b"x" * 1000) >= 300 * len(PIECE) // 1000


async def test_a_client_that_is_cut_off_lets_a_detached_run_go_on() -> None:
    source = Source(150)
    limits = ServerLimits(write_seconds=0.5, ping_seconds=0.2)
    policy = AgentPolicy(on_disconnect="detach")
    async with serving(source, policy=policy, limits=limits) as (app, port), asking(port, "ag_ui"):
        await until(lambda: source.said == 150 * len(PIECE))
        await until(lambda: not app.state.service.runs.driven)
        [status] = await app.state.service.runs.list()
        assert status.state == "success"


async def test_a_run_that_is_held_back_can_be_cancelled() -> None:
    source = Source()
    async with serving(source) as (app, port), asking(port, "ag_ui"):
        await until(lambda: source.said > 0)
        await source.pause()
        [run_id] = app.state.service.runs.driven
        await app.state.service.runs.cancel(run_id)
        await until(lambda: not app.state.service.runs.driven)
        assert (await app.state.service.runs.status(run_id)).state == "cancelled"


async def test_one_reader_that_keeps_up_is_enough() -> None:
    source = Source(100)
    async with open_log("memory:") as log, Runs(log) as runs:
        run_id = await runs.start(Agent(ScriptedModel(source.reply)), "Go.")
        slow = runs.pages(run_id, paces=True)
        await anext(slow)
        count = 0
        async for page in runs.pages(run_id, paces=True):
            count += len(page)
        assert source.said == 100 * len(PIECE)
        assert (await runs.status(run_id)).end == count
        await slow.aclose()


async def test_a_reader_of_a_program_holds_nothing_back() -> None:
    """A run is not a connection: only a server's clients pace it."""
    source = Source(100)
    async with open_log("memory:") as log, Runs(log) as runs:
        run_id = await runs.start(Agent(ScriptedModel(source.reply)), "Go.")
        reader = runs.attach(run_id)
        await anext(reader)
        await until(lambda: source.said == 100 * len(PIECE))
        await reader.aclose()


async def test_a_log_in_memory_is_bounded_also_for_runs_that_go_on() -> None:
    source = Source(100)
    async with MemoryLog(most_running_bytes=1_000_000) as log, Runs(log) as runs:
        run_id = await runs.start(Agent(ScriptedModel(source.reply)), "Go.")
        events = [event async for _, event in runs.attach(run_id)]
        assert "holds at most 1000000 bytes" in str(events[-1].error)  # type: ignore[union-attr]
        assert source.said < 100 * len(PIECE)
        other = await runs.start(
            Agent(ScriptedModel(["Hi."])), "Go."
        )  # the full one is over, and gives way
        events = [event async for _, event in runs.attach(other)]
        assert (await runs.status(other)).state == "success"


async def test_grpc_clients_hold_their_runs_back_too() -> None:
    grpc = pytest.importorskip("grpc")
    from dragoman.serve.apis.a2a_grpc import load_methods, serve_grpc

    service_name, found = load_methods()
    method = found["SendStreamingMessage"]
    source = Source()
    app = serve.app(Agent(ScriptedModel(source.reply)))
    async with app.router.lifespan_context(app), serve_grpc(app) as address:
        from a2a.types import a2a_pb2
        from google.protobuf import json_format

        assert method.streams
        request = json_format.ParseDict(
            STREAMED["a2a"][1]["params"], a2a_pb2.SendMessageRequest()
        ).SerializeToString()
        async with grpc.aio.insecure_channel(address) as channel:
            call = channel.unary_stream(f"/{service_name}/SendStreamingMessage")(
                request, metadata=(("a2a-version", "1.0"),)
            )
            await call.read()
            await source.pause()
            assert source.said < MOST_BYTES
            call.cancel()


async def test_a_port_is_free_again() -> None:
    """The helper above leaves nothing behind."""
    async with serving(Source(1)) as (_, port):
        pass
    with open_listener("127.0.0.1", port):
        pass
