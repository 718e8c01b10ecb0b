"""Durable runs on Restate: its real server, and processes that are killed."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import re
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

import pytest
from aiohttp import ClientError, ClientSession

from dragoman.errors import RunLogError, SettingsError
from dragoman.event import Event, RunFinished
from dragoman.runs import Limit, RunLog, Runs, open_log, restate_engine
from dragoman.runs.memory_log import MemoryLog
from dragoman.runs.restate_engine import RestateEngine
from support.durable import Acts, begun, check_laws, durable_agent
from support.ports import free_port
from support.restate import Restate, restate, work
from support.until import until

pytestmark = [pytest.mark.anyio, pytest.mark.service, pytest.mark.timeout(120)]

LEASE = 1.0
KILLS = int(os.environ.get("DRAGOMAN_KILLS", "20"))
"""See `test_durable_processes.py`; a tenth of the runs here, each with up to three kills."""
Drive = Callable[[str], Awaitable[bool]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restate]:
    with restate(tmp_path_factory.mktemp("restate")) as server:
        yield server


@pytest.fixture
def settings(server: Restate, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Variables for the workers of a test, which have an address of their own."""
    settings = server.settings()
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    return settings


@pytest.fixture
def queue() -> str:
    """A queue of its own for each test."""
    return f"q-{uuid4().hex[:8]}"


Start = Callable[..., ForkServerProcess]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts `work` in a process, which is killed after the test."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["support.restate", "dragoman.runs.sql_log", "dragoman.runs.restate_engine"]
    )
    started: list[ForkServerProcess] = []

    def start(*arguments: Any) -> ForkServerProcess:
        process = context.Process(target=work, args=arguments, daemon=True)
        process.start()
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.join()


@asynccontextmanager
async def working(work: Awaitable[None]) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait((task,))


def name() -> str:
    return f"a run/é {uuid4().hex}"


async def read(runs: Runs, run_id: str) -> list[Event]:
    return [event async for _, event in runs.attach(run_id)]


async def test_the_program_of_the_documents_runs(settings: Any, tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "runs.md").read_text()
    (code,) = re.findall(r"```python\n(async def refund_on_restate.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {
        "asyncio": asyncio,
        "open_log": open_log,
        "Runs": Runs,
        "Limit": Limit,
        "look_up": None,
        "refund": None,
        "Agent": lambda tools: durable_agent(Acts())[0],
    }
    exec(code.replace("refunds.db", f"{tmp_path}/refunds.db"), names)
    async with asyncio.timeout(30):
        assert (await names["refund_on_restate"]()).endswith("Now all of it is done.")


def invocations(server: Restate, queue: str) -> list[str]:
    """The states of what Restate knows of a queue."""
    sql = f"select status from sys_invocation where target = 'dragoman-{queue}/drive'"
    return [row["status"] for row in server.query(sql)]


async def test_a_run_is_enqueued_once_and_driven(
    server: Restate, settings: Any, queue: str
) -> None:
    acts, run_id = Acts(), name()
    async with (
        MemoryLog() as log,
        Runs(
            log, engine="restate", agents={"a": durable_agent(acts)[0]}, poll_seconds=0.02
        ) as runs,
    ):
        # Restate knows of no worker yet: the first one finds the run in the log.
        assert await runs.enqueue("a", "Do it.", run_id=run_id, queue=queue) == run_id
        assert invocations(server, queue) == []
        async with working(runs.work(queues={queue: Limit()})):
            result = await runs.result(run_id, timeout=20)
            assert result.output.endswith("Now all of it is done.")
            for _ in range(3):
                assert await runs.enqueue("a", "Else.", run_id=run_id, queue=queue) == run_id
            check_laws(await read(runs, run_id), run_id)
            assert sorted(acts.done) == ["l1", "l2", "w1", "w2", "w3"]
            more = [await runs.enqueue("a", "Do it.", queue=queue) for _ in range(5)]
            for run in more:
                await runs.result(run, timeout=20)
            await until(lambda: invocations(server, queue) == ["completed"] * 6)


async def owner(runs: Runs, run_id: str, before: int = 0) -> int:
    """The process that drives a run, after `before`; `before`, if the run has ended under it."""
    async with asyncio.timeout(90):
        while True:
            status = await runs.status(run_id)
            if status.state not in ("queued", "running"):
                return before
            if status.driven and (process := int(str(status.owner).split(":")[1])) != before:
                return process
            await asyncio.sleep(0.01)


def check(events: list[Event], acts: list[str], run_id: str) -> None:
    assert isinstance(events[-1], RunFinished), events[-1]
    assert len(check_laws(events, run_id)) == 6
    writes = [name for name in acts if name.startswith("w")]
    assert len(writes) == len(set(writes)), acts
    assert {*acts} <= {*begun(events)}


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"])
async def test_another_process_goes_on(
    how: signal.Signals,
    settings: Any,
    queue: str,
    shared_url: str,
    start: Start,
    tmp_path: Path,
) -> None:
    workers: dict[int | None, ForkServerProcess] = {}
    for _ in range(2):
        process = start(settings, queue, shared_url, str(tmp_path / "acts"), LEASE, 0.03)
        workers[process.pid] = process
    async with (
        open_log(shared_url) as log,
        Runs(log, engine="restate", lease_seconds=LEASE, poll_seconds=0.02) as runs,
    ):
        run_id = await runs.enqueue("a", "Do it.", run_id=name(), queue=queue)
        reader = asyncio.create_task(read(runs, run_id))
        driver = await owner(runs, run_id)
        await asyncio.sleep(0.3)
        assert workers[driver].pid == driver
        stopped_at = monotonic()
        workers[driver]._popen._send_signal(how)
        await asyncio.to_thread(workers[driver].join, 20)
        # The SDK has left SIGTERM to the worker.
        assert workers[driver].exitcode == (0 if how is signal.SIGTERM else -how)
        assert await owner(runs, run_id, driver) in workers
        if how is signal.SIGKILL:
            assert monotonic() - stopped_at < LEASE + 4.0
        async with asyncio.timeout(30):
            events = await reader
        check(events, (tmp_path / "acts").read_text().split(), run_id)
        # A run that is handed over is not held against the run.
        assert (await runs.status(run_id)).lost == (1 if how is signal.SIGKILL else 0)


@pytest.mark.timeout(300)
async def test_the_command_line_works_for_restate(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, acts = f"sqlite:///{tmp_path}/runs.db", tmp_path / "acts"
    (tmp_path / "app.py").write_text(
        "from pathlib import Path\n"
        "from support.durable import Acts, durable_agent\n"
        f"a, _ = durable_agent(Acts(Path({str(acts)!r}), 0.1), seconds=0.05)\n"
    )
    root = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", f"{root / 'src'}:{root / 'tests'}")
    options = ("--log", url, "--engine", "restate", "--runs", "2", "-C", str(tmp_path))
    command = (sys.executable, "-m", "dragoman", "worker", "app:a", *options)
    async with open_log(url) as log, Runs(log, engine="restate", poll_seconds=0.02) as runs:
        run_id = await runs.enqueue("a", "Do it.", run_id=name())
        first = await asyncio.create_subprocess_exec(*command)
        assert await owner(runs, run_id) == first.pid
        # The SDK would take SIGTERM over.
        first.terminate()
        assert await asyncio.wait_for(first.wait(), 60) == 0
        second = await asyncio.create_subprocess_exec(*command)
        await runs.result(run_id, timeout=90)
        assert (await runs.status(run_id)).lost == 0
        second.terminate()
        assert await asyncio.wait_for(second.wait(), 60) == 0
        check(await read(runs, run_id), acts.read_text().split(), run_id)
    monkeypatch.setenv("RESTATE_ADMIN_URL", f"http://127.0.0.1:{free_port()}")
    third = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    _, error = await asyncio.wait_for(third.communicate(), 60)
    assert (third.returncode, b"Restate cannot be reached" in error) == (3, True)
    assert len(error.strip().splitlines()) == 1, error


async def test_workers_that_share_an_address_share_the_runs(
    settings: Any, queue: str, shared_url: str, start: Start, tmp_path: Path
) -> None:
    workers = [
        start(settings, queue, shared_url, str(tmp_path / "acts"), LEASE, 0.02) for _ in range(2)
    ]
    async with (
        open_log(shared_url) as log,
        Runs(log, engine="restate", lease_seconds=LEASE, poll_seconds=0.02) as runs,
    ):
        ids = [await runs.enqueue("a", "Do it.", queue=queue) for _ in range(30)]
        owners = [asyncio.create_task(owner(runs, run_id)) for run_id in ids]
        for run_id in ids:
            await runs.result(run_id, timeout=30)
        assert {await task for task in owners} == {worker.pid for worker in workers}


async def test_a_run_waits_for_a_worker_that_has_its_agent(
    settings: Any, queue: str, shared_url: str, start: Start, tmp_path: Path
) -> None:
    arguments = (settings, queue, shared_url, str(tmp_path / "acts"), LEASE, 0.0)
    start(*arguments, "b")
    async with (
        open_log(shared_url) as log,
        Runs(log, engine="restate", lease_seconds=LEASE, poll_seconds=0.02) as runs,
    ):
        other = await runs.enqueue("b", "Do it.", queue=queue)
        run_id = await runs.enqueue("a", "Do it.", queue=queue)
        await runs.result(other, timeout=30)
        await asyncio.sleep(1)
        assert (await runs.status(run_id)).state == "queued"
        start(*arguments)
        assert (await runs.result(run_id, timeout=30)).output.endswith("done.")


async def drive_all(
    server: Restate, queue: str, drive: Drive, limit: Limit, runs: int, log: RunLog
) -> None:
    """Has runs driven by a function, until Restate knows that all of them are over."""
    engine = RestateEngine(log, poll_seconds=0.02)
    try:
        async with working(engine.work(drive, queues={queue: limit})):
            await until(lambda: server.knows(f"dragoman-{queue}"))
            for number in range(runs):
                await engine.enqueue(f"r{number}", queue=queue)
            await until(lambda: invocations(server, queue) == ["completed"] * runs)
    finally:
        await engine.close()


async def test_a_limit_holds(server: Restate, settings: Any, queue: str) -> None:
    running, peak, done = 0, 0, list[str]()

    async def drive(run_id: str) -> bool:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(0.1)
        running -= 1
        done.append(run_id)
        return False

    async with MemoryLog() as log:
        await drive_all(server, queue, drive, Limit(runs=3), 20, log)
    assert peak == 3
    assert sorted(done) == sorted(f"r{number}" for number in range(20))


async def test_a_rate_holds(server: Restate, settings: Any, queue: str) -> None:
    begun_at: list[float] = []

    async def drive(_run_id: str) -> bool:
        begun_at.append(monotonic())
        return False

    async with MemoryLog() as log:
        await drive_all(server, queue, drive, Limit(per_second=10), 10, log)
    # Ten runs are begun in nine pauses of 0.1 s, however late this machine is at each.
    assert begun_at[-1] - begun_at[0] > 0.85, begun_at


async def test_a_run_that_is_longer_than_a_call_goes_on(
    server: Restate, settings: Any, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restate_engine, "_CALL_SECONDS", 0.2)
    monkeypatch.setattr(restate_engine, "_MOST_CALLS", 2)
    begun, over = list[str](), list[str]()

    async def drive(run_id: str) -> bool:
        if run_id not in over:
            begun.append(run_id)
            await asyncio.sleep(3)
            over.append(run_id)
        return False

    engine = RestateEngine(log := MemoryLog(), poll_seconds=0.02)
    async with log, working(engine.work(drive, queues={queue: Limit()})):
        await until(lambda: server.knows(f"dragoman-{queue}"))
        await engine.enqueue("r", queue=queue)
        await until(lambda: "completed" in invocations(server, queue))
        await until(lambda: {*invocations(server, queue)} == {"completed"})
        # One invocation takes the place of another, so that no journal grows without end.
        assert 2 <= len(invocations(server, queue)) <= 8
        assert begun == ["r"]
    await engine.close()


async def test_all_queues_of_a_worker_hand_over_at_once(
    server: Restate, settings: Any, queue: str
) -> None:
    driven: list[str] = []

    async def drive(run_id: str) -> bool:
        driven.append(run_id)
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            # Tools that are at work have some time to end.
            await asyncio.sleep(1)
            driven.remove(run_id)
            raise
        return False

    queues = {f"{queue}-{number}": Limit() for number in range(3)}
    engine = RestateEngine(log := MemoryLog(), poll_seconds=0.02)
    async with log:
        async with working(engine.work(drive, queues=queues)) as worker:
            await until(lambda: server.knows(f"dragoman-{queue}-0"))
            for number, name in enumerate(queues):
                await engine.enqueue(f"r{number}", queue=name)
            await until(lambda: len(driven) == 3)
            stopped_at = monotonic()
            worker.cancel()
            await asyncio.wait((worker,))
        assert driven == []
        assert monotonic() - stopped_at < 2.5
    await engine.close()


@pytest.mark.parametrize("forgets", [False, True])
async def test_a_run_outlives_a_server_that_is_killed(
    server: Restate, settings: Any, queue: str, forgets: bool
) -> None:
    acts, run_id = Acts(seconds=0.3), name()
    async with (
        MemoryLog() as log,
        Runs(
            log, engine="restate", agents={"a": durable_agent(acts)[0]}, poll_seconds=0.02
        ) as runs,
        working(runs.work(queues={queue: Limit()})),
    ):
        await until(lambda: server.knows(f"dragoman-{queue}"))
        await runs.enqueue("a", "Do it.", run_id=run_id, queue=queue)
        await owner(runs, run_id)
        server.kill()
        with pytest.raises(RunLogError, match="Restate cannot be reached at http://127"):
            await runs.enqueue("a", "Do it.", run_id="not-lost", queue=queue)
        # The run that is driven does not need the engine.
        await runs.result(run_id, timeout=20)
        if forgets:
            server.forget()
        await asyncio.to_thread(server.start)
        await runs.result("not-lost", timeout=30)
        assert sorted(acts.done) == sorted(["l1", "l2", "w1", "w2", "w3"] * 2)


async def test_workers_at_one_address_have_the_same_queues(
    server: Restate, settings: Any, queue: str
) -> None:
    async def drive(_run_id: str) -> bool:
        return False

    engine = RestateEngine(log := MemoryLog(), poll_seconds=0.02)
    async with log, working(engine.work(drive, queues={queue: Limit()})):
        await until(lambda: server.knows(f"dragoman-{queue}"))
        other = RestateEngine(log)
        with pytest.raises(SettingsError, match="workers at one address have the same queues"):
            await other.work(drive, queues={queue: Limit(), "other": Limit()})
        await other.close()
        assert server.knows(f"dragoman-{queue}")
        assert not server.knows("dragoman-other")
    await engine.close()


async def answer_of(url: str, path: str, body: bytes, **headers: str) -> int:
    async with (
        ClientSession() as client,
        client.post(f"{url}/{path}", data=body, headers=headers) as answer,
    ):
        return answer.status


async def test_the_worker_takes_no_calls_but_those_of_restate(
    server: Restate, settings: Any, queue: str
) -> None:
    driven: list[str] = []

    async def drive(run_id: str) -> bool:
        driven.append(run_id)
        return False

    # A key of somebody's: Restate itself signs nothing here, so its calls are refused, too.
    key = "publickeyv1_w7YHemBctH5Ck2nQRQ47iBBqhNHy4FV7t2Usbye2A6f"
    engine = RestateEngine(log := MemoryLog(), poll_seconds=0.02, identity_keys=[key])
    async with log, working(engine.work(drive, queues={queue: Limit()})) as worker:
        await asyncio.sleep(0.5)
        url, path = settings["RESTATE_WORKER_URL"], f"invoke/dragoman-{queue}/drive"
        assert await answer_of(url, path, b"x") == 401
        assert await answer_of(url, "discover", b"") == 401
        worker.cancel()
        await asyncio.wait((worker,))
    engine = RestateEngine(log := MemoryLog(), poll_seconds=0.02)
    async with log, working(engine.work(drive, queues={queue: Limit()})):
        await until(lambda: server.knows(f"dragoman-{queue}"))
        kind = "application/vnd.restate.invocation.v5"
        for body in (b"", b"\0" * 64, b"\xff" * 4096, b'"r"'):
            with suppress(ClientError):
                await answer_of(url, path, body, **{"content-type": kind})
            await answer_of(url, path, body)
            assert await answer_of(url, "invoke/dragoman-other/drive", body) == 404
            assert await answer_of(url, "else", body) == 404
        assert driven == []
        await engine.enqueue("r", queue=queue)
        await until(lambda: driven == ["r"])
    await engine.close()


@pytest.mark.timeout(900)
async def test_killed_at_random(
    settings: Any, queue: str, shared_url: str, start: Start, tmp_path: Path
) -> None:
    """Two workers are always there; the one that drives is killed, and another one begins."""
    chance = random.Random(datetime.now(UTC).toordinal())
    arguments = (settings, queue, shared_url)
    async with (
        open_log(shared_url) as log,
        Runs(log, engine="restate", lease_seconds=LEASE, poll_seconds=0.02) as runs,
    ):
        for number in range(max(1, KILLS // 10)):
            run_id, acts = name(), tmp_path / f"acts-{number}"
            workers = {
                process.pid: process
                for process in [start(*arguments, str(acts), LEASE, 0.02) for _ in range(2)]
            }
            await runs.enqueue("a", "Do it.", run_id=run_id, queue=queue)
            reader = asyncio.create_task(read(runs, run_id))
            driver = 0
            for _ in range(chance.randint(1, 3)):
                before, driver = driver, await owner(runs, run_id, driver)
                await asyncio.sleep(chance.uniform(0.0, 0.6))
                if reader.done() or driver == before:
                    break
                workers[driver].kill()
                process = start(*arguments, str(acts), LEASE, 0.02)
                workers[process.pid] = process
            async with asyncio.timeout(60):
                check(await reader, acts.read_text().split(), run_id)
            for process in workers.values():
                process.kill()
