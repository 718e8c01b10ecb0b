"""What tools say while they run is seen while they run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest

from dragoman import Agent, ToolContext, fold, tool
from dragoman.event import Custom, Event, PartFinished
from dragoman.message import ToolResultPart
from support.model import agent, call, says

pytestmark = pytest.mark.anyio


def waiting() -> tuple[Agent[asyncio.Event], asyncio.Event]:
    """An agent whose tool emits and then waits for the reader to let it go on."""

    @tool
    async def work(ctx: ToolContext[asyncio.Event]) -> str:
        ctx.emit("begun", {"call": ctx.call_id})
        await ctx.deps.wait()
        return "done"

    a, _ = agent(says(call("work")), says("ok"), tools=[work])
    return a, asyncio.Event()


async def by_run(a: Agent[asyncio.Event], go_on: asyncio.Event) -> AsyncGenerator[Any, None]:
    async with a.run("hi", deps=go_on) as run:
        async for event in run:
            if isinstance(event, Custom):
                yield {event.name: event.value}
        assert (await run.result()).output == "ok"


async def by_events(a: Agent[asyncio.Event], go_on: asyncio.Event) -> AsyncGenerator[Any, None]:
    async for event in a.send_events("hi", deps=go_on):
        if isinstance(event, Custom):
            yield {event.name: event.value}


async def by_stream(a: Agent[asyncio.Event], go_on: asyncio.Event) -> AsyncGenerator[Any, None]:
    async for chunk in a.send_stream("hi", deps=go_on):
        if chunk.custom:
            yield chunk.custom


@pytest.mark.parametrize("read", [by_run, by_events, by_stream])
async def test_what_a_tool_emits_is_read_while_it_waits(read: Any) -> None:
    a, go_on = waiting()
    seen: list[Any] = []
    async with asyncio.timeout(10), aclosing(read(a, go_on)) as emitted:
        async for custom in emitted:
            seen.append(custom)
            assert not go_on.is_set()
            go_on.set()
    assert seen == [{"begun": {"call": "c1"}}]


async def test_each_result_is_told_when_its_tool_is_done() -> None:
    """In the stream in the order in which they are done, in the message in the order of the calls."""
    order = ["c2", "c3", "c1"]
    ready = {call_id: asyncio.Event() for call_id in order}

    @tool
    async def work(ctx: ToolContext) -> str:
        await ready[ctx.call_id].wait()
        return ctx.call_id

    a, _ = agent(says(*[call("work", id=each) for each in sorted(order)]), says("ok"), tools=[work])
    told: list[str] = []
    ready[order[0]].set()
    async with asyncio.timeout(10), a.run("hi") as run:
        events: list[Event] = []
        async for event in run:
            events.append(event)
            if isinstance(event, PartFinished) and isinstance(event.part, ToolResultPart):
                told.append(event.part.id)
                assert event.index == sorted(order).index(event.part.id)
                if len(told) < len(order):
                    ready[order[len(told)]].set()
        result = await run.result()
    assert told == order
    assert [part.id for part in result.messages[2].tool_results] == sorted(order)
    assert tuple(fold(events)) == result.messages
