"""Nothing is left behind: no task, socket or thread, after a thousand sends one after another and
two hundred at once."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, tool
from dragoman.errors import AuthenticationError, DragomanError, StreamCutError
from support.socket_server import Server, answer, serving

pytestmark = pytest.mark.anyio


def event(delta: dict[str, Any], reason: str | None = None) -> bytes:
    chunk = {
        "id": "c",
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
    }
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


WORDS = [event({"role": "assistant", "content": word}) for word in ("one ", "two ", "three")]
SPOKEN = answer(*WORDS, event({}, "stop"), b"data: [DONE]\n\n")


def sockets() -> int:
    kinds = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            kinds.append(str(entry.readlink()))
        except OSError:
            continue
    return sum(kind.startswith("socket:") for kind in kinds)


@asynccontextmanager
async def nothing_left(server: Server) -> AsyncIterator[None]:
    """Compares tasks, threads and sockets of this process before and after. Those of an earlier
    test may come to their end meanwhile."""

    def counted() -> tuple[int, int, int, int]:
        return len(asyncio.all_tasks()), threading.active_count(), sockets(), server.open

    gc.collect()
    before = (*counted()[:3], 0)
    yield
    for _ in range(100):
        gc.collect()
        await asyncio.sleep(0.02)
        if all(now <= was for now, was in zip(counted(), before, strict=True)):
            return
    assert counted() == before


def agent(server: Server) -> Agent[None]:
    return Agent("openai", base_url=server.url, api_key="k")


@pytest.mark.slow
async def test_a_thousand_sends_one_after_another_over_one_connection() -> None:
    async with serving(SPOKEN) as server, nothing_left(server):
        async with Agent("openai", base_url=server.url, api_key="k") as a:
            for _ in range(1000):
                assert (await a.send("hi")).output == "one two three"
        assert server.connections == 1


@pytest.mark.slow
async def test_two_hundred_sends_at_once() -> None:
    async with serving(SPOKEN) as server, nothing_left(server):
        async with Agent("openai", base_url=server.url, api_key="k") as a:
            results = await asyncio.gather(*[a.send("hi") for _ in range(200)])
        assert {result.output for result in results} == {"one two three"}


@pytest.mark.slow
async def test_agents_that_are_forgotten_leave_nothing_either() -> None:
    async with serving(SPOKEN) as server, nothing_left(server):
        for _ in range(20):
            await Agent("openai", base_url=server.url, api_key="k").send("hi")


@pytest.mark.slow
async def test_stopping_early_cancelling_and_failing_leave_nothing() -> None:
    from support.socket_server import Do

    hanging = answer(*WORDS, Do.HANG)
    async with serving(hanging) as server, nothing_left(server), agent(server) as a:
        for _ in range(10):
            stream = a.send_stream("hi")
            async for chunk in stream:
                if chunk.output:
                    break
            await stream.aclose()
        for _ in range(10):
            async with a.run("hi") as run:
                async for _event in run:
                    run.cancel()
        tasks = [asyncio.create_task(a.send("hi")) for _ in range(10)]
        await asyncio.sleep(0.1)
        for task in tasks:
            task.cancel()
        assert all(
            isinstance(end, asyncio.CancelledError)
            for end in await asyncio.gather(*tasks, return_exceptions=True)
        )
    async with (
        serving(answer(*WORDS, Do.RESET)) as server,
        nothing_left(server),
        agent(server) as a,
    ):
        for _ in range(10):
            with pytest.raises(DragomanError) as caught:
                await a.send("hi")
            assert isinstance(caught.value, StreamCutError)
            assert caught.value.partial is not None
            assert caught.value.partial.text == "one two three"


async def test_closing_an_early_stopped_stream_closes_its_connection_at_once() -> None:
    from support.socket_server import Do

    async with (
        serving(answer(*WORDS, Do.HANG)) as server,
        Agent("openai", base_url=server.url, api_key="k") as a,
    ):
        stream = a.send_stream("hi")
        async for chunk in stream:
            if chunk.output:
                break
        await stream.aclose()
        await asyncio.wait_for(server.left.wait(), 5)


@pytest.mark.slow
async def test_synchronous_sends_leave_nothing_once_the_agent_is_closed() -> None:
    @tool
    def look() -> str:
        return "seen"

    async with serving(SPOKEN) as server, nothing_left(server):
        a = Agent("openai", base_url=server.url, api_key="k", tools=[look])
        outputs = await asyncio.gather(
            *[asyncio.to_thread(lambda: a.send_sync("hi").output) for _ in range(5)]
        )
        assert set(outputs) == {"one two three"}
        await asyncio.to_thread(lambda: asyncio.run(a.close()))
        await asyncio.get_running_loop().shutdown_default_executor()


@pytest.mark.slow
async def test_synchronous_sends_that_fail_leave_nothing_when_their_agents_are_forgotten(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nor does asyncio complain of a task that was destroyed while it closed a connection."""

    def refused() -> None:
        for _ in range(8):
            with pytest.raises(AuthenticationError):
                Agent("openai", base_url=server.url, api_key="k").send_sync("hi")
            gc.collect()

    async with (
        serving(answer(b'{"error": {"message": "bad key"}}', status=401)) as server,
        nothing_left(server),
    ):
        await asyncio.to_thread(refused)
        await asyncio.get_running_loop().shutdown_default_executor()
    assert [record.message for record in caplog.records if record.name == "asyncio"] == []
