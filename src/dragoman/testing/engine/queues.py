"""Checks of an engine's queues: limits, rates and priorities."""

from __future__ import annotations

import asyncio
from time import monotonic

from dragoman.runs.engines import Limit
from dragoman.runs.runs import Runs
from dragoman.testing.check import require, require_equal
from dragoman.testing.engine.bench import AGENT, SECONDS, EngineBench, Site, engine_check

__all__ = [
    "a_limit_holds_for_a_queue",
    "a_limit_holds_over_all_workers",
    "a_rate_holds_for_a_queue",
    "a_missing_agent_blocks_no_queue",
    "lower_priorities_come_first",
]

_LIMIT = 3
_ACT_SECONDS = 0.15


async def _run_all(site: Site, runs: Runs, count: int, queue: str) -> None:
    """Enqueues runs, and waits for their ends."""
    names = [f"{queue}-{number}" for number in range(count)]
    for name in names:
        await runs.enqueue(AGENT, "Act.", run_id=name, queue=queue)
    for name in names:
        await runs.result(name, timeout=SECONDS)
        require_equal(site.acts.counts(name).total(), 1, f"the acts of {name}")


@engine_check(look="Engine.work: `Limit.runs`")
async def a_limit_holds_for_a_queue(bench: EngineBench) -> None:
    """As many runs of a queue are driven at a time as its limit says, and none of a queue that the worker
    was not given."""
    async with bench.open() as site:
        site.acts.seconds = _ACT_SECONDS
        agents = {AGENT: site.acts.one_act_agent()}
        async with site.worker(agents, {"narrow": Limit(runs=_LIMIT)}) as runs:
            await runs.enqueue(AGENT, "Act.", run_id="elsewhere", queue="elsewhere")
            await _run_all(site, runs, 4 * _LIMIT, "narrow")
            require_equal(
                (await runs.status("elsewhere")).state, "queued", "a run of another queue"
            )
        require_equal(site.acts.peak, _LIMIT, "the most runs at a time")


@engine_check("shared_limits", look="Engine.work: `Limit.runs` over all workers")
async def a_limit_holds_over_all_workers(bench: EngineBench) -> None:
    """Two workers together drive as many runs of a queue at a time as its limit says."""
    async with bench.open() as site:
        site.acts.seconds = _ACT_SECONDS
        agents, queues = {AGENT: site.acts.one_act_agent()}, {"narrow": Limit(runs=_LIMIT)}
        async with site.worker(agents, queues), site.worker(agents, queues) as runs:
            await _run_all(site, runs, 4 * _LIMIT, "narrow")
        require_equal(site.acts.peak, _LIMIT, "the most runs at a time")


@engine_check(look="Engine.work: `Limit.per_second`")
async def a_rate_holds_for_a_queue(bench: EngineBench) -> None:
    """No more runs of a queue begin in a second than its limit says."""
    async with bench.open() as site:
        agents = {AGENT: site.acts.one_act_agent()}
        async with site.worker(agents, {"slow": Limit(per_second=4)}) as runs:
            began = monotonic()
            await _run_all(site, runs, 9, "slow")
            require(monotonic() - began >= 1.5, "9 runs began in less than 1.5 s, at 4 a second")


@engine_check(look="Engine.work: `drive` returned True")
async def a_missing_agent_blocks_no_queue(bench: EngineBench) -> None:
    """A run whose agent a worker does not have is left to others, and does not hold up those behind it."""
    async with bench.open() as site:
        queues = {"mixed": Limit(runs=1)}
        async with site.worker({AGENT: site.acts.one_act_agent()}, queues) as runs:
            await runs.enqueue("another", "Act.", run_id="foreign", queue="mixed")
            await asyncio.sleep(_ACT_SECONDS)
            await _run_all(site, runs, 2, "mixed")
            require_equal(
                (await runs.status("foreign")).state, "queued", "the run of another agent"
            )
        async with site.worker({"another": site.acts.one_act_agent()}, queues) as runs:
            await runs.result("foreign", timeout=SECONDS)


@engine_check("priorities", look="Engine.enqueue: `priority`")
async def lower_priorities_come_first(bench: EngineBench) -> None:
    """Of the runs that wait, those with the lowest priority number are driven first."""
    async with bench.open() as site:
        agents = {AGENT: site.acts.one_act_agent()}
        async with site.process(agents) as client:
            for priority in (5, 0, -1, 7):
                await client.enqueue(
                    AGENT, "Act.", run_id=f"p{priority}", queue="ordered", priority=priority
                )
        async with site.worker(agents, {"ordered": Limit(runs=1)}) as runs:
            for priority in (5, 0, -1, 7):
                await runs.result(f"p{priority}", timeout=SECONDS)
        order = [run_id for run_id, _ in site.acts.list_acts()]
        require_equal(order, ["p-1", "p0", "p5", "p7"], "the order in which the runs acted")
