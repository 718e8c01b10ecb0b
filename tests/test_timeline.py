"""Rows of a run: agents in tools stand below their tools, and a part of a run can be folded."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman import Agent, ToolContext, tool
from dragoman.event import Event, RunStarted, set_time
from dragoman.message import Usage
from dragoman.runs import Runs, open_log
from dragoman.testing import ScriptedModel, call
from dragoman.timeline import Timeline, read_timeline
from dragoman.timeline_drawing import draw_timeline, dump_row

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def events_of(agent: Agent[None], prompt: str) -> list[Event]:
    async with open_log("memory:") as log, Runs(log) as runs:
        run_id = await runs.start(agent, prompt)
        return [event async for _, event in runs.attach(run_id)]


def expert(name: str, first: asyncio.Event, then: asyncio.Event) -> Agent[None]:
    """An agent that ends its first model call after `first`, and sets `then`."""

    async def answer(request: Any) -> Any:
        await first.wait()
        then.set()
        yield f"{name} says so."

    return Agent(ScriptedModel(lambda request: answer(request)), display_name=name)


async def test_agents_in_tools_side_by_side_stand_below_their_tools() -> None:
    one, two = asyncio.Event(), asyncio.Event()
    two.set()
    # The second tool's agent answers first.
    experts = {"a": expert("a", one, asyncio.Event()), "b": expert("b", two, one)}

    @tool
    async def ask(which: str, context: ToolContext) -> str:
        """Asks an agent."""
        await context.progress(1, 2)
        return (await context.send(experts[which], which)).output

    model = ScriptedModel([[call("ask", which="a"), call("ask", which="b")], "Done."])
    events = await events_of(Agent(model, tools=[ask]), "Go.")
    starts = [event for event in events if isinstance(event, RunStarted)]
    calls = {row.arguments["which"]: row.call_id for row in read_timeline(events) if row.arguments}
    assert starts[0].call_id is None
    assert {start.call_id for start in starts[1:]} == set(calls.values())

    rows = read_timeline(events)
    shape = [(row.category, row.depth, row.text) for row in rows]
    assert shape == [
        ("user", 0, "Go."),
        ("model", 0, ""),
        ("tool", 0, ""),
        ("run", 1, ""),
        ("user", 1, "a"),
        ("model", 1, "a says so."),
        ("tool", 0, ""),
        ("run", 1, ""),
        ("user", 1, "b"),
        ("model", 1, "b says so."),
        ("model", 0, "Done."),
    ]
    assert all(row.progress for row in rows if row.category == "tool")
    lines = draw_timeline(rows)
    assert [line[39:] for line in lines if "says so." in line] == [
        '    → "a says so."', "    a says so.", '    → "b says so."', "    b says so.",
    ]  # fmt: skip


async def test_what_agents_in_tools_wait_for_and_take_is_not_the_runs_own() -> None:
    inner = Agent(ScriptedModel(["Hi."]))

    @tool
    async def ask(context: ToolContext) -> str:
        """Asks an agent."""
        return (await context.send(inner, "x")).output

    events = await events_of(Agent(ScriptedModel([call("ask"), "Done."]), tools=[ask]), "Go.")
    timeline = Timeline()
    timeline.feed(events)
    (run,) = [row for row in timeline if row.category == "run"]
    assert run.usage is not None and timeline.usage is not None
    assert isinstance(run.usage, Usage)
    assert (run.usage.total_tokens or 0) < (timeline.usage.total_tokens or 0)
    assert run.ended_at is not None
    # At every moment, with and without times, from the middle on, and no more rows than are wanted.
    for end in range(len(events)):
        draw_timeline(read_timeline(events[:end]))
        draw_timeline(read_timeline(events[end:]))
    rows = read_timeline(set_time(events, None))
    assert len(rows) == len([*timeline])
    assert not [row for row in rows if row.is_bad]
    short = Timeline(most_rows=3)
    short.feed(events)
    assert len([*short]) == 3
    assert all("native" not in str(dump_row(row)) for row in rows)
