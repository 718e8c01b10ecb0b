"""Processes of `dragoman worker`: they hand runs over when they are stopped, and take over those of
one that was killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from dragoman.event import Event, RunFinished
from dragoman.runs import RunLog, Runs, open_log
from support.cli import SRC
from support.durable import begun, check_laws, outcome_unknown
from support.runs import until

pytestmark = [pytest.mark.anyio, pytest.mark.service, pytest.mark.timeout(240)]

TESTS = Path(__file__).parents[1]
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(shared_url: str, tmp_path: Path) -> Iterator[Start]:
    """Starts a worker of the log. `seconds`: of each of its tools and pieces of words."""
    workers: list[subprocess.Popen[bytes]] = []

    def start_one(*options: str, seconds: float = 0.0) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([SRC, str(TESTS)]),
            "DRAGOMAN_LOG": shared_url,
            "DRAGOMAN_TEST_ACTS": str(tmp_path / "acts"),
            "DRAGOMAN_TEST_SECONDS": str(seconds),
        }
        command = [sys.executable, "-m", "dragoman", "worker", "support.worker_app:support"]
        worker = subprocess.Popen([*command, *options], env=environment, stderr=subprocess.PIPE)
        workers.append(worker)
        return worker

    yield start_one
    for worker in workers:
        worker.kill()
        worker.communicate()


async def has_acted(acts: Path, count: int) -> bool:
    return len(read_acts(acts)) >= count


def read_acts(acts: Path) -> list[str]:
    return acts.read_text().split() if acts.exists() else []


async def has_owner(log: RunLog, run_id: str, token: int) -> bool:
    """True if so many processes have begun the run."""
    return (await log.status([run_id]))[run_id].token >= token


async def are_over(log: RunLog, run_ids: Sequence[str], count: int) -> bool:
    statuses = await log.status(run_ids)
    return sum(status.is_over for status in statuses.values()) >= count


async def read(runs: Runs, run_id: str) -> list[Event]:
    return [event async for _, event in runs.attach(run_id)]


async def stop(worker: subprocess.Popen[bytes], *, times: int = 1) -> str:
    """Sends a worker signals, and waits for its end. Returns what it printed."""
    for _ in range(times):
        worker.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.2)
    _, err = await asyncio.to_thread(worker.communicate, timeout=30)
    assert worker.returncode == 0, err
    return err.decode()


def check_acts(acts: Path, events: Sequence[Event]) -> None:
    """No tool that may not be run again was, and none of which the log does not know."""
    done = read_acts(acts)
    writes = [name for name in done if name.startswith("w")]
    assert len(writes) == len({*writes}), done
    assert {*done} <= {*begun(events)}


async def test_a_run_ends_over_a_stopped_and_a_killed_worker(
    shared_url: str, start: Start, tmp_path: Path
) -> None:
    acts = tmp_path / "acts"
    options = ["support.worker_app:careful", "--lease", "2"]
    workers = {
        worker.pid: worker
        for worker in (start(*options, "--limit", f"q{n}=1", seconds=0.4) for n in range(3))
    }
    async with open_log(shared_url) as log, Runs(log, poll_seconds=0.02) as runs:

        async def find_owner(token: int) -> subprocess.Popen[bytes]:
            """Returns the process that is the run's owner with this number, when it is."""
            await until(partial(has_owner, log, "r", token))
            owner = (await runs.status("r")).owner or ""
            return workers[int(owner.split(":")[1])]

        # Each has a queue of its own, so that all of them are known to have started.
        ready = [await runs.enqueue("careful", "Send it.", queue=f"q{n}") for n in range(3)]
        await until(partial(are_over, log, ready, 3))
        await runs.enqueue("support", "Do it.", run_id="r")
        reader = asyncio.create_task(read(runs, "r"))
        await until(partial(has_acted, acts, 1))
        assert await stop(await find_owner(1)) == ""
        # Its tools came to their ends first, and no lease expired.
        assert sorted(read_acts(acts)) == ["l1", "w1", "w2"]
        second = await find_owner(2)
        assert (await runs.status("r")).lost == 0
        await until(partial(has_acted, acts, 4))
        second.kill()
        killed_at = time.monotonic()
        await find_owner(3)
        taken_after = time.monotonic() - killed_at
        events = await reader
        assert (await runs.status("r")).lost == 1
    print(f"taken over {taken_after:.2f} s after the kill")
    assert taken_after < 5
    assert isinstance(events[-1], RunFinished)
    assert {*outcome_unknown(check_laws(events, "r"))} <= {"w3"}
    check_acts(acts, events)


async def test_a_second_signal_does_not_wait_for_tools(
    shared_url: str, start: Start, tmp_path: Path
) -> None:
    acts = tmp_path / "acts"
    async with open_log(shared_url) as log, Runs(log, poll_seconds=0.02) as runs:
        await runs.enqueue("support", "Do it.", run_id="r")
        first = start("--grace", "600", seconds=1.5)
        second = start("--limit", "default=0", "--limit", "other=1")
        await until(partial(has_acted, acts, 3))
        began = time.monotonic()
        await stop(first, times=2)
        assert time.monotonic() - began < 20
        status = await runs.status("r")
        assert (status.state, status.driven, status.lost) == ("running", False, 0)
        # The other one has no such queue, so it is still there to be driven.
        await stop(second)
        start(seconds=0.0)
        events = await read(runs, "r")
    assert sorted(outcome_unknown(check_laws(events, "r"))) == ["w1", "w2"]
    check_acts(acts, events)


async def test_three_workers_end_all_runs_though_one_is_killed(
    shared_url: str, start: Start
) -> None:
    count = int(os.environ.get("DRAGOMAN_RUNS", "30"))
    async with open_log(shared_url) as log, Runs(log, poll_seconds=0.05) as runs:
        ids = [await runs.enqueue("support", "Do it.", run_id=f"r{n}") for n in range(count)]
        workers = [start("--lease", "2", "--runs", "6", seconds=0.01) for _ in range(3)]
        await until(partial(are_over, log, ids, 1))
        began = time.monotonic()
        await until(partial(are_over, log, ids, count // 3))
        workers[0].kill()
        await until(partial(are_over, log, ids, count))
        print(f"{count} runs in {time.monotonic() - began:.1f} s")
        for run_id in ids:
            events = await read(runs, run_id)
            assert isinstance(events[-1], RunFinished), events[-1]
            check_laws(events, run_id)
        statuses = (await log.status(ids)).values()
        owners = Counter(status.owner for status in statuses)
        print(f"ended by each: {[*owners.values()]}, lost: {sum(run.lost for run in statuses)}")
        for worker in workers[1:]:
            await stop(worker)
