"""Each check of an engine fails where its behaviour is not there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dragoman import testing
from dragoman.errors import RunLogError
from dragoman.runs import Limit, RunLog
from dragoman.runs.engines import Drive, LogEngine
from dragoman.testing import CheckFailed

pytestmark = pytest.mark.timeout(60)


class Quick(LogEngine):
    def __init__(self, log: RunLog) -> None:
        super().__init__(log, poll_seconds=0.02)


def driving(change: Callable[[RunLog, Drive], Drive]) -> type[Quick]:
    """An engine whose `drive` is another."""

    class Mutant(Quick):
        async def work(self, drive: Drive, *, queues: Mapping[str, Limit]) -> None:
            await super().work(change(self._log, drive), queues=queues)

    return Mutant


class Forgetful(Quick):
    """It knows its runs by their names, and refuses those that it knows."""

    async def enqueue(self, run_id: str, *, queue: str, priority: int = 0) -> None:
        self.known: set[str] = getattr(self, "known", set())
        if run_id in self.known:
            raise RunLogError("there is such a run")
        self.known.add(run_id)


class Listing(Quick):
    """It sees only what `runs` lets through."""

    def __init__(self, log: RunLog) -> None:
        super().__init__(log)
        self._log: Any = _View(log)


class _View:
    def __init__(self, log: RunLog) -> None:
        self.log = log

    async def runs(self, *, state: str, **how: Any) -> list[Any]:
        return [] if state == "running" else await self.log.runs(state=state, **how)  # type: ignore[arg-type]


class Newest(Listing):
    def __init__(self, log: RunLog) -> None:
        super().__init__(log)

        async def runs(**how: Any) -> list[Any]:
            return [*reversed(await log.runs(**how))]

        self._log.runs = runs


class Unlimited(Quick):
    async def work(self, drive: Drive, *, queues: Mapping[str, Limit]) -> None:
        await super().work(drive, queues=dict.fromkeys(queues, Limit()))


class Alone(Quick):
    """It has one worker alone."""

    works = False

    async def work(self, drive: Drive, *, queues: Mapping[str, Limit]) -> None:
        if Alone.works:
            raise RunLogError("somebody works")
        Alone.works = True
        try:
            await super().work(drive, queues=queues)
        finally:
            Alone.works = False


def once(_log: RunLog, drive: Drive) -> Drive:
    """What could not be driven is done."""
    seen: set[str] = set()

    async def driven(run_id: str) -> bool:
        if run_id in seen:
            return False
        seen.add(run_id)
        return await drive(run_id)

    return driven


def alone(_log: RunLog, drive: Drive) -> Drive:
    """Nobody waits for it."""
    tasks: set[asyncio.Task[bool]] = set()

    async def driven(run_id: str) -> bool:
        tasks.add(asyncio.create_task(drive(run_id)))
        return True

    return driven


def at_once(_log: RunLog, drive: Drive) -> Drive:
    """What could not be driven is tried again and again, and the others wait."""

    async def driven(run_id: str) -> bool:
        while await drive(run_id):  # noqa: ASYNC110 - it is a bad one
            await asyncio.sleep(0.01)
        return False

    return driven


def unlost(log: RunLog, drive: Drive) -> Drive:
    """What has lost an owner is left."""

    async def driven(run_id: str) -> bool:
        return bool((await log.status([run_id]))[run_id].lost) or await drive(run_id)

    return driven


MUTANTS: dict[str, type[Quick]] = {
    "a_run_is_enqueued_once": Forgetful,
    "every_prefix_is_gone_on_with": Listing,
    "what_another_drives_is_tried_again": Listing,
    "what_cannot_be_driven_is_tried_again": driving(once),
    "a_killed_process_is_replaced": Listing,
    "a_worker_that_stops_hands_over": driving(alone),
    "two_workers_drive_each_run_once": Alone,
    "a_run_that_ends_its_processes_fails": driving(unlost),
    "a_limit_holds_for_a_queue": Unlimited,
    "a_limit_holds_over_all_workers": Quick,
    "a_rate_holds_for_a_queue": Unlimited,
    "a_missing_agent_blocks_no_queue": driving(at_once),
    "lower_priorities_come_first": Newest,
}


def marked(check: Any) -> Any:
    return pytest.param(check, marks=[pytest.mark.slow] if "processes" in check.needs else [])


@pytest.mark.parametrize(
    "check", map(marked, testing.ENGINE_CHECKS), ids=[each.name for each in testing.ENGINE_CHECKS]
)
def test_each_check_fails_where_its_behaviour_is_not_there(
    check: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for module in ("driving", "queues"):
        monkeypatch.setattr(f"dragoman.testing.engine.{module}.SECONDS", 2.0)
    mutant = MUTANTS[check.name]
    url = f"sqlite:///{tmp_path}/runs.db" if "processes" in check.needs else "memory:"
    bound = testing.engine_checks(mutant, partial(str, url), priorities=True, shared_limits=True)
    with pytest.raises(CheckFailed):
        next(each for each in bound if each.name == check.name)()


def test_what_an_engine_does_not_offer_is_skipped() -> None:
    bound = {each.name: each for each in testing.engine_checks(Quick)}
    for name in (
        "lower_priorities_come_first",
        "a_limit_holds_over_all_workers",
        "a_killed_process_is_replaced",
    ):
        with pytest.raises(testing.Skipped):
            bound[name]()
