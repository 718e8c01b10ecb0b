"""Sessions with MCP servers: opened once, shared, opened again where they broke, and nothing is
left of them."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dragoman.errors import ToolError
from dragoman.mcp import mcp
from support import mcp_program
from support.tasks_left import tasks_left
from support.until import until

pytestmark = pytest.mark.anyio


def program(log: Path) -> list[str]:
    return [sys.executable, "-S", mcp_program.__file__, str(log)]


def running(log: Path) -> int:
    """How many programs run that note in this file."""
    found = subprocess.run(["pgrep", "-fc", str(log)], capture_output=True, text=True, check=False)
    return int(found.stdout)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "calls.log"


def noted(log: Path) -> list[str]:
    """The words in the log."""
    return log.read_text().split() if log.exists() else []


async def test_d160_it_connects_when_it_is_first_needed_and_once(log: Path):
    server = mcp(program(log))
    async with server:
        assert running(log) == 0
        await asyncio.gather(
            *(server.call_tool("add", {"a": 1, "b": n}) for n in range(5)), server.list_tools()
        )
        assert running(log) == 1
        async with server:
            await server.list_tools()
        assert running(log) == 1
    assert running(log) == 0


async def test_d163_who_left_may_come_back(log: Path):
    server = mcp(program(log))
    for _ in range(2):
        async with server:
            assert await server.call_tool("add", {"a": 1, "b": 2}) == "3"
        assert running(log) == 0


async def test_one_that_is_not_entered_lasts_for_a_request(log: Path):
    assert await mcp(program(log)).call_tool("add", {"a": 1, "b": 2}) == "3"
    assert running(log) == 0


async def test_who_needs_it_first_may_be_cancelled(log: Path):
    async with mcp(program(log)) as server:
        first = asyncio.create_task(server.list_tools())
        await asyncio.sleep(0.05)
        second = asyncio.create_task(server.list_tools())
        await asyncio.sleep(0)
        first.cancel()
        assert len(await second) > 5
    assert running(log) == 0


async def test_a_session_outlives_the_task_that_opened_it(log: Path):
    async with mcp(program(log)) as server:
        await asyncio.create_task(server.call_tool("add", {"a": 1, "b": 2}))
        assert await server.call_tool("add", {"a": 2, "b": 2}) == "4"
        assert running(log) == 1


async def test_it_may_be_left_from_another_task(log: Path):
    server = mcp(program(log))
    await server.__aenter__()
    await server.list_tools()
    await asyncio.create_task(server.__aexit__(None, None, None))
    assert running(log) == 0


async def test_cancelling_a_call_reaches_the_server(log: Path):
    async with mcp(program(log)) as server:
        call = asyncio.create_task(server.call_tool("slow"))
        await until(lambda: "slow" in noted(log))
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        number = noted(log)[-1]
        await until(lambda: noted(log)[-2:] == ["cancelled", number])
        assert await server.call_tool("add", {"a": 1, "b": 2}) == "3"


async def test_all_pages_of_a_list_are_read(log: Path):
    async with mcp(program(log)) as server:
        assert [tool.name for tool in await server.list_tools()] == list(mcp_program.TOOLS)


async def test_a_call_that_may_have_run_is_not_run_again(log: Path):
    async with mcp(program(log)) as server:
        await server.list_tools()
        with pytest.raises(ToolError, match="it dies now; it may have run or not"):
            await server.call_tool("die")
        assert noted(log).count("die") == 1
        assert await server.call_tool("add", {"a": 1, "b": 2}) == "3"


async def test_a_call_that_may_be_repeated_is_run_again_once(log: Path, tmp_path: Path):
    async with mcp(program(log)) as server:
        await server.list_tools()
        assert await server.call_tool("die_once", {"mark": str(tmp_path / "mark")}) == "0"
        assert noted(log).count("die_once") == 2


async def test_a_server_that_died_meanwhile_is_started_again(log: Path):
    async with mcp(program(log)) as server:
        with pytest.raises(ToolError):
            await server.call_tool("die")
        await until(lambda: running(log) == 0)
        assert len(await server.list_tools()) > 5
        assert running(log) == 1
    assert running(log) == 0


@pytest.mark.slow
def test_the_end_of_the_loop_ends_it(log: Path):
    async def main() -> None:
        server = mcp(program(log))
        await server.__aenter__()  # and never left
        await server.list_tools()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(main())
        gc.collect()
    assert running(log) == 0


def test_one_set_serves_several_loops(log: Path):
    server = mcp(program(log))

    async def main() -> None:
        async with server:
            assert await server.call_tool("add", {"a": 1, "b": 2}) == "3"

    for _ in range(2):
        asyncio.run(main())
    assert running(log) == 0


async def test_no_task_is_left(log: Path):
    before = asyncio.all_tasks()
    async with mcp(program(log)) as server:
        await server.list_tools()
        call = asyncio.create_task(server.call_tool("slow"))
        await until(lambda: "slow" in noted(log))
    assert running(log) == 1  # the call uses it still
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await tasks_left(before) == set()
    assert running(log) == 0


def test_loops_in_several_threads_have_sessions_of_their_own(log: Path):
    server = mcp(program(log))

    async def main() -> list[str]:
        async with server:
            return [await server.call_tool("add", {"a": n, "b": 1}) for n in range(5)]

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: asyncio.run(main()), range(4)))
    assert found == [["1", "2", "3", "4", "5"]] * 4
    assert running(log) == 0


@pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="the system does not list open files"
)
async def test_no_file_is_left_open(log: Path):
    def opened() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - quick

    await mcp(program(log)).list_tools()
    before = opened()
    for _ in range(3):
        await mcp(program(log)).list_tools()
        for broken in (["dragoman-has-no-such-program"], [sys.executable, "-S", "-c", ""]):
            with pytest.raises(ToolError):
                await mcp(broken).list_tools()
    await until(lambda: opened() <= before)
