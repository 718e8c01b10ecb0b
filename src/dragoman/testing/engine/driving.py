"""Checks of an engine: every run is driven to its end, once, whichever process dies."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from time import monotonic

from dragoman.errors import RunLogError
from dragoman.event import Event, RunFinished, event_from_json, event_to_json
from dragoman.runs.durable import MOST_LOST, make_request
from dragoman.runs.engines import DEFAULT_QUEUES
from dragoman.runs.log import RunLog
from dragoman.testing.check import CheckFailed, require, require_equal
from dragoman.testing.engine.bench import AGENT, SECONDS, EngineBench, Site, engine_check, work
from dragoman.testing.engine.laws import check_laws, list_begun_calls, list_unknown_outcomes

__all__ = [
    "a_run_is_enqueued_once",
    "every_prefix_is_gone_on_with",
    "what_another_drives_is_tried_again",
    "what_cannot_be_driven_is_tried_again",
    "a_killed_process_is_replaced",
    "a_worker_that_stops_hands_over",
    "two_workers_drive_each_run_once",
    "a_run_that_ends_its_processes_fails",
]

_PLANNED = {"l1": 1, "w1": 1, "w2": 1, "w3": 1, "l2": 1}
"""How often each call of the checks' agent acts in a run that nothing disturbs."""
_TOKEN = "kit-run-whose-prefixes-are-taken"  # noqa: S105 - a run's id
_STEPS = 6000
_TRIES = 3


@engine_check(look="Engine.enqueue")
async def a_run_is_enqueued_once(bench: EngineBench) -> None:
    """A run that is enqueued again, before it begins or after its end, is driven once, and the other runs
    go on."""
    async with bench.open() as site:
        async with site.process() as client:
            for _ in range(2):
                await client.enqueue(AGENT, "Do it.", run_id="once")
        async with site.worker() as runs:
            await runs.result("once", timeout=SECONDS)
            await runs.enqueue(AGENT, "Do it.", run_id="once")
            await runs.enqueue(AGENT, "Do it.", run_id="next")
            await runs.result("next", timeout=SECONDS)
        for run_id in ("once", "next"):
            check_laws(await site.read(run_id), run_id)
            require_equal(site.acts.counts(run_id), Counter(_PLANNED), f"the acts of {run_id}")


@engine_check(look="Engine.work: it calls `drive` for every run")
async def every_prefix_is_gone_on_with(bench: EngineBench) -> None:
    """Wherever the log of a run was cut, the run ends: what is stored stays, and no call that may have
    acted is run again unless it is idempotent."""
    async with bench.open() as site:
        async with site.process() as client:
            await client.enqueue(AGENT, "Do it.", run_id=_TOKEN)
            async with site.worker() as runs:
                await runs.result(_TOKEN, timeout=SECONDS)
            whole = await site.read(_TOKEN)
            prefixes = [(f"cut-{end}", whole[:end]) for end in range(len(whole))]
            await asyncio.gather(*[_store_prefix(site.log, *prefix) for prefix in prefixes])
            for run_id, _ in prefixes:
                await client.enqueue(AGENT, "Do it.", run_id=run_id)
        async with site.worker() as runs:
            for end in range(len(whole)):
                await runs.result(f"cut-{end}", timeout=SECONDS)
        for end in range(len(whole)):
            await _check_cut(site, f"cut-{end}", end)


async def _store_prefix(log: RunLog, run_id: str, events: list[Event]) -> None:
    """Stores a run whose process gave it back after these events."""
    request = make_request("Do it.", run_id, None, None)
    await log.enqueue(run_id, AGENT, request)
    if not events:
        return
    lease = await log.lease(run_id, "earlier", SECONDS)
    renamed = [event_to_json(event).replace(_TOKEN.encode(), run_id.encode()) for event in events]
    await log.append(run_id, 0, [*map(event_from_json, renamed)], lease=lease)
    await log.lease(run_id, "earlier", 0.0, token=lease.token)


async def _check_cut(site: Site, run_id: str, end: int) -> None:
    """Checks a run that went on after its first `end` events."""
    events = await site.read(run_id)
    messages = check_laws(events, run_id)
    last = events[-1]
    require(isinstance(last, RunFinished) and last.outcome == "success", f"{run_id} ends: {last}")
    repeated = {*list_begun_calls(events[:end])} & site.acts.counts(run_id).keys()
    require(repeated <= {"l1", "l2"}, f"{run_id}: calls that may have acted ran again: {repeated}")
    unknown = {*list_unknown_outcomes(messages)}
    acted = site.acts.counts(run_id).keys() | {*list_begun_calls(events[:end])}
    require_equal(unknown | acted, _PLANNED.keys(), f"the calls of {run_id}")


@engine_check(look="Engine.work: a run whose lease expires")
async def what_another_drives_is_tried_again(bench: EngineBench) -> None:
    """A run of which another process has the lease is left to it, and driven once the lease has expired."""
    async with bench.open() as site:
        async with site.process() as client:
            await client.enqueue(AGENT, "Do it.", run_id="held")
        await site.log.lease("held", "a process that dies", 1.5)
        async with site.worker() as runs:
            await runs.enqueue(AGENT, "Do it.", run_id="free")
            await runs.result("free", timeout=SECONDS)
            require_equal((await runs.status("held")).end, 0, "the length of a run that is leased")
            await runs.result("held", timeout=SECONDS)
            require_equal((await runs.status("held")).lost, 1, "the owners that the run has lost")


@engine_check(look="Engine.work: `drive` returned True")
async def what_cannot_be_driven_is_tried_again(bench: EngineBench) -> None:
    """A run for which `drive` returns True is tried again later, not at once."""
    times: list[float] = []
    enough = asyncio.Event()

    async def drive(run_id: str) -> bool:
        require_equal(run_id, "later", "the run that is driven")
        times.append(monotonic())
        if len(times) == _TRIES:
            enough.set()
        return len(times) < _TRIES

    async with bench.open() as site, site.engine() as engine:
        await site.log.enqueue("later", AGENT, make_request("Do it.", "later", None, None))
        await engine.enqueue("later", queue="default")
        working = asyncio.create_task(engine.work(drive, queues=DEFAULT_QUEUES))
        try:
            await asyncio.wait_for(enough.wait(), SECONDS)
        finally:
            working.cancel()
            await asyncio.wait([working])
    require(times[1] - times[0] >= 0.1, "the run is tried again at once, and keeps its worker busy")


@engine_check("processes", look="Engine.work: a run whose process is gone")
async def a_killed_process_is_replaced(bench: EngineBench) -> None:
    """When a process is killed in the middle of a run, another process goes on with it."""
    async with bench.open() as site:
        async with site.process() as client:
            await client.enqueue(AGENT, "Do it.", run_id="killed")
            process = site.start_process()
            try:
                await _until(lambda: _has_acted(site, "killed"))
            finally:
                process.kill()
                await asyncio.to_thread(process.join)
        async with site.worker() as runs:
            await runs.result("killed", timeout=SECONDS)
            require_equal((await runs.status("killed")).lost, 1, "the owners that the run has lost")
        check_laws(await site.read("killed"), "killed")
        counts = site.acts.counts("killed")
        writes = {call: count for call, count in counts.items() if call.startswith("w")}
        require(all(count == 1 for count in writes.values()), f"writes were repeated: {writes}")


@engine_check(look="Engine.work: it is cancelled")
async def a_worker_that_stops_hands_over(bench: EngineBench) -> None:
    """A worker that is cancelled returns once it drives nothing, and its runs go on in another."""
    async with bench.open() as site:
        site.acts.seconds = 0.3
        async with site.process() as runs:
            await runs.enqueue(AGENT, "Do it.", run_id="given")
            async with work(runs):
                await _until(lambda: _has_acted(site, "given"))
            require(not runs.driven, "`work` must wait until its last `drive` has ended")
            require(not (await runs.status("given")).is_over, "the run must wait for another")
        async with site.worker() as runs:
            await runs.result("given", timeout=SECONDS)
            require_equal((await runs.status("given")).lost, 0, "the owners that the run has lost")
        check_laws(await site.read("given"), "given")


@engine_check(look="Engine.work in two processes")
async def two_workers_drive_each_run_once(bench: EngineBench) -> None:
    """Two workers of one queue do not disturb each other: every run ends, and each call acts once."""
    names = [f"shared-{number}" for number in range(12)]
    async with bench.open() as site, site.worker() as one, site.worker():
        for name in names:
            await one.enqueue(AGENT, "Do it.", run_id=name)
        for name in names:
            await one.result(name, timeout=SECONDS)
            check_laws(await site.read(name), name)
            require_equal(site.acts.counts(name), Counter(_PLANNED), f"the acts of {name}")


@engine_check(look="Engine.work: a run that `drive` ends at once")
async def a_run_that_ends_its_processes_fails(bench: EngineBench) -> None:
    """A run that has ended five processes is not driven any more: it fails."""
    async with bench.open() as site:
        async with site.process() as client:
            await client.enqueue(AGENT, "Do it.", run_id="poison")
            for number in range(MOST_LOST):
                await site.log.lease("poison", f"process {number}", 0.02)
                await asyncio.sleep(0.05)
        async with site.worker() as runs:
            try:
                await runs.result("poison", timeout=SECONDS)
            except RunLogError:
                return
    raise CheckFailed("the run must end with a RunLogError")


async def _has_acted(site: Site, run_id: str) -> bool:
    return bool(site.acts.counts(run_id)) and bool(await site.log.read(run_id))


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Waits until it is so."""
    for _ in range(_STEPS):
        if await holds():
            return
        await asyncio.sleep(SECONDS / _STEPS)
    raise CheckFailed(f"no run has begun after {SECONDS:g} s")
