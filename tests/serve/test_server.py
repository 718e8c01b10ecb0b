"""The server as a process has it: where it listens, who reaches it, and how it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from dragoman import serve, wires
from dragoman.errors import OverloadedError, SettingsError
from dragoman.event import Event, MessageStarted, OpenText, PartDelta, PartStarted, RunError
from dragoman.message import Message, Role
from support.serving import ASKS, Scripted, asking, served

WIRES = sorted(ASKS)
BEGIN: list[Event] = [
    MessageStarted("1", Role.MODEL),
    PartStarted("1", 0, OpenText()),
    PartDelta("1", 0, "Hel"),
]


class Waiting(Scripted):
    """An answer that begins, and goes on when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go = asyncio.Event(), asyncio.Event()

    async def answer(self, *_: object) -> AsyncGenerator[list[Event], None]:
        self.running += 1
        try:
            yield BEGIN
            self.begun.set()
            await self.go.wait()
            yield [PartDelta("1", 0, "lo")]
        finally:
            self.running -= 1

    async def close(self) -> None:
        pass


class Closing(Scripted):
    async def close(self) -> None:
        pass


Client = Callable[[aiohttp.ClientSession, str, asyncio.Task[None]], Awaitable[None]]


def serving(client: Client, backend: Callable[[], Any] = Waiting, **how: Any) -> Any:
    """Serves while a client does this, until that and the server have ended; nothing is left behind
    → the backend."""

    async def main() -> Any:
        app, _ = served()
        app.state.service.backends = (made := backend(),)
        url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        before = asyncio.all_tasks()
        server = asyncio.create_task(serve.serve_http(app, port=0, ready=url.set_result, **how))
        async with aiohttp.ClientSession() as session:
            await client(session, await url, server)
            await asyncio.wait((server,))
        assert asyncio.all_tasks() <= {*before, asyncio.current_task()}
        assert app.state.service.gate.open == 0
        if not server.cancelled():
            server.result()
        return made

    return asyncio.run(main())


def asked(session: aiohttp.ClientSession, url: str, wire: str = "openai_chat") -> Any:
    path, body = asking(wire, stream=True)
    return session.post(url + path, json=body)


def end() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.slow
def test_what_runs_comes_to_its_end_and_nothing_new_begins(number: int) -> None:
    before = signal.getsignal(number)

    async def client(session: aiohttp.ClientSession, url: str, _: asyncio.Task[None]) -> None:
        async with asked(session, url) as running:
            await backends[0].begun.wait()
            os.kill(os.getpid(), number)
            for wire in WIRES:
                async with asked(session, url, wire) as refused:
                    error = wires.get(wire).load_error(
                        refused.status, dict(refused.headers), await refused.read()
                    )
                    assert isinstance(error, OverloadedError), wire
                    assert refused.headers["retry-after"] == "1"
            backends[0].go.set()
            events = wires.get("openai_chat").decoder().feed(await running.read())
            assert (
                "".join([each.delta for each in events if isinstance(each, PartDelta)]) == "Hello"
            )
            assert not [each for each in events if isinstance(each, RunError)]

    backends: list[Waiting] = []
    serving(client, lambda: backends.append(Waiting()) or backends[0])
    assert signal.getsignal(number) == before


@pytest.mark.parametrize("wire", WIRES)
def test_what_does_not_end_in_time_is_ended_in_the_words_of_its_wire(wire: str) -> None:
    async def client(session: aiohttp.ClientSession, url: str, _: asyncio.Task[None]) -> None:
        async with asked(session, url, wire) as running:
            assert running.status == 200
            await running.content.readany()
            end()
            decoder = wires.get(wire).decoder()
            events = [*decoder.feed(await running.read()), *decoder.close()]
            assert isinstance(events[-1], RunError)

    assert serving(client, drain_seconds=0).running == 0


def test_a_second_signal_ends_at_once() -> None:
    async def client(session: aiohttp.ClientSession, url: str, _: asyncio.Task[None]) -> None:
        async with asked(session, url) as running:
            await running.content.readany()
            end()
            await asyncio.sleep(0)
            end()
            decoder = wires.get("openai_chat").decoder()
            error = [*decoder.feed(await running.read()), *decoder.close()][-1]
            assert isinstance(error, RunError) and "server ends" in error.error.message

    assert serving(client, drain_seconds=1e6).running == 0


def test_cancelled_it_leaves_nothing() -> None:
    async def client(session: aiohttp.ClientSession, url: str, server: asyncio.Task[None]) -> None:
        async with asked(session, url) as running:
            await running.content.readany()
            server.cancel()
            await running.read()

    assert serving(client, drain_seconds=1e6).running == 0


def test_a_server_without_calls_ends_and_can_be_started_again() -> None:
    async def main() -> None:
        app, _ = served()
        app.state.service.backends = (Closing(Message.model("Hello.")),)
        for _ in range(2):
            url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            server = asyncio.create_task(serve.serve_http(app, port=0, ready=url.set_result))
            async with aiohttp.ClientSession() as session, asked(session, await url) as response:
                assert response.status == 200
            end()
            await server

    asyncio.run(main())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
def test_other_machines_reach_it_with_keys_alone(host: str) -> None:
    app, _ = served()
    with pytest.raises(SettingsError, match="keys that clients must send"):
        asyncio.run(serve.serve_http(app, host=host, port=0))


def test_a_port_that_is_taken_and_a_host_that_is_not_there() -> None:
    app, _ = served(auth="a-long-enough-key")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(SettingsError, match=f"port {port} of 127.0.0.1 is taken"):
            serve.run_server(app, port=port)
    with pytest.raises(SettingsError, match="no host"):
        serve.run_server(app, host="no.such.invalid", port=0)
    with pytest.raises(SettingsError, match="nothing can be served"):
        serve.run_server(app, host="192.0.2.1", port=0)
