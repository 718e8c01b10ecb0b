"""Durable runs are handed over between their tools: a worker that stops waits for tools at work, for
so long as its grace."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from dragoman.event import (
    CALLS_BEGUN,
    Custom,
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartFinished,
    RunFinished,
)
from dragoman.message import Role, ToolCallPart, ToolResultPart
from dragoman.runs import RunLog, Runs, open_log
from dragoman.runs.calls_at_work import CallsAtWork
from dragoman.runs.memory_log import MemoryLog
from support.durable import RUN, Acts, begun, check_laws, durable_agent, outcome_unknown
from support.runs import until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

QUICK: dict[str, Any] = {"lease_seconds": 30.0, "poll_seconds": 0.01}


def asks(*call_ids: str, message: str = "m", run_id: str | None = None) -> list[Event]:
    """A model's message with calls."""
    calls: list[Event] = [
        PartFinished(message, index, ToolCallPart(call_id, "t"))
        for index, call_id in enumerate(call_ids)
    ]
    return [
        MessageStarted(message, Role.MODEL, run_id=run_id),
        *calls,
        MessageFinished(message),
    ]


def answers(call_id: str) -> Event:
    return PartFinished("results", 0, ToolResultPart(call_id, "t", "ok"))


def marks(*call_ids: str) -> Event:
    return Custom(CALLS_BEGUN, [*call_ids])


@pytest.mark.parametrize(
    ("events", "is_open"),
    [
        (asks("a"), True),
        (asks("a")[:-1], False),
        ([*asks("a", "b"), answers("a")], True),
        ([*asks("a", "b"), marks("a", "b"), answers("b"), answers("a")], False),
        # Calls of a conversation that waited have a mark alone.
        ([marks("a")], True),
        ([marks("a"), answers("a")], False),
        ([*asks("a")[:-1], MessageDropped("m"), MessageFinished("m")], False),
        # A tool that gave no result, such as one that a failure ended.
        ([marks("a"), *asks(message="n")], False),
        ([marks("a"), *asks(message="n", run_id="inner")], True),
    ],
)
async def test_which_calls_are_at_work(events: Sequence[Event], is_open: bool) -> None:
    for size in (1, len(events)):
        calls = CallsAtWork()
        for start in range(0, len(events), size):
            calls.feed(events[start : start + size])
        waiter = asyncio.create_task(calls.wait_for_none())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert waiter.done() is not is_open
        waiter.cancel()


class GatedActs(Acts):
    """Tools that end when they are let."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.cleaned: list[str] = []

    async def act(self, call_id: str) -> str:
        self.done.append(call_id)
        try:
            await self.gate.wait()
        finally:
            self.cleaned.append(call_id)
        return f"did {call_id}"


async def stop_in_tools(
    log: RunLog, acts: GatedActs, grace: float, *, meanwhile: Any = None
) -> None:
    """Stops a worker while its tools are at work. `meanwhile`: is called with the `Runs` a moment
    later."""
    async with Runs(
        log, agents={"a": durable_agent(acts)[0]}, grace_seconds=grace, **QUICK
    ) as runs:
        worker = asyncio.create_task(runs.work())
        await until(lambda: has_acted(acts))
        worker.cancel()
        # A run that comes now is not begun.
        await runs.enqueue("a", "hi", run_id="late", queue="default")
        await asyncio.sleep(0.05)
        if meanwhile is not None:
            meanwhile(runs)
        with suppress(asyncio.CancelledError):
            await worker
        assert worker.cancelled()
        assert (await runs.status("late")).state == "queued"
        status = await runs.status(RUN)
        assert (status.state, status.driven, status.lost) == ("running", False, 0)


async def has_acted(acts: GatedActs) -> bool:
    return len(acts.done) == 3


async def go_on(log: RunLog, acts: Acts) -> list[Event]:
    """Another process goes on with the run to its end."""
    async with Runs(log, agents={"a": durable_agent(acts)[0]}, **QUICK) as runs:
        assert await runs.drive(RUN) is False
        events = [event async for _, event in runs.attach(RUN)]
    assert isinstance(events[-1], RunFinished)
    return events


async def test_a_worker_that_stops_waits_for_tools_at_work(url: str) -> None:
    acts = GatedActs()
    async with open_log(url) as log:
        async with Runs(log) as runs:
            await runs.enqueue("a", "Do it.", run_id=RUN)
        await stop_in_tools(log, acts, 20.0, meanwhile=lambda _: acts.gate.set())
        # The tools of the first message ended, and the next message was left to another process.
        assert sorted(acts.done) == ["l1", "w1", "w2"]
        events = await go_on(log, acts)
        assert outcome_unknown(check_laws(events)) == []
        assert sorted(acts.done) == ["l1", "l2", "w1", "w2", "w3"]
        assert sorted(begun(events)) == sorted(acts.done)


async def test_tools_that_go_on_beyond_the_grace_are_cut() -> None:
    acts = GatedActs()
    async with MemoryLog() as log:
        async with Runs(log) as runs:
            await runs.enqueue("a", "Do it.", run_id=RUN)
        began = asyncio.get_running_loop().time()
        await stop_in_tools(log, acts, 0.2)
        assert 0.2 <= asyncio.get_running_loop().time() - began < 10
        assert sorted(acts.cleaned) == ["l1", "w1", "w2"]
        acts.gate.set()
        messages = check_laws(await go_on(log, acts))
        # The one that may be run again was, of the others nobody knows.
        assert sorted(outcome_unknown(messages)) == ["w1", "w2"]
        assert sorted(acts.done) == ["l1", "l1", "l2", "w1", "w2", "w3"]


@pytest.mark.parametrize("way", ["hand over", "cancel"])
async def test_the_grace_ends_at_once_when_asked(way: str) -> None:
    acts = GatedActs()
    async with MemoryLog() as log:
        async with Runs(log) as runs:
            await runs.enqueue("a", "Do it.", run_id=RUN)

        def again(runs: Runs) -> None:
            if way == "hand over":
                runs.hand_over()
            else:
                # Cancels the drive itself, as an engine of the user's may.
                for task in asyncio.all_tasks():
                    if task.get_name() == f"dragoman-work-{RUN}":
                        task.cancel()

        async with asyncio.timeout(20):
            await stop_in_tools(log, acts, 600.0, meanwhile=again)
        acts.gate.set()
        assert sorted(outcome_unknown(check_laws(await go_on(log, acts)))) == ["w1", "w2"]
