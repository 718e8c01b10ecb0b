"""A run tells when a tool begins, so that a call that waits and one that runs can be told apart; the
log of a run stores when each event came."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given

from dragoman import Agent, ToolExecutor, tool, wires
from dragoman.event import (
    Event,
    MessageFinished,
    PartFinished,
    RunFinished,
    RunStarted,
    StepStarted,
    ToolStarted,
    event_to_json,
    set_time,
)
from dragoman.fold import fold
from dragoman.message import Message, ToolCallPart, ToolResultPart
from dragoman.runs import Runs, open_log, visible
from dragoman.runs.closing import read_pages
from dragoman.tools import ParallelToolExecutor
from support import strategies as some
from support.model import agent, call, says

pytestmark = pytest.mark.anyio


@tool
def add(x: int) -> int:
    """Adds one."""
    return x + 1


async def events_of(agent: Agent[Any], prompt: Any = "hi", **options: Any) -> list[Event]:
    async with agent.run(prompt, **options) as run:
        return [event async for event in run]


def started(events: list[Event]) -> list[ToolStarted]:
    return [event for event in events if isinstance(event, ToolStarted)]


async def test_a_tool_that_runs_is_told_before_its_result() -> None:
    gate = asyncio.Event()

    @tool
    async def slow() -> str:
        """Waits."""
        await gate.wait()
        return "done"

    a, _ = agent(says(call("slow")), says("B"), tools=[slow])
    events: list[Event] = []
    async with a.run("hi") as run:
        async for event in run:
            events.append(event)
            if isinstance(event, ToolStarted):
                assert not any(
                    isinstance(each, PartFinished) and isinstance(each.part, ToolResultPart)
                    for each in events
                )
                gate.set()
    assert started(events) == [ToolStarted("c1", "slow")]
    ends = [n for n, each in enumerate(events) if isinstance(each, MessageFinished)]
    assert any(end < events.index(ToolStarted("c1", "slow")) for end in ends)


@pytest.mark.parametrize("executor", [ToolExecutor(), ParallelToolExecutor(1)])
async def test_calls_that_wait_for_their_turn_begin_one_after_another(executor: Any) -> None:
    calls = says(call("add", x=1), call("add", "c2", x=2))
    a, _ = agent(calls, says("B"), tools=[add], executor=executor)
    told = await events_of(a)
    order = [
        f"{type(event).__name__[0]}{event.call_id if isinstance(event, ToolStarted) else event.part.id}"
        for event in told
        if isinstance(event, ToolStarted)
        or (isinstance(event, PartFinished) and isinstance(event.part, ToolResultPart))
    ]
    assert order == ["Tc1", "Pc1", "Tc2", "Pc2"]


async def test_what_is_not_run_does_not_begin() -> None:
    a, _ = agent(says(call("nothing"), call("add", "c2", x=1)), says("B"), tools=[add])
    assert started(await events_of(a)) == [ToolStarted("c2", "add")]


async def test_a_call_that_waits_for_an_approval_begins_once_it_is_allowed() -> None:
    @tool(requires_approval=True, editable=True)
    def pay(sum: int) -> int:
        """Pays."""
        return sum

    a, _ = agent(says(call("pay", sum=1)), says("B"), tools=[pay])
    first = await a.send("hi")
    assert started(await events_of(a, None, history=first.messages, resume=[])) == []
    (asked,) = first.pending
    a, _ = agent(says("B"), tools=[pay])
    events = await events_of(a, None, history=first.messages, resume=[asked.approve()])
    assert started(events) == [ToolStarted("c1", "pay")]
    a, _ = agent(says("B"), tools=[pay])
    events = await events_of(a, None, history=first.messages, resume=[asked.approve({"sum": 2})])
    assert started(events) == [ToolStarted("c1", "pay", {"sum": 2})]
    a, _ = agent(says("B"), tools=[pay])
    assert started(await events_of(a, None, history=first.messages, resume=[asked.deny()])) == []


async def test_a_tool_of_an_agent_in_a_tool_says_whose_it_is() -> None:
    inner, _ = agent(says(call("add", "i1", x=1)), says("in"), tools=[add])
    outer, _ = agent(
        says(call("ask", prompt="?")), says("B"), tools=[inner.as_tool("ask", "Asks.")]
    )
    events = await events_of(outer)
    runs = [event.run_id for event in events if isinstance(event, RunStarted)]
    assert started(events) == [
        ToolStarted("c1", "ask"),
        ToolStarted("i1", "add", run_id=runs[1]),
    ]
    assert fold(events) == fold([each for each in events if not isinstance(each, ToolStarted)])


async def test_clients_of_models_do_not_see_it() -> None:
    a, _ = agent(says(call("add", x=1)), says("B"), tools=[add])
    events = await events_of(a)
    assert started(events)
    assert not started(list(visible(events)))
    assert not started(list(visible(events, retractable=True)))


@pytest.mark.parametrize("url", ["memory:", "sqlite"])
async def test_the_log_of_a_run_has_times(url: str, tmp_path: Any) -> None:
    a, _ = agent(says(call("add", x=1)), says("B"), tools=[add])
    before = datetime.now(UTC)
    async with open_log(url if url != "sqlite" else f"sqlite:///{tmp_path}/r.db") as log:
        async with Runs(log) as runs:
            run_id = await runs.start(a, "hi")
            seen = [event async for _, event in runs.attach(run_id)]
        stored = [event async for page in read_pages(log, run_id) for event in page]
    assert [event.at for event in stored] == [event.at for event in seen]
    times = [event.at for event in stored]
    assert times == sorted(times)
    assert all(before <= time <= before + timedelta(seconds=30) for time in times)
    assert times[0].tzinfo is UTC


async def test_a_run_without_a_log_has_no_times() -> None:
    a, _ = agent(says("B"))
    assert {event.at for event in await events_of(a)} == {None}


@given(some.streams())
@pytest.mark.parametrize("name", ["ag_ui", "a2a", "ai_sdk", "openai_chat", "anthropic"])
def test_no_wire_tells_a_time_or_a_tools_start(
    name: str, told: tuple[list[Message], list[Event]]
) -> None:
    wire = wires.get(name)
    plain = [event for event in set_time(told[1], None) if not isinstance(event, ToolStarted)]
    at = datetime(2026, 11, 26, tzinfo=UTC)

    def encoded(events: list[Event]) -> bytes:
        encoder = wire.encoder()
        return b"".join([*map(encoder.feed, events), encoder.close()])

    data = encoded(set_time(told[1], at))
    if name == "ag_ui":  # which has a field for it
        data = data.replace(b',"timestamp":%d' % (at.timestamp() * 1000), b"")
    assert data == encoded(plain)


def test_ag_ui_has_the_time_of_an_event() -> None:
    at = datetime(2026, 11, 26, 9, 0, 0, 123456, UTC)
    encoder = wires.get("ag_ui").encoder()
    data = b"".join(
        map(encoder.feed, set_time([RunStarted("r"), StepStarted("s"), RunFinished("r")], at))
    )
    assert data.count(b'"timestamp":1795683600123') == 4  # the open step is closed too
    assert b'"at"' not in data


def test_a_start_keeps_the_arguments_in_json() -> None:
    assert event_to_json(ToolStarted("c", "t", {"a": 1})) == (
        b'{"type":"tool_started","call_id":"c","name":"t","arguments":{"a":1}}'
    )
    assert ToolCallPart("c", "t").id == "c"
