"""Processes that write into one store: that die in the middle of it, and that write at once."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import random
from collections.abc import Sequence
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

import pytest

from dragoman.memory import Memory, WorkingMemory
from support.memory import acknowledged, merge, message, write

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    """Processes that begin in milliseconds, since what they need is imported once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["support.memory", "dragoman.memory.sql_store", "dragoman.memory.memory"]
    )
    return context


def start(processes: ForkServerContext, function: Any, *arguments: Any) -> ForkServerProcess:
    process = processes.Process(target=function, args=arguments, daemon=True)
    process.start()
    return process


async def killed_at_random(
    processes: ForkServerContext, url: str, folder: Path, seeds: Sequence[int]
) -> None:
    async with Memory(url) as memory:
        await memory.save_thread("there")
        await asyncio.gather(*[killed_once(processes, url, folder, seed, memory) for seed in seeds])


async def killed_once(
    processes: ForkServerContext, url: str, folder: Path, seed: int, memory: Memory
) -> None:
    """What was acknowledged is there, in order and whole; what was not is there whole or not at
    all; the thread goes on."""
    place, name = folder / f"acknowledged-{seed}", f"w{seed}"
    writer = start(processes, write, url, str(place), name, name, 100_000)
    while not acknowledged(place):
        assert writer.is_alive()
        await asyncio.sleep(0.002)
    await asyncio.sleep(random.Random(seed).uniform(0, 0.1))
    writer.kill()
    await asyncio.to_thread(writer.join)
    seen = acknowledged(place)
    found = (await memory.recall(name, resource_id="ann", per_page=None)).items
    assert len(found) >= seen
    assert len(found) % 2 == 0
    assert [each.replace(created_at=None) for each in found] == [
        message(name, number) for number in range(len(found))
    ]
    await memory.save([message(name, len(found))], name)
    newest = (await memory.recall(name, per_page=1, newest_first=True)).items[0]
    assert newest.id == f"{name}-{len(found)}"


@pytest.mark.slow
async def test_what_was_acknowledged_is_there_after_kill_9(
    shared_url: str, processes: ForkServerContext, tmp_path: Path
) -> None:
    await killed_at_random(processes, shared_url, tmp_path, range(4))


@pytest.mark.service
@pytest.mark.timeout(600)
async def test_a_hundred_times(
    shared_url: str, processes: ForkServerContext, tmp_path: Path
) -> None:
    for first in range(100, 200, 5):
        await killed_at_random(processes, shared_url, tmp_path, range(first, first + 5))


@pytest.mark.slow
async def test_processes_that_write_one_thread_at_once_lose_nothing(
    shared_url: str, processes: ForkServerContext, tmp_path: Path
) -> None:
    """The thread and the tables, too, are made by whoever comes first. Each writer's messages stand
    in its order, and no two in one place."""
    names, saves = "abc", 40
    writers = [
        start(processes, write, shared_url, str(tmp_path / name), name, "t", saves)
        for name in names
    ]
    for each in writers:
        await asyncio.to_thread(each.join)
        assert each.exitcode == 0
    async with Memory(shared_url) as memory:
        found = [each.id or "" for each in (await memory.recall("t", per_page=None)).items]
    assert len(found) == 2 * saves * len(names)
    for name in names:
        assert [each for each in found if each.startswith(name)] == [
            f"{name}-{number}" for number in range(2 * saves)
        ]


@pytest.mark.slow
async def test_processes_that_merge_into_one_working_memory_lose_nothing(
    shared_url: str, processes: ForkServerContext
) -> None:
    """R-13: 4 processes, 25 merges each: 100 fields and 100 versions."""
    writers = [start(processes, merge, shared_url, name, 25) for name in "abcd"]
    for each in writers:
        await asyncio.to_thread(each.join)
        assert each.exitcode == 0
    settings = WorkingMemory(schema={"type": "object"})
    async with Memory(shared_url, working=settings) as memory:
        working = await memory.working(resource_id="ann")
    assert json.loads(working.text) == {f"{name}{n}": n for name in "abcd" for n in range(25)}
    assert working.version == 100
