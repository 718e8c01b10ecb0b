"""Many workers on DBOS: all runs end, the limit of each provider holds over all of them, and the runs of a
worker that is killed are soon taken over."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
from collections import Counter
from itertools import groupby, pairwise
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from statistics import median

import pytest

from dragoman.runs import RunLog, Runs, open_log
from support.durable import check_laws
from support.fleet import FLEET_LIMIT, FLEET_QUEUES, fleet_worker

pytestmark = [pytest.mark.anyio, pytest.mark.service, pytest.mark.timeout(900)]

LEASE = 2.0
RUNS = int(os.environ.get("DRAGOMAN_FLEET", "60"))
"""Runs of the fleet; in full 600."""
CALL_SECONDS = 0.3
KILL_SECONDS = 4.0 if RUNS < 100 else 10.0
WORKERS = 3

Drives = dict[tuple[str, str, int], list[float]]
"""When a process began and ended to drive a run: by run, queue and process."""


class Notes:
    """What the workers wrote down."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, killed: dict[int, float]) -> tuple[Drives, Counter[str], set[int]]:
        """The drives, what the tools did, and the processes in which a call is under way. `killed`: when
        processes were."""
        drives: dict[tuple[str, str, int], list[float]] = {}
        acts: Counter[str] = Counter()
        open_calls: Counter[int] = Counter()
        lines = self.path.read_text().split("\n")[:-1] if self.path.exists() else []
        for line in lines:
            kind, run_id, queue, at, pid = line.split(" ")
            if kind == "act":
                acts[run_id] += 1
                continue
            open_calls[int(pid)] += 1 if kind == "begin" else -1
            spell = drives.setdefault((run_id, queue, int(pid)), [float(at), float(at)])
            spell[1] = killed.get(int(pid), 0.0) if kind == "begin" else float(at)
            if kind == "begin" and int(pid) not in killed:
                spell[1] = float("inf")
        return drives, acts, {pid for pid, count in open_calls.items() if count}


def peak(drives: Drives, queue: str) -> int:
    """The most runs of a queue that were driven at a time."""
    changes = []
    for (run_id, of, _), (began, ended) in drives.items():
        if of == queue:
            changes += [(began, 1, run_id), (ended, -1, run_id)]
    # A process whose lease has run out may not know it yet while another goes on with its run.
    most, driven = 0, Counter[str]()
    for _, change, run_id in sorted(changes):
        driven[run_id] += change
        most = max(most, sum(count > 0 for count in driven.values()))
    return most


def overlaps(drives: Drives) -> int:
    """How often a process went on with a run that another had taken over."""
    ordered = sorted((run_id, *spell) for (run_id, _, _), spell in drives.items())
    return sum(one[0] == other[0] and other[1] < one[2] for one, other in pairwise(ordered))


def take_overs(drives: Drives, killed: dict[int, float]) -> list[float]:
    """Seconds from a kill until another process asked the model for the same run."""
    seconds = []
    ordered = sorted(drives.items(), key=lambda item: (item[0][0], item[1][0]))
    for _, spells in groupby(ordered, key=lambda item: item[0][0]):
        of_run = list(spells)
        for ((_, _, pid), _), (_, after) in pairwise(of_run):
            if pid in killed:
                seconds.append(after[0] - killed[pid])
    return seconds


class Fleet:
    def __init__(self, url: str, notes: Notes) -> None:
        self.url, self.notes = url, notes
        self.context: ForkServerContext = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["support.fleet", "dragoman.runs.dbos_engine"])
        self.workers: list[ForkServerProcess] = []
        self.killed: dict[int, float] = {}

    def start(self) -> None:
        arguments = (self.url, str(self.notes.path), LEASE, CALL_SECONDS)
        worker = self.context.Process(target=fleet_worker, args=arguments, daemon=True)
        worker.start()
        self.workers.append(worker)

    async def kill_some(self, times: int | None) -> None:
        """Kills a worker that asks its model, again and again, and starts another."""
        while times is None or len(self.killed) < times:
            await asyncio.sleep(KILL_SECONDS)
            busy = self.notes.read(self.killed)[2]
            for worker in self.workers:
                if worker.pid in busy and worker.pid not in self.killed:
                    worker.kill()
                    self.killed[worker.pid] = time.monotonic()
                    await asyncio.to_thread(worker.join)
                    self.workers.remove(worker)
                    self.start()
                    break

    def stop(self) -> None:
        for worker in self.workers:
            worker.kill()
            worker.join()


async def are_over(log: RunLog) -> bool:
    return not (await log.runs(state="queued", most=1) or await log.runs(state="running", most=1))


async def test_a_fleet_of_workers(
    shared_url: str, tmp_path: Path, record_property: pytest.RecordProperty
) -> None:
    notes = Notes(tmp_path / "notes")
    fleet = Fleet(shared_url, notes)
    names = [f"r{number}" for number in range(RUNS)]
    async with open_log(shared_url) as log, Runs(log, engine="dbos") as runs:
        for number, name in enumerate(names):
            queue = FLEET_QUEUES[number % 2]
            await runs.enqueue("a", f"{queue} {name}", run_id=name, queue=queue)
        began = time.monotonic()
        for _ in range(WORKERS):
            fleet.start()
        killing = asyncio.create_task(fleet.kill_some(1 if RUNS < 100 else None))
        try:
            async with asyncio.timeout(800):
                while not await are_over(log):  # noqa: ASYNC110 - it polls a log
                    await asyncio.sleep(0.2)
        finally:
            killing.cancel()
            await asyncio.wait([killing])
            seconds = time.monotonic() - began
            fleet.stop()
        drives, acts, _ = notes.read(fleet.killed)
        states = Counter([(await log.status([name]))[name].state for name in names])
        for name in names:
            check_laws([event async for _, event in runs.attach(name)], name)
    took = sorted(take_overs(drives, fleet.killed))
    peaks = {queue: peak(drives, queue) for queue in FLEET_QUEUES}
    told = {
        "runs": RUNS,
        "seconds": round(seconds, 1),
        "kills": len(fleet.killed),
        "take-overs": len(took),
        "median": round(median(took), 2) if took else None,
        "longest": round(took[-1], 2) if took else None,
        "overlaps": overlaps(drives),
        "peaks": peaks,
    }
    record_property("fleet", told)
    print(told)
    assert states == {"success": RUNS}
    # No call that is not idempotent has acted twice.
    assert max(acts.values()) == 1
    assert took
    assert took[-1] < 5.0
    assert peaks == dict.fromkeys(FLEET_QUEUES, FLEET_LIMIT)
