"""Runs and processes that die, stand still, or meet: drivers, readers and successors are processes
of their own."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import RunInterruptedError
from dragoman.event import Event, RunError, RunFinished, event_to_json
from dragoman.fold import fold
from dragoman.repair import repair
from dragoman.runs import RunLog, Runs, open_log
from support.model import agent, says
from support.runs import acknowledged, drive, succeed

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]

LEASE = 2.0


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    """Processes that begin in milliseconds, since what they need is imported once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["support.runs", "dragoman.runs.sql_log", "dragoman.runs.runs", "dragoman.agent"]
    )
    return context


def start(processes: ForkServerContext, function: Any, *arguments: Any) -> ForkServerProcess:
    process = processes.Process(target=function, args=arguments, daemon=True)
    process.start()
    return process


async def until(place: Path, events: int, process: ForkServerProcess) -> None:
    """Waits until so many events of each run are acknowledged."""
    while min(acknowledged(place).values(), default=0) < events:
        assert process.is_alive()
        await asyncio.sleep(0.005)


async def read(runs: Runs, run_id: str) -> list[Event]:
    async with aclosing(runs.attach(run_id)) as attached:
        events: list[Event] = []
        async for offset, event in attached:
            assert offset == len(events)
            events.append(event)
        return events


@asynccontextmanager
async def looking(url: str) -> AsyncIterator[tuple[RunLog, Runs]]:
    async with open_log(url) as log, Runs(log, lease_seconds=LEASE, poll_seconds=0.05) as runs:
        yield log, runs


async def killed_at_random(
    processes: ForkServerContext, url: str, folder: Path, seeds: Sequence[int]
) -> None:
    """Kills drivers at random moments, side by side; two successors race for what they left."""
    async with looking(url) as (_, first), looking(url) as (_, second):
        await asyncio.gather(
            *[killed_once(processes, url, folder, seed, first, second) for seed in seeds]
        )
        assert {each.state for each in await first.list(most=1000)} == {"interrupted", "success"}


async def killed_once(
    processes: ForkServerContext, url: str, folder: Path, seed: int, first: Runs, second: Runs
) -> None:
    place = folder / f"acknowledged-{seed}"
    driver = start(processes, drive, url, str(place), LEASE, 2, f"k{seed}-")
    await until(place, 1, driver)
    await asyncio.sleep(random.Random(seed).uniform(0, 0.25))
    driver.kill()
    await asyncio.to_thread(driver.join)
    seen = acknowledged(place)
    for run_id in (f"k{seed}-0", f"k{seed}-1"):
        told, again = await asyncio.gather(read(first, run_id), read(second, run_id))
        assert [*map(event_to_json, told)] == [*map(event_to_json, again)]
        assert len(told) > seen.get(run_id, 0)
        check_ended_once(told)
        status = await first.status(run_id)
        assert (status.state, status.end, status.token) == ("interrupted", len(told), 2)
        messages = await second.messages(run_id)
        assert messages == tuple(repair(fold(told)))
        a, script = agent(says("done"))
        next_id = await first.start(a, "go on", history=messages)
        assert isinstance((await read(second, next_id))[-1], RunFinished)
        assert len(script.requests) == 1


def check_ended_once(told: list[Event]) -> None:
    ends = [event for event in told if isinstance(event, (RunError, RunFinished))]
    assert ends == told[-1:]
    assert isinstance(told[-1], RunError)
    assert isinstance(told[-1].error, RunInterruptedError)


@pytest.mark.slow
async def test_what_was_acknowledged_is_there_after_kill_9(
    shared_url: str, processes: ForkServerContext, tmp_path: Path
) -> None:
    await killed_at_random(processes, shared_url, tmp_path, range(10))


@pytest.mark.service
@pytest.mark.timeout(600)
async def test_a_hundred_times(
    shared_url: str, processes: ForkServerContext, tmp_path: Path
) -> None:
    for first in range(100, 200, 10):
        await killed_at_random(processes, shared_url, tmp_path, range(first, first + 10))


@pytest.mark.slow
async def test_a_driver_that_stood_still_is_refused(
    shared_url: str, processes: ForkServerContext, tmp_path: Path
) -> None:
    place = tmp_path / "acknowledged"
    driver = start(processes, drive, shared_url, str(place), LEASE)
    await until(place, 20, driver)
    assert driver.pid is not None
    os.kill(driver.pid, signal.SIGSTOP)
    try:
        async with looking(shared_url) as (_, runs):
            told = await read(runs, "run-0")
            check_ended_once(told)
            os.kill(driver.pid, signal.SIGCONT)
            await asyncio.to_thread(driver.join)
            assert driver.exitcode == 0
            assert (await runs.status("run-0")).end == len(told)
            assert [*map(event_to_json, await read(runs, "run-0"))] == [*map(event_to_json, told)]
            assert acknowledged(place)["run-0"] <= len(told)
    finally:
        driver.kill()


@pytest.mark.slow
async def test_a_run_is_read_and_stopped_from_another_process(
    shared_url: str, processes: ForkServerContext, tmp_path: Path
) -> None:
    place = tmp_path / "acknowledged"
    driver = start(processes, drive, shared_url, str(place), 30.0)
    await until(place, 5, driver)
    async with looking(shared_url) as (_, runs):
        events: list[Event] = []
        async with aclosing(runs.attach("run-0")) as attached:
            async for _, event in attached:
                events.append(event)
                if len(events) == 40:
                    assert (await runs.status("run-0")).driven
                    await runs.cancel("run-0")
        assert isinstance(events[-1], RunFinished)
        assert events[-1].outcome == "cancelled"
        await asyncio.to_thread(driver.join)
        assert driver.exitcode == 0
        assert acknowledged(place) == {"run-0": len(events)}
        assert (await runs.status("run-0")).posts == 1


@pytest.mark.slow
async def test_processes_that_find_the_same_run_left_end_it_once(
    shared_url: str, processes: ForkServerContext, tmp_path: Path
) -> None:
    place = tmp_path / "acknowledged"
    driver = start(processes, drive, shared_url, str(place), LEASE, 3)
    await until(place, 3, driver)
    driver.kill()
    successors = [start(processes, succeed, shared_url, LEASE, 3) for _ in range(4)]
    for each in successors:
        await asyncio.to_thread(each.join)
        assert each.exitcode == 0
    async with looking(shared_url) as (_, runs):
        for number in range(3):
            check_ended_once(await read(runs, f"run-{number}"))
            assert (await runs.status(f"run-{number}")).token == 2


@pytest.mark.slow
async def test_processes_that_open_a_new_database_make_its_tables_once(
    shared_url: str, processes: ForkServerContext
) -> None:
    openers = [start(processes, succeed, shared_url, LEASE, 0) for _ in range(5)]
    for each in openers:
        await asyncio.to_thread(each.join)
        assert each.exitcode == 0
