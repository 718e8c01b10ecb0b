"""`dragoman serve --processes`: what is shared over all of them, and their end, whichever is killed."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from support.cli import SRC

pytestmark = [pytest.mark.anyio, pytest.mark.service, pytest.mark.timeout(240)]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="processes are listed in /proc")


class Server:
    """`dragoman serve process_app:agent --processes 2`, and a client of it."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self.process, self.url = process, url
        self.http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=True))

    def children(self) -> list[int]:
        pid = self.process.pid
        return [
            int(each)
            for each in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
        ]

    async def chat(self, said: str = "who") -> str:
        """The text of an answer; the server's status, if it has none."""
        body = {"model": "m", "messages": [{"role": "user", "content": said}]}
        async with self.http.post(f"{self.url}/v1/chat/completions", json=body) as response:
            if response.status != 200:
                return str(response.status)
            return (await response.json())["choices"][0]["message"]["content"]

    async def stream(self, said: str) -> bytes:
        """A stream to its end."""
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": said}]}
        async with self.http.post(f"{self.url}/v1/chat/completions", json=body) as response:
            return await response.read()

    async def shares(self, count: int, at_a_time: int = 16) -> Counter[str]:
        """How many of so many calls each process answered."""
        numbers, seen = iter(range(count)), Counter[str]()

        async def ask() -> None:
            for _ in numbers:
                seen[await self.chat()] += 1

        await asyncio.gather(*[ask() for _ in range(at_a_time)])
        return seen

    async def metric(self, name: str) -> float:
        """The sum of a metric over its labels, as any of the processes gives it."""
        async with self.http.get(f"{self.url}/metrics") as response:
            families = text_string_to_metric_families(await response.text())
        return sum(
            sample.value for family in families for sample in family.samples if sample.name == name
        )

    async def until_ended(self) -> int:
        return await asyncio.wait_for(self.process.wait(), 60)


async def start(folder: Path, *options: str, **environment: str) -> asyncio.subprocess.Process:
    store = f"sqlite:///{folder}/server.db"
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dragoman", "serve", "process_app:agent", "--processes", "2"),
        *("--port", "0", "--store", store, "-C", str(Path(__file__).parent), *options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": SRC, "PYTHONUNBUFFERED": "1", **environment},
    )


@asynccontextmanager
async def serving(folder: Path, *options: str, **environment: str) -> AsyncGenerator[Server]:
    process = await start(folder, *options, **environment)
    try:
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert found, (line, await process.communicate())
        server = Server(process, found[0])
        async with server.http:
            yield server
    finally:
        if process.returncode is None:
            process.terminate()
            process.terminate()
            await process.wait()


async def until(condition: Any, seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - other processes change it
            await asyncio.sleep(0.1)


def living(processes: list[int]) -> list[int]:
    """Those that have not ended."""
    return [pid for pid in processes if Path(f"/proc/{pid}/cmdline").exists()]


async def until_gone(processes: list[int], seconds: float = 30.0) -> None:
    async def are_gone() -> bool:
        return not living(processes)

    await until(are_gone, seconds)


@LINUX
async def test_each_has_its_share_and_metrics_are_those_of_all_whoever_dies(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as server:
        first = server.children()
        seen = await server.shares(2000)
        assert seen.total() == 2000
        assert len(seen) == 2, seen
        assert all(0.35 <= count / 2000 <= 0.65 for count in seen.values()), seen
        # Whichever process is asked.
        assert {await server.metric("dragoman_calls_total") for _ in range(4)} == {2000}
        never = [asyncio.create_task(server.stream("never")) for _ in range(4)]

        async def four_run() -> bool:
            return await server.metric("dragoman_open_calls") == 4

        await until(four_run)
        os.kill(first[0], signal.SIGKILL)
        # Nothing of what it counted is lost, and what ran in it runs no more.
        assert (await server.shares(10, 1)).total() == 10

        async def a_new_one_answers() -> bool:
            return len(await server.shares(4, 1)) == 2

        await until(a_new_one_answers)
        assert first[0] not in server.children()
        assert await server.metric("dragoman_open_calls") == 2
        finished = await server.metric("dragoman_calls_total")
        total = 2010
        assert finished >= total
        assert (await server.shares(20, 4)).total() == 20
        assert await server.metric("dragoman_calls_total") == finished + 20
        for task in never:
            task.cancel()
        await asyncio.gather(*never, return_exceptions=True)
        server.process.send_signal(signal.SIGTERM)
        assert await server.until_ended() == 0


@LINUX
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_lets_calls_come_to_their_end(tmp_path: Path, number: int) -> None:
    async with serving(tmp_path) as server:
        children = server.children()
        streams = [asyncio.create_task(server.stream("slow")) for _ in range(6)]

        async def all_run() -> bool:
            return await server.metric("dragoman_open_calls") == 6

        await until(all_run)
        if number == signal.SIGTERM:
            # As a service manager does: to every process at once.
            for child in children:
                os.kill(child, number)
        server.process.send_signal(number)
        assert await server.until_ended() == 0
        for stream in await asyncio.gather(*streams):
            assert stream.count(b"word") == 10, stream
            assert stream.endswith(b"data: [DONE]\n\n")
        await until_gone(children, 1)


@LINUX
async def test_a_second_signal_ends_calls_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        streams = [asyncio.create_task(server.stream("never")) for _ in range(4)]

        async def all_run() -> bool:
            return await server.metric("dragoman_open_calls") == 4

        await until(all_run)
        server.process.send_signal(signal.SIGINT)
        await asyncio.sleep(0.3)
        assert await server.chat() == "503"
        server.process.send_signal(signal.SIGINT)
        assert await server.until_ended() == 0
        assert all(b"the server ends" in stream for stream in await asyncio.gather(*streams))


@LINUX
async def test_no_process_outlives_the_one_that_supervises_it(tmp_path: Path) -> None:
    async with serving(tmp_path, "--drain", "1") as server:
        children = server.children()
        slow = asyncio.create_task(server.stream("never"))

        async def it_runs() -> bool:
            return await server.metric("dragoman_open_calls") == 1

        await until(it_runs)
        server.process.kill()
        await server.process.wait()
        await until_gone(children)
        assert b"the server ends" in await slow


@LINUX
async def test_a_process_that_stands_still_gets_few_connections_and_others_get_them_if_it_dies(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as server:
        stopped, other = server.children()
        os.kill(stopped, signal.SIGSTOP)
        calls = [asyncio.create_task(server.chat()) for _ in range(20)]

        async def most_are_answered() -> bool:
            return sum(call.done() for call in calls) >= 12

        await until(most_are_answered)
        os.kill(stopped, signal.SIGKILL)
        assert {(await call)[: len(f"process {other}")] for call in calls} == {f"process {other}"}


async def test_a_process_that_dies_again_and_again_ends_the_server(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:

        async def die() -> bool:
            try:
                await server.chat("die")
            except aiohttp.ClientError:
                return server.process.returncode is not None
            return False

        await until(die, 60)
        assert server.process.returncode == 1
        assert server.process.stderr is not None
        told = (await server.process.stderr.read()).decode()
        assert "it is started again in 2 seconds" in told
        assert re.search(r"process \d ended with 7, 5 times in a row .* the server ends", told)


async def test_what_cannot_start_is_told_once(tmp_path: Path) -> None:
    server = await start(tmp_path, PROCESS_APP="cannot start")
    out, err = await server.communicate()
    assert (server.returncode, out) == (1, b"")
    assert err.decode().strip() == "it cannot start"
    server = await start(tmp_path, "--store", "memory:")
    out, err = await server.communicate()
    assert (server.returncode, out) == (3, b"")
    assert err.count(b"\n") == 1
    assert b"2 processes or more, and keeps answers (store=) in the memory of each" in err


async def test_an_answer_in_the_background_is_read_and_cancelled_from_any_process(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as server:
        body = {"model": "m", "input": "never", "background": True}
        url = f"{server.url}/v1/responses"
        begun = await (await server.http.post(url, json=body)).json()
        url = f"{url}/{begun['id']}"
        # Each connection is the next process's turn.
        for _ in range(4):
            found = await (await server.http.get(url)).json()
            assert found["status"] == "in_progress", found
        streams = [
            asyncio.create_task(
                (
                    await server.http.get(url, params={"stream": "true", "starting_after": "1"})
                ).read()
            )
            for _ in range(2)
        ]
        await asyncio.sleep(1)
        await server.chat()
        cancelled = await (await server.http.post(f"{url}/cancel")).json()
        assert cancelled["status"] == "cancelled", cancelled
        for _ in range(4):
            assert (await (await server.http.get(url)).json())["status"] == "cancelled"
        one, other = await asyncio.gather(*streams)
        assert one == other
        assert b"response.output_text.delta" in one
