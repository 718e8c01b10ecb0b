"""No tool begins before the log holds the message that asks for it, and the mark that it begins."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, ToolContext, ToolExecutor, fold, tool
from dragoman.errors import LeaseLostError
from dragoman.event import (
    CALLS_BEGUN,
    Custom,
    Event,
    MessageFinished,
    PartFinished,
    RunFinished,
    is_calls_begun,
)
from dragoman.message import ToolCallPart
from dragoman.orchestration import DefaultStreamingOrchestrator, StreamingIterationResult
from dragoman.runs import RunLog, Runs, open_log, visible
from dragoman.runs.memory_log import MemoryLog
from dragoman.runs.sql_log import SqlLog
from dragoman.sql.work_queue import WorkQueue
from dragoman.tools import handoff
from dragoman.tools.outbox import Outbox
from support.model import agent, call, says
from support.runs import kill_at_a_tools_start, until

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

QUICK = {"lease_seconds": 30.0, "poll_seconds": 0.01}


async def stored(log: RunLog, run_id: str) -> list[Event]:
    """What the log holds now."""
    events: list[Event] = []
    while page := await log.read(run_id, len(events)):
        events += page
    return events


def asked(events: list[Event]) -> set[str]:
    """Ids of the calls in messages that are whole."""
    whole = {event.message_id for event in events if isinstance(event, MessageFinished)}
    return {
        event.part.id
        for event in events
        if isinstance(event, PartFinished)
        and isinstance(event.part, ToolCallPart)
        and event.message_id in whole
    }


def begun(events: list[Event]) -> list[list[str]]:
    return [
        event.value for event in events if isinstance(event, Custom) and event.name == CALLS_BEGUN
    ]


class Witness:
    """Tools that look into the log of their run when they begin."""

    def __init__(self, run_id: str = "r") -> None:
        self.run_id = run_id
        self.log: RunLog | None = None
        self.seen: list[tuple[str, bool, bool]] = []
        """Of each call: whether the log holds the call, and its mark."""

    async def look(self, call_id: str) -> str:
        assert self.log is not None
        events = await stored(self.log, self.run_id)
        marked = any(call_id in ids for ids in begun(events))
        self.seen.append((call_id, call_id in asked(events), marked))
        return "seen"

    def tools(self) -> list[Any]:
        @tool
        async def act(context: ToolContext[Any]) -> str:
            """Acts."""
            return await self.look(context.call_id)

        @tool(sequential=True)
        async def alone(context: ToolContext[Any]) -> str:
            """Acts alone."""
            return await self.look(context.call_id)

        @tool(requires_approval=True)
        async def pay(context: ToolContext[Any]) -> str:
            """Pays."""
            return await self.look(context.call_id)

        return [act, alone, pay]

    async def run(self, a: Agent[Any], url: str, prompt: Any = "go", **how: Any) -> list[Event]:
        async with open_log(url) as log, Runs(log, **QUICK) as runs:
            self.log = log
            await runs.start(a, prompt, run_id=self.run_id, **how)
            return [event async for _, event in runs.attach(self.run_id)]


ROUND = says(call("act", "a"), call("alone", "b"), call("act", "c"), call("gone", "d"))


async def test_the_log_holds_the_calls_before_they_begin(url: str) -> None:
    witness = Witness()
    a, _ = agent(ROUND, says(call("act", "e")), says("Done."), tools=witness.tools())
    events = await witness.run(a, url)
    assert sorted(witness.seen) == [(name, True, True) for name in "abce"]
    assert begun(events) == [["a", "b", "c", "d"], ["e"]]
    assert isinstance(events[-1], RunFinished)


class InOrder(ToolExecutor):
    """An executor of a user's, which runs calls one by one."""

    async def execute_batch(self, calls: Any, tools: Any, context: Any = None) -> Any:
        return [await self.execute_single(each, tools, context) for each in calls]


async def test_also_with_an_executor_of_the_users(url: str) -> None:
    witness = Witness()
    a, _ = agent(ROUND, says("Done."), tools=witness.tools(), executor=InOrder())
    await witness.run(a, url)
    assert witness.seen == [(name, True, True) for name in "abc"]


class Silent(DefaultStreamingOrchestrator):
    """An orchestrator of a user's that leaves out all events of tools."""

    async def process_iteration(self, *how: Any) -> AsyncIterator[StreamingIterationResult]:  # type: ignore[override]
        async for step in super().process_iteration(*how):
            if not any(isinstance(event, Custom) for event in step.events):
                yield step


async def test_an_orchestrator_that_leaves_the_mark_out_goes_on(url: str) -> None:
    witness = Witness()
    a, _ = agent(ROUND, says("Done."), tools=witness.tools(), orchestrator=Silent())
    events = await witness.run(a, url)
    assert sorted(witness.seen) == [(name, True, False) for name in "abc"]
    assert isinstance(events[-1], RunFinished)


async def test_also_for_an_agent_in_a_tool(url: str) -> None:
    witness = Witness()
    inner, _ = agent(ROUND, says("Inner."), tools=witness.tools(), ids="i")
    middle, _ = agent(says(call("ask", "m")), says("Middle."), tools=[asks(inner)], ids="k")
    outer, _ = agent(
        says(call("ask", "o1"), call("ask", "o2")), says("Done."), tools=[asks(middle)]
    )
    events = await witness.run(outer, url)
    # The second agent's script is at its end, and says its last words.
    assert sorted(witness.seen) == [(name, True, True) for name in "abc"]
    assert ["a", "b", "c", "d"] in begun(events)
    assert isinstance(events[-1], RunFinished)


def asks(other: Agent[Any]) -> Any:
    @tool
    async def ask(context: ToolContext[Any]) -> str:
        """Asks another agent."""
        return (await context.send(other, "go")).output

    return ask


async def test_also_after_a_hand_off(url: str) -> None:
    witness = Witness()
    other, _ = agent(ROUND, says("Bye."), tools=witness.tools(), ids="o")
    a, _ = agent(says(call("transfer_to_b", "t")), tools=[handoff(other, "b")])
    await witness.run(a, url)
    assert sorted(witness.seen) == [(name, True, True) for name in "abc"]


async def test_also_for_a_call_that_was_approved(url: str) -> None:
    witness = Witness()
    a, _ = agent(says(call("pay", "p")), says("Paid."), tools=witness.tools())
    first = await a.send("go", thread_id="t")
    assert begun(
        await witness.run(
            a, url, None, thread_id="t", history=first.messages, resume=[first.pending[0].approve()]
        )
    ) == [["p"]]
    # The call itself is in the log of the run before.
    assert witness.seen == [("p", False, True)]


async def test_clients_do_not_get_the_mark() -> None:
    witness = Witness()
    a, _ = agent(ROUND, says("Done."), tools=witness.tools())
    events = await witness.run(a, "memory:")
    assert any(map(is_calls_begun, events))
    assert not any(map(is_calls_begun, visible(events)))
    assert not any(map(is_calls_begun, visible(events, retractable=True)))
    assert fold(events) == fold([event for event in events if not is_calls_begun(event)])


async def test_who_uses_no_log_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[Outbox] = []
    passed = Outbox.passed

    async def counted(outbox: Outbox) -> None:
        waits.append(outbox)
        await passed(outbox)

    monkeypatch.setattr(Outbox, "passed", counted)

    @tool
    async def act() -> str:
        """Acts."""
        return "done"

    def made() -> Agent[Any]:
        return agent(ROUND, says(call("act", "e")), says("Done."), tools=[act])[0]

    async with made().run("go") as run:
        events = [event async for event in run]
    assert waits == []
    assert not any(isinstance(event, Custom) for event in events)
    await Witness().run(made(), "memory:")
    assert len(waits) == 2


class Losing(MemoryLog):
    """A log in which another process takes the run over before the mark is stored."""

    async def append(self, run_id: str, expected_offset: int, events: Any, *, lease: Any) -> int:
        if any(map(is_calls_begun, events)):
            raise LeaseLostError("it now belongs to another")
        return await super().append(run_id, expected_offset, events, lease=lease)


async def test_a_run_that_was_taken_over_begins_no_tool() -> None:
    witness = Witness()
    a, _ = agent(ROUND, says("Done."), tools=witness.tools())
    async with Losing() as log, Runs(log, **QUICK) as runs:
        witness.log = log
        await runs.start(a, "go", run_id="r")
        async with asyncio.timeout(10):
            await runs.idle()
        assert begun(await stored(log, "r")) == []
    assert witness.seen == []


async def test_a_run_that_waits_for_its_log_can_be_cancelled() -> None:
    held = asyncio.Event()

    class Held(MemoryLog):
        async def append(
            self, run_id: str, expected_offset: int, events: Any, *, lease: Any
        ) -> int:
            if any(map(is_calls_begun, events)):
                await held.wait()
            return await super().append(run_id, expected_offset, events, lease=lease)

    witness = Witness()
    a, _ = agent(ROUND, says("Done."), tools=witness.tools())
    async with Held() as log, Runs(log, **QUICK) as runs:
        witness.log = log
        await runs.start(a, "go", run_id="r")

        async def is_asked() -> bool:
            return bool(asked(await stored(log, "r")))

        await until(is_asked)
        await runs.cancel("r")
        await asyncio.sleep(0.02)
        held.set()
        async with asyncio.timeout(10):
            await runs.idle()
        assert (await runs.status("r")).state == "cancelled"
    assert witness.seen == []


async def test_a_hurried_change_does_not_wait_for_others() -> None:
    batches: list[list[int]] = []

    def commit(works: Any) -> Any:
        batches.append(list(works))
        return works

    writer = WorkQueue(commit, name="test", closed=RuntimeError, shares=True, pause=30.0)
    async with asyncio.timeout(10):
        assert await writer.do(1) == 1
        # One that waits already, and one that comes later.
        waiting = asyncio.create_task(writer.do(2))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        writer.hurry()
        assert await waiting == 2
        writer.hurry()
        assert await writer.do(3) == 3
    assert batches == [[1], [2], [3]]
    writer.close()


async def test_a_round_does_not_wait_for_the_pause_of_the_log(tmp_path: Path) -> None:
    """With the pause each of the rounds would take 0.5 s or more."""
    witness = Witness()
    a, _ = agent(
        *[says(call("act", f"c{n}")) for n in range(8)], says("Done."), tools=witness.tools()
    )
    async with SqlLog(f"sqlite:///{tmp_path}/runs.db") as log, Runs(log, **QUICK) as runs:
        log._database._writer._pause = 0.5
        witness.log = log
        await runs.start(a, "go", run_id="r")
        async with asyncio.timeout(2.9):
            await runs.idle()
    assert all(has_call and has_mark for _, has_call, has_mark in witness.seen)


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["support.runs", "dragoman.runs.sql_log", "dragoman.agent"])
    return context


async def killed(processes: ForkServerContext, url: str, folder: Path, numbers: range) -> None:
    """Processes that kill themselves as soon as one of their tools begins."""
    for number in numbers:
        acts = folder / f"acts-{number}"
        process = processes.Process(
            target=kill_at_a_tools_start, args=(url, str(acts), f"k{number}"), daemon=True
        )
        process.start()
        await asyncio.to_thread(process.join)
        assert process.exitcode == -signal.SIGKILL
    async with open_log(url) as log:
        for number in numbers:
            acted = (folder / f"acts-{number}").read_text().split()
            events = await stored(log, f"k{number}")
            assert acted
            assert set(acted) <= asked(events)
            assert all(any(each in ids for ids in begun(events)) for each in acted)


@pytest.mark.slow
async def test_killed_at_a_tools_start(
    shared_url: str, processes: ForkServerContext, tmp_path: Path
) -> None:
    await killed(processes, shared_url, tmp_path, range(5))


@pytest.mark.service
@pytest.mark.timeout(600)
async def test_killed_at_a_tools_start_ten_times(
    shared_url: str, processes: ForkServerContext, tmp_path: Path
) -> None:
    """`DRAGOMAN_KILLS` of them; `make soak` kills a hundred."""
    await killed(
        processes, shared_url, tmp_path, range(int(os.environ.get("DRAGOMAN_KILLS", "10")))
    )
