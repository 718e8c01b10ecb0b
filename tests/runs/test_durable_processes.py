"""Durable runs whose processes are killed: at random moments, at the start of a tool, and in the
middle of a commit.

`DRAGOMAN_KILLS` says how many are killed on each database (20; `make soak`: 200), and `DRAGOMAN_SEED`
repeats what a run of these tests has done.
"""

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
from statistics import median
from time import monotonic
from typing import Literal

import msgspec
import pytest

from dragoman.event import Event, event_to_json
from dragoman.runs import Runs, open_log
from support.runs import until
from support.scenes import ASKED, SCENES, Scene, World, check_run, find_repeated, work_in

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(3600)]

LEASE = 1.5
LOADED = [
    "support.scenes",
    "dragoman.runs.sql_log",
    "dragoman.tools.schema",
    "dragoman.transport.aiohttp",
    "dragoman.wires.openai_chat",
    "dragoman.wires.openai_chat.decode",
    "alembic.command",
    "psycopg",
    "pydantic.type_adapter",
]
"""Modules that a process would load while it holds its first lease, which takes a second under load."""
KILLS = int(os.environ.get("DRAGOMAN_KILLS", "20"))
SEED = int(os.environ.get("DRAGOMAN_SEED", datetime.now(UTC).toordinal()))
AT_ONCE = 3
"""Runs that go on at the same time, each with processes of its own."""
Moment = Literal["at random", "at a tool's start", "in a commit"]
ROWS: tuple[tuple[str, Moment], ...] = (
    ("plain", "at random"),
    ("with a memory", "at random"),
    ("agents in tools", "at random"),
    ("hand-off", "at random"),
    ("approved call", "at random"),
    ("plain", "at a tool's start"),
    ("agents in tools", "at a tool's start"),
    ("hand-off", "at a tool's start"),
    ("approved call", "at a tool's start"),
    ("plain", "in a commit"),
    ("with a memory", "in a commit"),
)


class Row(msgspec.Struct):
    """What came of the runs of one scene."""

    scene: str
    moment: Moment
    runs: int = 0
    kills: int = 0
    inconsistent: list[str] = []
    run_twice: list[str] = []
    asked_again: int = 0
    stalls: int = 0
    """Leases that were lost although nobody killed the process: it stood still for too long."""
    seconds: list[float] = []
    """From the last kill to the end of each run."""

    def __str__(self) -> str:
        times = "-"
        if self.seconds:
            times = f"{median(self.seconds):.1f} / {max(self.seconds):.1f} s"
        return (
            f"| {self.scene}, {self.moment} | {self.runs} | {self.kills} | {len(self.inconsistent)} | "
            f"{len(self.run_twice)} | {self.asked_again} | {self.stalls} | {times} |"
        )


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    return context


def start(processes: ForkServerContext, scene: str, world: World) -> ForkServerProcess:
    process = processes.Process(target=work_in, args=(scene, world, LEASE), daemon=True)
    process.start()
    return process


async def end(process: ForkServerProcess) -> int | None:
    process.kill()
    await asyncio.to_thread(process.join)
    return process.exitcode


async def read(runs: Runs, run_id: str) -> list[Event]:
    return [event async for _, event in runs.attach(run_id)]


async def stored(runs: Runs, run_id: str) -> list[Event]:
    """What the log holds, read past the memory of this process."""
    events: list[Event] = []
    while page := await runs._log.read(run_id, len(events)):
        events += page
    return events


async def is_taken(runs: Runs, run_id: str) -> bool:
    """True if a process drives the run, or it is over."""
    status = await runs.status(run_id)
    return status.driven or status.is_over


async def is_dead(process: ForkServerProcess, runs: Runs, run_id: str) -> bool:
    """True if a process is dead, or its run over."""
    return not process.is_alive() or (await runs.status(run_id)).is_over


def read_lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


class Killer:
    """Kills the processes of runs."""

    def __init__(self, processes: ForkServerContext, runs: Runs, seed: int) -> None:
        self.processes, self.runs, self.chance = processes, runs, random.Random(seed)
        self.killed_at = 0.0
        """When the last process died, by the monotonic clock."""

    async def kill_at_random(self, scene: Scene, world: World) -> int:
        """Kills one to three processes, while the run is not over. Returns how many."""
        count = self.chance.randint(1, 3)
        for number in range(count):
            process = start(self.processes, scene.name, world)
            await until(partial(is_taken, self.runs, world.run_id))
            await asyncio.sleep(self.chance.uniform(0.0, 0.1 * scene.calls))
            await end(process)
            self.killed_at = monotonic()
            if (await self.runs.status(world.run_id)).is_over:
                return number
            # Until then the dead process has the run.
            await asyncio.sleep(LEASE)
        return count

    async def kill_itself(self, scene: Scene, world: World) -> int:
        """Lets a process kill itself. Returns 1 if it has done so."""
        process = start(self.processes, scene.name, world)
        await until(partial(is_dead, process, self.runs, world.run_id))
        was_alive, self.killed_at = process.is_alive(), monotonic()
        assert await end(process) == -signal.SIGKILL
        return not was_alive

    async def kill(self, scene: Scene, moment: Moment, world: World) -> int:
        """Kills processes of a run. Returns how many."""
        if moment == "at random":
            return await self.kill_at_random(scene, world)
        if moment == "in a commit":
            world = msgspec.structs.replace(world, kills_in=self.chance.randint(1, 8))
        else:
            at = self.chance.choice(scene.tools)
            world = msgspec.structs.replace(world, kills_at=at, seconds=0.0)
        return await self.kill_itself(scene, world)

    async def run(self, row: Row, world: World) -> None:
        """Has a run whose processes are killed until another one ends it, and notes what came of
        it."""
        scene, runs, run_id = SCENES[row.scene], self.runs, world.run_id
        await runs.enqueue("a", await scene.request(world), queue=run_id)
        reader = asyncio.create_task(read(runs, run_id))
        kills = await self.kill(scene, row.moment, world)
        row.kills, row.runs = row.kills + kills, row.runs + 1
        process = start(self.processes, scene.name, msgspec.structs.replace(world, seconds=0.0))
        path = Path(world.acts)
        try:
            async with asyncio.timeout(60):
                told = await reader
            row.seconds.append(monotonic() - self.killed_at)
            lines = read_lines(path)
            acts = [line for line in lines if line != ASKED]
            row.asked_again += len(lines) - len(acts) - scene.calls
            row.run_twice += find_repeated(acts)
            row.stalls += max(0, (await runs.status(run_id)).lost - kills)
            log = await stored(runs, run_id)
            assert [*map(event_to_json, told)] == [*map(event_to_json, log)], "other bytes"
            await check_run(scene, world, log, acts)
        except (AssertionError, TimeoutError) as error:
            row.inconsistent.append(f"{run_id}: {type(error).__name__} {error!s:.300}")
        finally:
            await end(process)


async def soak(
    processes: ForkServerContext, url: str, folder: Path, kills: int, rows: int = len(ROWS)
) -> None:
    """Kills processes of each scene, and checks that nothing but time and tokens was lost."""
    memory = url.replace("/runs.db", "/memory.db")
    table = [Row(*row) for row in ROWS[:rows]]
    print(f"\nseed {SEED} (DRAGOMAN_SEED), {url.partition(':')[0]}, at least {kills} kills")
    print(
        "| scene, moment | runs | kills | inconsistent | run twice | asked again | stalls | kill→end |"
    )
    async with open_log(url) as log, Runs(log, lease_seconds=LEASE, poll_seconds=0.02) as runs:

        async def fill(row: Row) -> None:
            killer = Killer(processes, runs, SEED + table.index(row))
            wanted = -(-kills // len(table))
            while row.kills < wanted:
                run_id = f"{table.index(row)}-{row.runs}"
                await killer.run(row, World(url, memory, str(folder / run_id), run_id, 0.03))

        waiting = iter(table)

        async def work() -> None:
            for row in waiting:
                await fill(row)
                print(row, flush=True)

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(work())
    faults = [fault for row in table for fault in (*row.inconsistent, *row.run_twice)]
    assert not faults, "\n".join(faults)
    assert sum(row.kills for row in table) >= kills


@pytest.mark.slow
async def test_killed_processes(
    shared_url: str, processes: ForkServerContext, tmp_path: Path
) -> None:
    await soak(processes, shared_url, tmp_path, 4, rows=3)


@pytest.mark.service
async def test_killed_processes_of_every_scene(
    shared_url: str, processes: ForkServerContext, tmp_path: Path
) -> None:
    await soak(processes, shared_url, tmp_path, KILLS)
