"""Durable runs on Temporal: the SDK's own client, worker and core, against a small server of ours, since
Temporal's own server is in no package registry."""

from __future__ import annotations

import ast
import asyncio
import json
import multiprocessing
import re
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from dragoman.errors import RunLogError
from dragoman.event import RunFinished
from dragoman.runs import Limit, Runs, open_log, temporal_engine, temporal_workflow
from dragoman.runs.memory_log import MemoryLog
from dragoman.runs.temporal_engine import TemporalEngine
from dragoman.runs.temporal_workflow import DriveRun
from support.durable import Acts, check_laws, durable_agent
from support.ports import free_port
from support.temporal import FakeTemporal, fake_temporal, work
from support.until import until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

QUEUES = {"default": Limit()}


@pytest.fixture
async def fake(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeTemporal]:
    async with fake_temporal() as (fake, address):
        monkeypatch.setenv("TEMPORAL_ADDRESS", address)
        yield fake


@pytest.fixture
async def log() -> AsyncIterator[MemoryLog]:
    async with MemoryLog() as log:
        yield log


@asynccontextmanager
async def working(work: Awaitable[None]) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait((task,))


async def test_a_run_is_enqueued_once_and_driven(fake: FakeTemporal, log: MemoryLog) -> None:
    acts, run_id = Acts(), "a run/é"
    agents = {"a": durable_agent(acts)[0]}
    async with Runs(log, engine="temporal", agents=agents, poll_seconds=0.02) as runs:
        for _ in range(2):
            assert await runs.enqueue("a", "Do it.", run_id=run_id) == run_id
        assert len(fake.executions) == 1
        async with working(runs.work()):
            result = await runs.result(run_id, timeout=20)
            assert result.output.endswith("Now all of it is done.")
            await until(lambda: fake.results == [False])
            # Once more, after its end: it is looked at, and nothing happens.
            await runs.enqueue("a", "Else.", run_id=run_id)
            await until(lambda: fake.results == [False, False])
        check_laws([event async for _, event in runs.attach(run_id)], run_id)
        assert sorted(acts.done) == ["l1", "l2", "w1", "w2", "w3"]
    # The engine is told ids alone.
    for request in fake.started:
        assert [json.loads(payload.data) for payload in request.input.payloads] == [run_id, 0.2]


async def test_the_program_of_the_documents_runs(fake: FakeTemporal, tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "runs.md").read_text()
    (code,) = re.findall(r"```python\n(async def refund_on_temporal.*?)```", text, re.DOTALL)
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
        assert (await names["refund_on_temporal"]()).endswith("Now all of it is done.")


async def test_a_run_that_only_the_log_knows_is_found(fake: FakeTemporal, log: MemoryLog) -> None:
    agents = {"a": durable_agent(Acts())[0]}
    async with Runs(log, agents=agents) as program:
        await program.enqueue("a", "Do it.", run_id="r")
    async with Runs(log, engine="temporal", agents=agents, poll_seconds=0.02) as runs:
        worker = asyncio.create_task(runs.work())
        assert (await runs.result("r", timeout=20)).output.endswith("done.")
        worker.cancel()


async def test_what_cannot_be_driven_is_tried_again(
    fake: FakeTemporal, log: MemoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(temporal_workflow, "_MOST_CALLS", 2)
    tried: list[str] = []

    async def drive(run_id: str) -> bool:
        tried.append(run_id)
        if len(tried) == 2:
            raise RuntimeError("a bug")
        return len(tried) < 7

    engine = TemporalEngine(log, poll_seconds=0.005)
    async with working(engine.work(drive, queues=QUEUES)):
        await engine.enqueue("r", queue="default")
        await until(lambda: fake.executions["dragoman-r"].is_over and len(tried) == 7)
    assert fake.results == [True, "a bug", True, True, True, True, False]
    # A new execution takes the place of one that has called twice.
    last = fake.executions["dragoman-r"]
    assert last.executions == 3
    # What was done can be replayed.
    await Replayer(workflows=[DriveRun]).replay_workflow(WorkflowHistory("dragoman-r", last.events))


async def test_a_worker_that_stops_hands_over(fake: FakeTemporal, log: MemoryLog) -> None:
    agents = {"a": durable_agent(Acts(seconds=0.3))[0]}
    async with (
        Runs(log, engine="temporal", agents=agents, poll_seconds=0.02) as first,
        Runs(log, engine="temporal", agents=agents, poll_seconds=0.02) as second,
    ):
        await first.enqueue("a", "Do it.", run_id="r")
        async with working(first.work()):
            await until(lambda: "r" in first.driven)
            await asyncio.sleep(0.2)
        assert fake.results == [True]
        assert "r" not in first.driven
        async with working(second.work()):
            await second.result("r", timeout=20)
        assert (await second.status("r")).lost == 0
        events = [event async for _, event in second.attach("r")]
        assert isinstance(events[-1], RunFinished)
        check_laws(events, "r")


async def test_a_workflow_that_is_cancelled_hands_its_run_over(
    fake: FakeTemporal, log: MemoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(temporal_engine, "HEARTBEAT", temporal_engine.HEARTBEAT / 100)
    handed_over: list[str] = []

    async def drive(run_id: str) -> bool:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            handed_over.append(run_id)
            raise
        return False

    fake.cancels = True
    engine = TemporalEngine(log)
    async with working(engine.work(drive, queues=QUEUES)):
        await engine.enqueue("r", queue="default")
        await until(lambda: fake.results == ["cancelled"])
    assert handed_over == ["r"]


async def test_limits_are_temporals(fake: FakeTemporal, log: MemoryLog) -> None:
    running = peak = 0

    async def drive(_run_id: str) -> bool:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(0.1)
        running -= 1
        return False

    engine = TemporalEngine(log, task_queue="acme")
    queues = {"openai": Limit(runs=3, per_second=200.5), "default": Limit()}
    async with working(engine.work(drive, queues=queues)):
        for number in range(12):
            await engine.enqueue(f"r{number}", queue="openai")
        await until(lambda: len(fake.results) == 12)
    assert peak == 3
    rates = {
        poll.task_queue.name: poll.task_queue_metadata.max_tasks_per_second.value
        for poll in fake.polls
        if poll.HasField("task_queue_metadata")
    }
    assert rates["acme-openai"] == 200.5
    assert rates.get("acme-default", 0.0) != 200.5


@pytest.mark.parametrize(
    ("priority", "key"), [(0, 3), (-1, 2), (-2, 1), (-9, 1), (1, 4), (2, 5), (10**9, 5)]
)
async def test_priorities_are_temporals(
    fake: FakeTemporal, log: MemoryLog, priority: int, key: int
) -> None:
    await TemporalEngine(log).enqueue("r", queue="default", priority=priority)
    assert fake.started[-1].priority.priority_key == key


async def drive(_run_id: str) -> bool:
    raise AssertionError("nothing is enqueued")


async def test_a_server_that_is_not_there_is_named(
    log: MemoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv("TEMPORAL_ADDRESS", address)
    async with Runs(log, engine="temporal", agents={"a": durable_agent(Acts())[0]}) as runs:
        with pytest.raises(RunLogError, match=rf"cannot be reached at {address}: .*set TEMPORAL_A"):
            await runs.enqueue("a", "Do it.", run_id="r")
        assert (await runs.status("r")).state == "queued"
        with pytest.raises(RunLogError, match=rf"cannot be reached at {address}"):
            await runs.work()


async def test_refusals_are_told(fake: FakeTemporal, log: MemoryLog) -> None:
    fake.refusal = "Namespace acme is not found."
    engine = TemporalEngine(log)
    with pytest.raises(RunLogError, match="does not take run r: Namespace acme is not found"):
        await engine.enqueue("r", queue="default")
    with pytest.raises(RunLogError, match=r"Temporal ends the worker: .*acme"):
        await engine.work(drive, queues=QUEUES)


def test_the_workflow_imports_nothing_of_dragoman() -> None:
    tree = ast.parse(Path(temporal_workflow.__file__).read_text())
    modules = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {str(module).partition(".")[0] for module in modules} == {
        "__future__",
        "datetime",
        "temporalio",
    }
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import)]


@pytest.fixture
def start() -> Iterator[Any]:
    """Starts `work` in a process, which is killed after the test."""
    context = multiprocessing.get_context("forkserver")
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


@pytest.mark.slow
async def test_another_process_goes_on_after_a_kill(start: Any, tmp_path: Path) -> None:
    url, acts = f"sqlite:///{tmp_path}/runs.db", tmp_path / "acts"
    async with (
        fake_temporal(beat_seconds=1.0) as (_, address),
        open_log(url) as log,
        Runs(log, lease_seconds=1.0, poll_seconds=0.02) as runs,
    ):
        await runs.enqueue("a", "Do it.", run_id="r")
        workers = {
            process.pid: process
            for process in [start(address, url, str(acts), 1.0, 0.03) for _ in range(2)]
        }
        async with asyncio.timeout(30):
            while not (await runs.status("r")).driven:  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0.01)
        driver = int(str((await runs.status("r")).owner).split(":")[1])
        await asyncio.sleep(0.3)
        workers[driver].kill()
        killed_at = monotonic()
        await runs.result("r", timeout=30)
        assert monotonic() - killed_at < 30
        status = await runs.status("r")
        assert (status.state, status.lost) == ("success", 1)
        check_laws([event async for _, event in runs.attach("r")], "r")
        writes = [act for act in acts.read_text().split() if act.startswith("w")]
        assert len(writes) == len({*writes})
