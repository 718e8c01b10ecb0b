"""Durable runs whose processes are killed: at random moments, and at the start of a tool."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import signal
from datetime import UTC, datetime
from functools import partial
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

import pytest

from dragoman.event import Event, RunFinished, event_to_json
from dragoman.runs import Runs, open_log
from support.durable import begun, check_laws, outcome_unknown, work
from support.runs import until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(900)]

LEASE = 0.8
KILLS = int(os.environ.get("DRAGOMAN_KILLS", "20"))
"""Kills of a service test; `make soak` makes it 200."""


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["support.durable", "dragoman.runs.sql_log", "dragoman.runs.runs", "dragoman.agent"]
    )
    return context


def start(processes: ForkServerContext, *arguments: Any) -> ForkServerProcess:
    process = processes.Process(target=work, args=arguments, daemon=True)
    process.start()
    return process


async def read(runs: Runs, run_id: str) -> list[Event]:
    return [event async for _, event in runs.attach(run_id)]


def check(events: list[Event], acts: list[str], run_id: str) -> None:
    """Checks the log of a run, and what its tools did."""
    messages = check_laws(events, run_id)
    assert isinstance(events[-1], RunFinished), events[-1]
    assert len(messages) == 6
    writes = [name for name in acts if name.startswith("w")]
    assert len(writes) == len(set(writes)), acts
    # Nothing acted of which the log does not know.
    assert {*acts} <= {*begun(events)}
    results = {part.id: part for message in messages for part in message.tool_results}
    for name, part in results.items():
        assert name in outcome_unknown(messages) or (part.result == f"did {name}" and name in acts)


async def is_taken(runs: Runs, run_id: str) -> bool:
    """True if a process drives the run, or it is over."""
    status = await runs.status(run_id)
    return status.driven or status.is_over


async def killed(
    processes: ForkServerContext, url: str, folder: Path, kills: int, seed: int
) -> None:
    """Kills processes at random moments until each run is over."""
    chance, done, number = random.Random(seed), 0, 0
    async with open_log(url) as log, Runs(log, lease_seconds=LEASE, poll_seconds=0.02) as runs:
        while done < kills:
            run_id, acts = f"k{number}", folder / f"acts-{number}"
            number += 1
            await runs.enqueue("a", "Do it.", run_id=run_id, thread_id="t")
            reader = asyncio.create_task(read(runs, run_id))
            for _ in range(chance.randint(1, 3)):
                process = start(processes, url, str(acts), LEASE, 0.02)
                await until(partial(is_taken, runs, run_id))
                await asyncio.sleep(chance.uniform(0.0, 0.5))
                process.kill()
                done += 1
                await asyncio.to_thread(process.join)
                await asyncio.sleep(LEASE)
            process = start(processes, url, str(acts), LEASE, 0.0)
            async with asyncio.timeout(60):
                told = await reader
            process.kill()
            await asyncio.to_thread(process.join)
            assert [*map(event_to_json, told)] == [*map(event_to_json, await read(runs, run_id))]
            check(told, acts.read_text().split() if acts.exists() else [], run_id)


@pytest.mark.slow
async def test_killed_at_random(
    shared_url: str, processes: ForkServerContext, tmp_path: Path
) -> None:
    await killed(processes, shared_url, tmp_path, 3, 7)


@pytest.mark.service
async def test_killed_at_random_many_times(
    shared_url: str, processes: ForkServerContext, tmp_path: Path
) -> None:
    seed = datetime.now(UTC).toordinal()
    await killed(processes, shared_url, tmp_path, KILLS, seed)


async def killed_at_starts(
    processes: ForkServerContext, url: str, folder: Path, times: int
) -> None:
    async with open_log(url) as log, Runs(log, lease_seconds=LEASE, poll_seconds=0.02) as runs:
        for number in range(times):
            run_id, acts = f"s{number}", folder / f"acts-{number}"
            await runs.enqueue("a", "Do it.", run_id=run_id)
            at = ("l1", "w1", "w2", "w3", "l2")[number % 5]
            process = start(processes, url, str(acts), LEASE, 0.0, at)
            await asyncio.to_thread(process.join)
            assert process.exitcode == -signal.SIGKILL
            process = start(processes, url, str(acts), LEASE, 0.0)
            async with asyncio.timeout(60):
                events = await read(runs, run_id)
            process.kill()
            await asyncio.to_thread(process.join)
            acted = acts.read_text().split()
            assert at in acted
            check(events, acted, run_id)
            if at.startswith("w"):
                assert at in outcome_unknown(check_laws(events, run_id))


@pytest.mark.slow
async def test_killed_at_the_start_of_a_tool(
    shared_url: str, processes: ForkServerContext, tmp_path: Path
) -> None:
    await killed_at_starts(processes, shared_url, tmp_path, 2)


@pytest.mark.service
async def test_killed_at_the_start_of_a_tool_many_times(
    shared_url: str, processes: ForkServerContext, tmp_path: Path
) -> None:
    await killed_at_starts(processes, shared_url, tmp_path, KILLS)
