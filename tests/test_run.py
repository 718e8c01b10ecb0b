"""A run as a thing: cancelling, time limits, leaving early, synchronous calls, chats."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from dragoman import Agent, Chat, Limits, Message, Run, ToolContext, fold, tool
from dragoman.errors import LimitReachedError
from dragoman.event import Event, MessageStarted, OpenText, PartDelta, PartStarted, RunFinished
from dragoman.message import FinishReason, Role
from dragoman.request import ModelRequest
from support.model import PROVIDER, agent, call, says

pytestmark = pytest.mark.anyio


class Hanging:
    """A model that says half a sentence and then nothing for ever."""

    def __init__(self) -> None:
        self.ended = False

    async def __call__(self, request: ModelRequest, _next: Any) -> AsyncIterator[Event]:
        try:
            yield MessageStarted("m", Role.MODEL)
            yield PartStarted("m", 0, OpenText())
            yield PartDelta("m", 0, "half")
            await anyio.sleep_forever()
        finally:
            self.ended = True


async def test_cancel_ends_a_run_with_what_there_is() -> None:
    model = Hanging()
    async with Agent(PROVIDER, middleware=[model]).run("hi") as run:
        events: list[Event] = []
        async for event in run:
            events.append(event)
            if isinstance(event, PartDelta) and event.delta == "half":
                threading.Timer(0.01, run.cancel).start()
        result = await run.result()
    assert model.ended
    assert isinstance(events[-1], RunFinished)
    assert events[-1].outcome == "cancelled"
    assert result.output == "half"
    assert result.finish_reason is FinishReason.cancelled
    assert tuple(fold(events)) == result.messages
    assert not asyncio.current_task().cancelling()


async def test_cancel_before_the_first_event_and_twice_and_after_the_end() -> None:
    a, script = agent(says("A"))
    async with a.run("hi") as run:
        run.cancel()
        run.cancel()
        result = await run.result()
    assert result.finish_reason is FinishReason.cancelled
    assert script.requests == []
    async with a.run("hi") as run:
        await run.result()
        run.cancel()
        result = await run.result()
        assert (result.output, result.finish_reason) == ("A", FinishReason.stop)
        assert [event async for event in run] == []


async def test_a_run_that_ended_in_time_is_not_stopped_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, timers = asyncio.get_running_loop(), list[asyncio.TimerHandle]()
    later = loop.call_later

    def noting(seconds: float, *what: Any, **how: Any) -> asyncio.TimerHandle:
        timer = later(seconds, *what, **how)
        timers.extend([timer] if seconds == 1234 else [])
        return timer

    monkeypatch.setattr(loop, "call_later", noting)
    a, _ = agent(says("A"), limits=Limits(seconds=1234))
    async with a.run("hi") as run:
        async for _ in run:
            break
        result = await run.result()
        assert [timer.cancelled() for timer in timers] == [True]
        assert await run.result() == result


def test_cancel_is_no_error_before_there_is_a_loop_and_after_it_is_gone() -> None:
    runs: list[Run[Any]] = []

    async def main() -> None:
        a, _ = agent(says("A"))
        runs.append(a.run("hi"))
        await anext(runs[0].__aiter__())

    asyncio.run(main())
    runs[0].cancel()
    asyncio.run(runs[0].close())


async def test_a_run_is_read_in_one_place_at_a_time() -> None:
    model = Hanging()
    async with (
        Agent(PROVIDER, middleware=[model]).run("hi") as run,
        anyio.create_task_group() as group,
    ):
        group.start_soon(run.result)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(RuntimeError, match="this run is being read already"):
            await run.result()
        run.cancel()
    assert model.ended
    assert run.so_far().output == "half"


async def test_cancel_stops_a_running_tool() -> None:
    stopped = anyio.Event()
    runs: list[Run[Any]] = []

    @tool
    async def slow() -> None:
        runs[0].cancel()
        try:
            await anyio.sleep_forever()
        finally:
            stopped.set()

    a, _ = agent(says("A", call("slow", id="1"), call("slow", id="2")), tools=[slow])
    async with a.run("hi") as run:
        runs.append(run)
        result = await run.result()
    assert stopped.is_set()
    assert result.finish_reason is FinishReason.cancelled
    assert result.output == "A"


async def test_a_time_limit_ends_a_run_with_the_result_so_far() -> None:
    model = Hanging()
    with pytest.raises(LimitReachedError, match="seconds") as caught:
        await Agent(PROVIDER, middleware=[model], limits=Limits(seconds=0.05)).send("hi")
    assert model.ended
    assert caught.value.result.output == "half"


async def test_a_run_that_was_cancelled_stays_cancelled_though_its_time_runs_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, due = asyncio.get_running_loop(), list[Any]()
    later = loop.call_later

    def noting(seconds: float, *what: Any, **how: Any) -> asyncio.TimerHandle:
        due.extend(what[:1] if seconds == 1234 else [])
        return later(seconds, *what, **how)

    def cancel_at_the_last_moment() -> None:
        run.cancel()
        due[0]()

    monkeypatch.setattr(loop, "call_later", noting)
    async with Agent(PROVIDER, middleware=[Hanging()], limits=Limits(seconds=1234)).run(
        "hi"
    ) as run:
        async for event in run:
            if isinstance(event, PartDelta):
                loop.call_soon(cancel_at_the_last_moment)
        result = await run.result()
    assert result.finish_reason is FinishReason.cancelled


async def test_cancellation_from_outside_passes_through_and_closes_the_model_call() -> None:
    model = Hanging()
    with anyio.move_on_after(0.05) as scope:
        await Agent(PROVIDER, middleware=[model]).send("hi")
    assert scope.cancelled_caught
    assert model.ended


async def test_leaving_the_block_closes_what_is_under_way() -> None:
    a, script = agent(says("a long text", call("t")))
    async with a.run("hi") as run:
        async for event in run:
            if isinstance(event, PartDelta) and event.delta == "a l":
                break
    assert script.closed == 1


async def test_iterating_in_two_goes_loses_nothing() -> None:
    a, _ = agent(says("text"))
    async with a.run("hi") as run:
        first: list[Event] = []
        async for event in run:
            first.append(event)
            if isinstance(event, PartStarted):
                break
        assert (await run.result()).output == "text"


async def test_tools_see_deps_the_run_and_the_conversation() -> None:
    seen: list[ToolContext[str]] = []

    @tool
    async def look(ctx: ToolContext[str], x: int) -> str:
        seen.append(ctx)
        return ctx.deps + str(x)

    a, script = agent(says(call("look", x=1)), says("end"), tools=[look])
    result = await a.send("hi", deps="dep")
    assert result.messages[2].tool_results[0].result == "dep1"
    assert [m.role for m in seen[0].messages] == [Role.USER, Role.MODEL]
    assert seen[0].call.name == "look"
    assert "ctx" not in script.requests[0].tools[0].input_schema["properties"]


async def test_chat_remembers_also_streamed_and_with_another_model() -> None:
    a, script = agent(says("one"), says("two"), says("three"))
    chat = Chat(a, history=[Message.user("old")])
    await chat.send("1")
    async for _ in chat.send_stream("2"):
        pass
    await chat.send("3", model=PROVIDER)
    assert [m.text for m in chat.history] == ["old", "1", "one", "2", "two", "3", "three"]
    assert len(script.requests[2].messages) == 6


def test_synchronous_calls_work_without_a_loop() -> None:
    a, _ = agent(says("A"))
    assert a.send_sync("hi").output == "A"
    assert "".join(c.output for c in a.send_stream_sync("hi")) == "A"
    a, _ = agent(says('{"result": 4}'))
    assert a.send_for_sync("hi", int).output == 4


async def test_synchronous_calls_work_inside_a_running_loop_and_from_threads() -> None:
    a, script = agent(says("A"))
    assert a.send_sync("hi").output == "A"
    outputs = await asyncio.gather(
        *[asyncio.to_thread(lambda: a.send_sync("hi").output) for _ in range(5)]
    )
    assert outputs == ["A"] * 5
    stream = a.send_stream_sync("hi")
    next(stream)
    next(stream)
    stream.close()
    assert script.closed == 7
    before = threading.active_count()
    await a.close()
    assert threading.active_count() == before - 1


@pytest.mark.slow
def test_a_forgotten_agent_leaves_no_thread() -> None:
    import gc

    def portals() -> set[threading.Thread]:
        return {
            thread for thread in threading.enumerate() if thread.name == "dragoman-portal"
        } - others

    others: set[threading.Thread] = set()
    others = portals()
    a, _ = agent(says("A"))
    a.send_sync("hi")
    assert len(portals()) == 1
    del a
    gc.collect()
    assert not portals()


async def test_many_runs_leave_no_task_behind() -> None:
    a, _ = agent(says("A", call("t")), says("B"))
    before = len(asyncio.all_tasks())
    await asyncio.gather(*[a.send("hi") for _ in range(50)])
    assert len(asyncio.all_tasks()) == before


async def test_a_busy_stream_gives_the_loop_back() -> None:
    """A model that never waits must not starve the other tasks."""

    class Busy:
        async def __call__(self, request: ModelRequest, _next: Any) -> AsyncIterator[Event]:
            yield MessageStarted("m", Role.MODEL)
            yield PartStarted("m", 0, OpenText())
            for _ in range(200_000):
                yield PartDelta("m", 0, "x")
                if ticks > 2:
                    return

    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await anyio.sleep(0)

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        result = await Agent(PROVIDER, middleware=[Busy()]).send("hi")
        group.cancel_scope.cancel()
    assert ticks > 2
    assert result is not None
