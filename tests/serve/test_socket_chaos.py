"""Clients of every bad habit over real sockets, at once, before a database: what they leave behind,
and what the others got."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from yarl import URL

from dragoman import Agent, serve
from dragoman.request import ModelRequest
from dragoman.serve import ServerLimits
from dragoman.testing import ScriptedModel
from support.asgi import exchange
from support.until import until

pytestmark = [pytest.mark.anyio, pytest.mark.service]

CLIENTS = 40
LIMITS = ServerLimits(body_seconds=0.3, write_seconds=0.3, ping_seconds=0.1, keep_seconds=20.0)
HUGE = "x" * 100_000


async def reply(request: ModelRequest) -> AsyncGenerator[str]:
    pieces = [HUGE] * 60 if "flood" in request.messages[-1].text else ["One ", "two ", "three."]
    for piece in pieces:
        await asyncio.sleep(0)
        yield piece


def post(text: str, *, stream: bool) -> bytes:
    body = msgspec.json.encode({"model": "m", "input": text, "stream": stream})
    head = f"POST /v1/responses HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Crowd:
    """Clients of one server."""

    def __init__(self, port: int, random: Random) -> None:
        self._port, self._random = port, random
        self.ids: list[str] = []
        """Of the answers that came whole."""
        self.counts: Counter[str] = Counter()

    async def one(self) -> None:
        """A client with a habit."""
        name = self._random.choice(list(HABITS))
        self.counts[name] += 1
        connection = socket.socket()
        connection.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVBUF, 4096
        )  # what nobody reads waits at the server
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", self._port))
        reader, writer = await asyncio.open_connection(sock=connection, limit=4096)
        try:
            await HABITS[name](self, reader, writer)
        finally:
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()

    async def reads_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """What everybody should do."""
        writer.write(post("Hi.", stream=False))
        head, _, body = (await reader.read(-1)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        answer = msgspec.json.decode(body)
        assert answer["output"][0]["content"][0]["text"] == "One two three."
        self.ids.append(answer["id"])

    async def leaves(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Goes after some bytes of an answer, or before the first."""
        writer.write(post(self._random.choice(("Hi.", "Hi.", "flood")), stream=True))
        if wanted := self._random.choice((0, 1, 300, 3000)):
            await reader.read(wanted)

    async def sends_half(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """And waits for an answer."""
        writer.write(post("Hi.", stream=False)[:-7])
        assert (await reader.read(-1)).startswith(b"HTTP/1.1 400")

    async def drips(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A byte of the body at a time, slower than the server waits for."""
        data = post("Hi.", stream=False)
        head = data.index(b"\r\n\r\n") + 4
        writer.write(data[:head])
        answer = asyncio.create_task(reader.read(-1))
        for byte in data[head:]:
            writer.write(bytes([byte]))
            await asyncio.wait([answer], timeout=0.02)
            if answer.done():
                break
        with suppress(
            ConnectionError
        ):  # bytes that nobody read may reset the connection before the answer is read
            assert (await answer).startswith(b"HTTP/1.1 400")

    async def reads_nothing(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Until the server has had enough."""
        writer.write(post("flood", stream=True))
        await self.quiet

    quiet: asyncio.Future[None]
    """Done once no call is open any more."""


Habit = Callable[[Crowd, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HABITS: Mapping[str, Habit] = {
    "reads all": Crowd.reads_all,
    "leaves": Crowd.leaves,
    "sends half": Crowd.sends_half,
    "drips": Crowd.drips,
    "reads nothing": Crowd.reads_nothing,
}


def app_of(store: str, on_disconnect: Any) -> Any:
    agent = Agent(ScriptedModel(reply, key_required=False))
    return serve.app(
        {"m": agent},
        store=store,
        policy=serve.AgentPolicy(on_disconnect=on_disconnect),
        limits=LIMITS,
    )


def sockets() -> int:
    """How many this process has open."""
    found = 0
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found += str(each.readlink()).startswith("socket:")
    return found


def is_empty(service: Any) -> bool:
    """Whether no call is open, and no run goes on."""
    return not service.gate.open and not service.runs.driven


@pytest.mark.parametrize("on_disconnect", ["cancel", "detach"])
async def test_nothing_is_left_of_bad_clients_and_nothing_lacks_of_good_ones(
    on_disconnect: Any, tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path / 'answers.db'}"
    app, port = app_of(store, on_disconnect), asyncio.get_running_loop().create_future()
    tasks, open_sockets = asyncio.all_tasks(), sockets()
    server = asyncio.create_task(
        serve.serve_http(app, port=0, ready=lambda url: port.set_result(URL(url).port))
    )
    crowd, service = Crowd(await port, Random(7)), app.state.service
    crowd.quiet = asyncio.get_running_loop().create_future()
    clients = [asyncio.create_task(crowd.one()) for _ in range(CLIENTS)]
    await asyncio.wait(clients, return_when=asyncio.FIRST_COMPLETED)
    await until(
        lambda: is_empty(service)
    )  # those that read nothing are cut while they are still there
    crowd.quiet.set_result(None)
    await asyncio.gather(*clients)
    await until(lambda: is_empty(service))
    assert (service.gate.open, service.gate.bytes, len(service.runs.driven)) == (0, 0, 0)
    server.cancel()
    await asyncio.wait([server])
    assert asyncio.all_tasks() == tasks
    assert sockets() == open_sockets
    assert set(crowd.counts) == set(HABITS)
    assert len(crowd.ids) == crowd.counts["reads all"]
    again = app_of(store, on_disconnect)
    async with again.router.lifespan_context(again):
        for each in crowd.ids:
            found = await exchange(again, "GET", f"/v1/responses/{each}")
            assert (found.status, found.json["status"]) == (200, "completed")
