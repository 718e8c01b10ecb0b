"""The engine on DBOS: what the checks of the kit do not ask of every engine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dbos import DBOS

from dragoman.errors import RunLogError, SettingsError
from dragoman.runs import Limit, Runs, open_log
from dragoman.runs.dbos_engine import DbosEngine
from dragoman.runs.dbos_host import DbosHost
from dragoman.runs.memory_log import MemoryLog
from support.model import agent, says

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

SAID: dict[str, Any] = {"poll_seconds": 0.05}


@pytest.fixture
def own_dbos(tmp_path: Path) -> Iterator[str]:
    """A DBOS of the user's."""
    url = f"sqlite:///{tmp_path}/users.db"
    DBOS(config={"name": "users", "system_database_url": url, "log_level": "ERROR"})
    DBOS.launch()
    yield url
    DBOS.destroy()


async def drive_some(runs: Runs, *names: str) -> None:
    """Enqueues runs and waits for them while somebody works."""
    for name in names:
        await runs.enqueue("a", "hi", run_id=name)
    worker = asyncio.create_task(runs.work())
    for name in names:
        assert (await runs.result(name, timeout=20)).output == "A"
    worker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await worker


async def test_dbos_goes_with_its_workers(tmp_path: Path) -> None:
    """A process works, stops, and works again; nothing of DBOS is left between."""
    a, _ = agent(*[says("A")] * 3)
    url = f"sqlite:///{tmp_path}/runs.db"
    async with open_log(url) as log, Runs(log, engine="dbos", agents={"a": a}, **SAID) as runs:
        await drive_some(runs, "one", "two")
        assert DbosHost.url is None
        await drive_some(runs, "three")
    assert oct((tmp_path / "runs.db.dbos").stat().st_mode & 0o777) == "0o600"
    assert await asyncio.to_thread(int, 1) == 1


async def test_the_users_own_dbos_is_used(own_dbos: str, tmp_path: Path) -> None:
    a, _ = agent(*[says("A")] * 2)
    url = f"sqlite:///{tmp_path}/runs.db"
    async with open_log(url) as log, Runs(log, engine="dbos", agents={"a": a}, **SAID) as runs:
        await drive_some(runs, "one")
        # Without a worker it takes the run, finds nobody to drive it, and tries again later.
        await runs.enqueue("a", "hi", run_id="two")
        await asyncio.sleep(0.5)
        assert (await runs.status("two")).state == "queued"
        await drive_some(runs, "two")
    looks = await DBOS.list_workflows_async(name="dragoman.look", status="SUCCESS")
    assert {look.workflow_id.split("/")[2] for look in looks} == {"one", "two"}
    assert all(look.input == {"args": look.input["args"], "kwargs": {}} for look in looks)
    assert not (tmp_path / "runs.db.dbos").exists()


async def test_tools_are_not_in_a_workflow(tmp_path: Path) -> None:
    found: list[str | None] = []

    def deps(_request: Any) -> None:
        found.append(DBOS.workflow_id)

    a, _ = agent(says("A"))
    url = f"sqlite:///{tmp_path}/runs.db"
    async with (
        open_log(url) as log,
        Runs(log, engine="dbos", agents={"a": a}, deps=deps, **SAID) as runs,
    ):
        await drive_some(runs, "one")
    assert found == [None]


async def test_a_run_that_dbos_never_got_is_driven(tmp_path: Path) -> None:
    """Its process died between the log and DBOS."""
    a, _ = agent(says("A"))
    url = f"sqlite:///{tmp_path}/runs.db"
    async with open_log(url) as log:
        async with Runs(log) as runs:
            await runs.enqueue("a", "hi", run_id="lost")
        async with Runs(log, engine="dbos", agents={"a": a}, **SAID) as runs:
            worker = asyncio.create_task(runs.work())
            assert (await runs.result("lost", timeout=20)).output == "A"
            worker.cancel()
            await asyncio.wait([worker])


async def test_one_process_works_on_one_log(tmp_path: Path) -> None:
    a, _ = agent(says("A"))
    one, other = (f"sqlite:///{tmp_path}/{name}.db" for name in ("one", "other"))
    async with (
        open_log(one) as log,
        open_log(other) as other_log,
        Runs(log, engine="dbos", agents={"a": a}, **SAID) as runs,
        Runs(other_log, engine="dbos", agents={"a": a}, **SAID) as others,
    ):
        await runs.enqueue("a", "hi", run_id="one")
        worker = asyncio.create_task(runs.work())
        await runs.result("one", timeout=20)
        with pytest.raises(SettingsError, match="DBOS works on one log"):
            await others.work()
        with pytest.raises(SettingsError, match="one set of queues"):
            await runs.work(queues={"more": Limit()})
        worker.cancel()
        await asyncio.wait([worker])


async def test_what_dbos_cannot_use_is_refused(tmp_path: Path) -> None:
    async with MemoryLog() as log:
        with pytest.raises(SettingsError, match="needs a log that other processes can open"):
            Runs(log, engine="dbos")
    async with open_log(f"sqlite:///{tmp_path}/runs.db") as log:
        nowhere = f"sqlite:///{tmp_path}/no/such/folder/x.db"
        async with Runs(log, engine=DbosEngine(log, system_database_url=nowhere)) as runs:
            with pytest.raises(RunLogError, match="DBOS"):
                await runs.enqueue("a", "hi", run_id="one")
            # The log has it: a worker finds it there.
            assert (await runs.status("one")).state == "queued"
