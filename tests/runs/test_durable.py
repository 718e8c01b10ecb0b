"""Durable runs: any process goes on with them, from every prefix of their log."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Agent, Message, RunRequest, ToolContext, fold, tool
from dragoman.event import Event, MessageFinished, PartFinished, RunFinished
from dragoman.memory import Memory
from dragoman.message import MarkPart, Role, ToolResultPart
from dragoman.runs import Runs
from dragoman.runs.durable import make_request
from dragoman.runs.memory_log import MemoryLog
from support.durable import (
    RUN,
    Acts,
    begun,
    call,
    check_laws,
    check_open,
    dead_log,
    durable_agent,
    outcome_unknown,
)
from support.model import agent, says
from support.prefixes import finished, gone_on, read, same, stored_results

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


def results(events: Sequence[Event]) -> dict[str, Any]:
    return {part.id: part.result for message in check_laws(events) for part in message.tool_results}


async def test_every_prefix_of_a_log_is_gone_on_with() -> None:
    request = make_request("Do it.", RUN, "t", None).replace(state={"a": 1})
    before = await finished(request, durable_agent(Acts())[0])
    whole = results(before)
    assert set(whole) == {"l1", "w1", "w2", "w3", "l2"}
    for end in range(len(before)):
        told = before[:end]
        acts = Acts()
        a, model = durable_agent(acts)
        events = await gone_on(told, request, a)
        assert same(events[:end], told)
        messages = check_laws(events)
        last = events[-1]
        assert isinstance(last, RunFinished)
        assert (last.outcome, len(messages)) == ("success", 6)
        # Nothing of which the log holds the result is run again, and nothing that may have acted,
        # unless it is idempotent.
        stored = stored_results(told)
        assert not stored & {*acts.done}
        repeated = {*begun(told)} & {*acts.done}
        assert repeated <= {"l1", "l2"}
        unknown = outcome_unknown(messages)
        assert {*unknown} == ({*begun(told)} - stored - {"l1", "l2"})
        for name, value in results(events).items():
            assert value == whole[name] or name in unknown
        # Each answer that the log holds is counted once, whoever asked for it.
        assert last.usage is not None
        assert last.usage.total_tokens == 33
        assert last.result == "I look and write.\nAnd once more.\nNow all of it is done."
        assert model.asked <= 3


@given(cuts=st.lists(st.floats(0, 1), min_size=2, max_size=4), data=st.integers(0, 1))
def test_a_run_whose_processes_die_again_and_again_ends(cuts: list[float], data: int) -> None:
    async def main() -> None:
        request = make_request("Do it.", RUN, "t", None)
        events = await finished(request, durable_agent(Acts())[0])
        all_done: list[str] = []
        for count, cut in enumerate(cuts, 1):
            told = events[: int(cut * (len(events) - 1))]
            acts = Acts()
            events = await gone_on(told, request, durable_agent(acts)[0], lost=count)
            assert same(events[: len(told)], told)
            assert not {*begun(told)} & {*acts.done} & {"w1", "w2", "w3"}
            assert not stored_results(told) & {*acts.done}
            all_done = acts.done
        messages = check_laws(events)
        assert len(messages) == 6
        assert isinstance(events[-1], RunFinished)
        assert all_done == sorted({*all_done}, key=all_done.index)

    asyncio.run(main())


async def test_a_run_with_a_memory_goes_on_and_its_thread_has_each_message_once() -> None:
    request = make_request("Do it.", RUN, "t", None)

    async def talked(memory: Memory) -> None:
        earlier, _ = agent(says("Hello."), memory=memory)
        await earlier.send("Hi.", thread_id="t")

    memory = Memory("memory:")
    await talked(memory)
    before = await finished(request, durable_agent(Acts(), memory=memory)[0])
    for end in range(0, len(before), 2):
        told = before[:end]
        # The thread has what was kept until then: never more than the log.
        for kept in {0, len(fold(told))}:
            memory = Memory("memory:")
            await talked(memory)
            whole = [message for message in fold(told) if is_whole(told, message)]
            if whole and kept:
                await memory.save(whole, "t")
            a, model = durable_agent(Acts(), shift=1, memory=memory)
            events = await gone_on(told, request, a)
            messages = check_laws(events)
            page = await memory.recall("t")
            assert [message.id for message in page.items[2:]] == [
                message.id for message in messages
            ], end
            assert model.asked <= 3


def is_whole(events: Sequence[Event], message: Message) -> bool:
    return any(
        isinstance(event, MessageFinished) and event.message_id == message.id for event in events
    )


async def test_an_approved_call_goes_on_from_every_prefix() -> None:
    paid: list[str] = []

    @tool(requires_approval=True)
    async def pay(context: ToolContext[Any], amount: int) -> str:
        """Pays."""
        paid.append(context.call_id)
        return f"paid {amount}"

    plan = ((call("pay", "p1", amount=1), call("pay", "p2", amount=2)), ("Paid.",))
    a, _ = durable_agent(Acts(), plan, tools=[pay])
    first = await a.send("Pay.", thread_id="t")
    assert paid == []
    answers = (first.pending[0].approve(), first.pending[1].deny("too much"))
    request = RunRequest(first.messages, "t", resume=answers)
    request = make_request(request, RUN, None, None)
    before = await finished(request, durable_agent(Acts(), plan, tools=[pay])[0])
    assert paid == ["p1"]
    for end in range(len(before)):
        paid.clear()
        told = before[:end]
        events = await gone_on(told, request, durable_agent(Acts(), plan, tools=[pay])[0])
        assert same(events[:end], told)
        check_open(events)
        messages = fold(events)
        assert [message.role for message in messages] == [Role.USER, Role.MODEL]
        outcomes = {part.id: part for part in messages[0].tool_results}
        assert outcomes["p2"].denied
        is_begun = "p1" in begun(told)
        assert paid == ([] if is_begun else ["p1"])
        if is_begun and "p1" not in stored_results(told):
            assert outcome_unknown(messages) == ["p1"]
        else:
            assert outcomes["p1"].result == "paid 1"
        assert isinstance(events[-1], RunFinished)


async def test_a_run_that_waits_goes_on_waiting_from_every_prefix() -> None:
    @tool(requires_approval=True)
    async def pay() -> str:
        """Pays."""
        return "paid"

    @tool
    async def ask(context: ToolContext[Any]) -> str:
        """Asks a person."""
        return context.ask("How much?")

    plan = (("I do.", call("look", "l1"), call("pay", "p1"), call("ask", "a1")),)
    request = make_request("Do it.", RUN, "t", None)
    make = lambda: durable_agent(Acts(), plan, tools=[pay, ask])[0]  # noqa: E731
    before = await finished(request, make())
    for end in range(len(before)):
        told = before[:end]
        events = await gone_on(told, request, make())
        check_open(events)
        last = events[-1]
        assert isinstance(last, RunFinished)
        assert last.outcome == "pending"
        asked = [interrupt.reason for interrupt in last.pending]
        if "a1" in begun(told) and not is_asked(told):
            # Nobody knows what its tool did before it asked.
            assert asked == ["approval"]
        else:
            assert asked == ["approval", "input"]


def is_asked(events: Sequence[Event]) -> bool:
    """True if the question of a tool is told."""
    return any(isinstance(piece, MarkPart) for message in fold(events) for piece in message.content)


async def test_calls_with_one_id_keep_each_its_result() -> None:
    done: list[str] = []

    def make() -> Agent[Any]:
        @tool
        async def first() -> str:
            """Acts."""
            done.append("first")
            return "first did"

        @tool
        async def second() -> str:
            """Acts, too."""
            done.append("second")
            await asyncio.sleep(0)
            return "second did"

        plan = (("I do.", call("second", "x"), call("first", "x")), ("Done.",))
        return durable_agent(Acts(), plan, tools=[first, second])[0]

    request = make_request("Do it.", RUN, "t", None)
    before = await finished(request, make())
    for end in range(len(before)):
        told = before[:end]
        done.clear()
        events = await gone_on(told, request, make())
        messages = check_laws(events)
        if "x" not in begun(told):
            assert sorted(done) == ["first", "second"]
            continue
        assert done == []
        stored = {
            event.part.name: event.part
            for event in told
            if isinstance(event, PartFinished) and isinstance(event.part, ToolResultPart)
        }
        results = messages[2].tool_results
        assert [part.name for part in results] == ["second", "first"]
        for part in results:
            if part.name in stored:
                assert part.result == f"{part.name} did"
            else:
                assert "outcome unknown" in str(part.result)


async def test_a_long_log_is_read_piece_by_piece() -> None:
    """Also of a log that gives few events at a time nothing is lost."""
    request = make_request("Do it.", RUN, "t", None)
    before = await finished(request, durable_agent(Acts())[0])
    pages: list[int] = []

    class Paged(MemoryLog):
        async def read(self, run_id: str, from_offset: int = 0) -> list[Event]:
            page = (await super().read(run_id, from_offset))[:7]
            pages.append(len(page))
            return page

    a, _ = durable_agent(Acts())
    async with Paged() as log, Runs(log, agents={"a": a}, lease_seconds=30) as runs:
        await dead_log(log, before[:-1], request)
        assert await runs.drive(RUN) is False
        assert max(pages) == 7
        events = await read(runs)
    assert same(events[:-1], before[:-1])
    last, whole = events[-1], before[-1]
    assert isinstance(last, RunFinished)
    assert isinstance(whole, RunFinished)
    assert (last.result, last.usage) == (whole.result, whole.usage)
