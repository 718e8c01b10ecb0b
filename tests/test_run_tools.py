"""What tools say while they run is seen while they run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

import jsonpatch
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import Agent, ModelRequest, ToolContext, fold, tool
from dragoman.errors import ProviderError
from dragoman.event import (
    Custom,
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
    StateDelta,
    StateSnapshot,
    StepFinished,
    StepStarted,
)
from dragoman.message import ToolResultPart
from dragoman.model.middleware import Next
from dragoman.orchestration import DefaultStreamingOrchestrator
from dragoman.testing import ScriptedModel
from dragoman.tools import AskUser, ParallelToolExecutor, SignIn, ToolExecutionResult, ToolExecutor
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
    """In the stream in the order in which they are done, in the message in the order of the
    calls."""
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


async def events_of(a: Agent[Any], **how: Any) -> tuple[list[Event], Any]:
    """A run's events and what there is of it at its end, which are the same."""
    async with asyncio.timeout(20), a.run("hi", **how) as run:
        events = [event async for event in run]
        result = run.so_far()
    assert tuple(fold(events)) == result.messages
    check_closed(events)
    return events, result


def check_closed(events: list[Event]) -> None:
    """Whatever was opened is closed, or taken back, before the run ends."""
    messages: set[str] = set()
    parts: set[tuple[str, int]] = set()
    steps: set[str] = set()
    for event in events:
        match event:
            case MessageStarted():
                messages.add(event.message_id)
            case MessageFinished():
                messages.remove(event.message_id)
            case MessageDropped():
                messages.discard(event.message_id)
                parts = {part for part in parts if part[0] != event.message_id}
            case PartStarted():
                if not isinstance(
                    event.part, OpenText
                ):  # of a text that never comes there is nothing to close
                    parts.add((event.message_id, event.index))
            case PartDelta():
                parts.add((event.message_id, event.index))
            case PartFinished():
                parts.discard((event.message_id, event.index))
            case StepStarted():
                steps.add(event.name)
            case StepFinished():
                steps.remove(event.name)
            case RunFinished() | RunError():
                assert not (messages or parts or steps)
            case _:
                pass
    assert isinstance(events[-1], RunFinished | RunError)


@given(st.permutations(range(4)), st.integers(1, 4))
def test_any_order_in_which_tools_are_done_gives_the_same_messages(
    order: list[int], concurrency: int
) -> None:
    """A tool ends when all that are to end before it have, as far as so many run at once."""

    async def go() -> Any:
        done = [asyncio.Event() for _ in order]

        @tool
        async def work(ctx: ToolContext, n: int) -> int:
            ctx.emit("at", n)
            for other in order[: order.index(n)]:
                if other < concurrency and n < concurrency:
                    await done[other].wait()
            done[n].set()
            return n

        asked = says(*[call("work", id=f"c{n // 2}", n=n) for n in range(4)])
        a, script = agent(
            asked, says("ok"), tools=[work], executor=ParallelToolExecutor(concurrency)
        )
        script.piece = 1000
        events, result = await events_of(a)
        told = [result.result for result in results_of(events)]
        assert sorted(told) == [0, 1, 2, 3]
        assert [message.content for message in result.messages[1:]] == [
            asked.content,
            tuple(ToolResultPart(f"c{n // 2}", "work", n) for n in range(4)),
            says("ok").content,
        ]
        if concurrency == 4:
            assert told == order
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(go())


def results_of(events: list[Event]) -> list[ToolResultPart]:
    """Results in the order in which they are told."""
    parts = [event.part for event in events if isinstance(event, PartFinished)]
    return [part for part in parts if isinstance(part, ToolResultPart)]


STEPS = st.lists(st.sampled_from(["emit", "progress", "patch", "bad patch", "pause"]), max_size=4)
ENDS = st.sampled_from(["value", "error", "ask", "hang"])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(STEPS, ENDS), min_size=1, max_size=4),
    st.none() | st.integers(0, 25),
    st.booleans(),
)
@pytest.mark.slow
def test_the_events_fold_to_the_messages_whatever_tools_do_and_whenever_it_is_cancelled(
    scripts: list[tuple[list[str], str]], cancel_after: int | None, fails: bool
) -> None:
    async def go() -> None:
        @tool
        async def work(ctx: ToolContext, n: int) -> int:
            what, end = scripts[n]
            for each in what:
                if each == "emit":
                    await ctx.emit("e", n)
                elif each == "progress":
                    ctx.progress(n, 4)
                elif each == "pause":
                    await asyncio.sleep(0)
                else:
                    await ctx.state.patch(
                        [{"op": "add", "path": f"/{n}", "value": n}]
                        if each == "patch"
                        else [{"op": "remove", "path": "/no"}]
                    )
            if end == "error":
                raise ValueError("no")
            if end == "ask":
                raise AskUser("which?")
            if end == "hang":
                await asyncio.Event().wait()
            return n

        hangs = any(end == "hang" and "bad patch" not in what for what, end in scripts)
        most = 12 if hangs and cancel_after is None else cancel_after
        last = ProviderError("gone") if fails else says("ok")
        calls = [call("work", id=f"c{n}", n=n) for n in range(len(scripts))]
        a, _ = agent(says("let me see", *calls), last, tools=[work])
        events: list[Event] = []
        async with asyncio.timeout(20), a.run("hi", state={}) as run:
            stop = asyncio.get_running_loop().call_later(0.05, run.cancel) if hangs else None
            async for event in run:
                events.append(event)
                if most is not None and len(events) > most:
                    run.cancel()
            result = run.so_far()
            if stop is not None:
                stop.cancel()
        assert tuple(fold(events)) == result.messages
        check_closed(events)
        state: Any = None
        for event in events:
            if isinstance(event, StateSnapshot):
                state = event.state
            elif isinstance(event, StateDelta):
                state = jsonpatch.apply_patch(state, [*event.operations])
        assert state == result.state
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(go())


async def test_a_slow_reader_eats_no_time_of_tools_and_leaving_awaits_them() -> None:
    """Tools go on while nobody reads."""
    ended: list[str] = []
    done, before = asyncio.Event(), asyncio.all_tasks()

    @tool(timeout=30)
    async def work(ctx: ToolContext) -> str:
        ctx.emit("begun")
        await asyncio.sleep(0)
        done.set()
        return "fine"

    @tool
    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("hang")

    a, _ = agent(says(call("work"), call("hang", id="c2")), says("ok"), tools=[work, hang])
    async with asyncio.timeout(10), a.run("hi") as run:
        async for event in run:
            if isinstance(event, Custom):
                await done.wait()  # the reader reads nothing meanwhile
                break
    assert ended == ["hang"]
    assert asyncio.all_tasks() == before


async def test_cancel_ends_tools_at_once_though_nobody_reads() -> None:
    ended = asyncio.Event()

    @tool
    async def hang(ctx: ToolContext) -> None:
        ctx.emit("begun")
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    a, _ = agent(says(call("hang")), says("ok"), tools=[hang])
    async with asyncio.timeout(10), a.run("hi") as run:
        async for event in run:
            if isinstance(event, Custom):
                run.cancel()
                await ended.wait()
        assert (await run.result()).finish_reason == "cancelled"


async def test_what_was_done_before_a_cancel_stands() -> None:
    @tool
    async def quick() -> str:
        return "done"

    @tool
    async def hang() -> None:
        await asyncio.Event().wait()

    a, _ = agent(says(call("hang"), call("quick", id="c2")), says("ok"), tools=[hang, quick])
    events: list[Event] = []
    async with asyncio.timeout(10), a.run("hi") as run:
        async for event in run:
            events.append(event)
            if results_of([event]):
                run.cancel()
        result = await run.result()
    assert result.messages[-1].content == (ToolResultPart("c2", "quick", "done"),)
    assert tuple(fold(events)) == result.messages
    check_closed(events)


async def test_an_awaited_emission_waits_at_the_bound_and_one_that_is_not_is_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("dragoman.tools.outbox.BOUND", 5)
    at: list[int] = []
    seen: list[int] = []

    @tool
    async def polite(ctx: ToolContext) -> None:
        for n in range(100):
            await ctx.emit("n", n)
            at.append(n)

    @tool
    async def rude(ctx: ToolContext) -> None:
        for n in range(100):
            ctx.emit("n", n)

    for work in (polite, rude):
        seen.clear()
        a, _ = agent(says(call(work.name)), says("ok"), tools=[work])
        async with asyncio.timeout(10), a.run("hi") as run:
            async for event in run:
                if isinstance(event, Custom):
                    seen.append(event.value)
                    for _ in range(10):  # a slow reader
                        await asyncio.sleep(0)
                    if work is polite:
                        assert len(at) <= len(seen) + 2 * 5 + 1
        assert seen == list(range(100))
        assert len(
            [record for record in caplog.records if "beyond the bound" in record.message]
        ) == (work is rude)


async def test_plain_functions_emit_from_their_threads() -> None:
    go_on = threading.Event()

    @tool
    def work(ctx: ToolContext) -> str:
        ctx.progress(1, 2, "half")
        assert go_on.wait(10)
        ctx.state.patch([{"op": "replace", "path": "/n", "value": 1}])
        return "done"

    a, _ = agent(says(call("work")), says("ok"), tools=[work])
    seen: list[Any] = []
    async with asyncio.timeout(10):
        async for event in a.send_events("hi", state={"n": 0}):
            if isinstance(event, Custom):
                seen.append((event.name, event.value))
                go_on.set()
            elif isinstance(event, StateSnapshot | StateDelta):
                seen.append(event)
    assert seen == [
        StateSnapshot({"n": 0}),
        ("tool_progress", {"call_id": "c1", "done": 1, "total": 2, "message": "half"}),
        StateDelta(({"op": "replace", "path": "/n", "value": 1},)),
    ]


async def test_a_thread_that_is_left_to_itself_says_nothing_after_the_run() -> None:
    go_on, ended = threading.Event(), threading.Event()

    @tool
    def work(ctx: ToolContext) -> None:
        ctx.emit("begun")
        go_on.wait(10)
        ctx.emit("late")
        ended.set()

    a, _ = agent(says(call("work")), says("ok"), tools=[work])
    events: list[Event] = []
    async with asyncio.timeout(20), a.run("hi") as run:
        async for event in run:
            events.append(event)
            if isinstance(event, Custom):
                run.cancel()
        go_on.set()
        assert await asyncio.to_thread(ended.wait, 10)
        events += [event async for event in run]
    assert [event.name for event in events if isinstance(event, Custom)] == ["begun"]


async def test_a_generators_values_are_preliminary_results_and_the_last_is_the_result() -> None:
    @tool
    async def count() -> AsyncGenerator[int, None]:
        for n in range(3):
            yield n

    @tool
    def plain() -> Any:
        yield "a"
        yield "b"

    a, _ = agent(says(call("count"), call("plain", id="c2")), says("ok"), tools=[count, plain])
    events, result = await events_of(a)
    told = [
        event.value
        for event in events
        if isinstance(event, Custom) and event.name == "tool_preliminary"
    ]
    for call_id, name, values in (("c1", "count", [0, 1, 2]), ("c2", "plain", ["a", "b"])):
        assert [each for each in told if each["call_id"] == call_id] == [
            {"call_id": call_id, "name": name, "result": value} for value in values
        ]
    assert [part.result for part in result.messages[2].tool_results] == [2, "b"]


async def test_a_tool_that_asks_leaves_its_call_pending_and_the_results_of_the_others_stand() -> (
    None
):
    @tool
    async def ask() -> str:
        raise AskUser("Which one?", {"type": "string"})

    @tool
    async def sign_in() -> str:
        raise SignIn("https://example.org/login")

    @tool
    async def other() -> int:
        return 1

    calls = [call("ask"), call("other", id="c2"), call("sign_in", id="c3")]
    for executor in (None, ToolExecutor()):
        a, script = agent(says(*calls), says("ok"), tools=[ask, sign_in, other], executor=executor)
        events, result = await events_of(a)
        assert len(script.requests) == 1
        assert result.messages[-1].parts == (ToolResultPart("c2", "other", 1),)
        question, login = result.pending
        assert (question.reason, question.message, question.schema) == (
            "input",
            "Which one?",
            {"type": "string"},
        )
        assert (login.reason, login.metadata["url"]) == ("auth", "https://example.org/login")
        assert (question.call, login.call) == (calls[0], calls[2])
        assert isinstance(events[-1], RunFinished) and events[-1].pending == result.pending


async def test_a_patch_that_does_not_fit_is_the_tools_error_and_changes_nothing() -> None:
    @tool
    async def work(ctx: ToolContext) -> None:
        await ctx.state.patch(
            [{"op": "add", "path": "/a", "value": 1}, {"op": "remove", "path": "/none"}]
        )

    a, _ = agent(says(call("work")), says("ok"), tools=[work])
    events, result = await events_of(a, state={"b": 2})
    assert result.state == {"b": 2}
    assert not [event for event in events if isinstance(event, StateDelta)]
    (part,) = result.messages[2].tool_results
    assert part.is_error and "cannot be patched" in part.result["error"]


async def test_executors_and_orchestrators_of_the_users_own_tell_results_when_their_batch_returns() -> (
    None
):
    class Loud(ParallelToolExecutor):
        async def execute_batch(
            self, calls: Any, tools: Any, context: Any = None
        ) -> list[ToolExecutionResult]:
            results = await super().execute_batch(calls, tools, context)
            return [
                msgspec.structs.replace(one, part=msgspec.structs.replace(one.part, result="x"))
                for one in results
            ]

    class Hiding(DefaultStreamingOrchestrator):
        async def execute_tool_calls(self, state: Any, calls: Any) -> list[ToolResultPart]:
            results = await super().execute_tool_calls(state, calls)
            return [msgspec.structs.replace(part, result="x") for part in results]

    @tool
    async def work(ctx: ToolContext) -> str:
        await ctx.emit("at work")
        return "secret"

    hows: list[dict[str, Any]] = [{"executor": Loud()}, {"orchestrator": Hiding}]
    for how in hows:
        a, _ = agent(says(call("work"), call("work", id="c2")), says("ok"), tools=[work], **how)
        events, result = await events_of(a)
        assert [part.result for part in result.messages[2].tool_results] == ["x", "x"]
        assert "secret" not in repr(events)
        assert len([event for event in events if isinstance(event, Custom)]) == 2


async def test_events_of_messages_and_runs_cannot_be_emitted() -> None:
    @tool
    async def work(ctx: ToolContext) -> None:
        ctx.emit(RunFinished("r"))

    a, _ = agent(says(call("work")), says("ok"), tools=[work])
    _, result = await events_of(a)
    assert "a tool cannot emit RunFinished" in result.messages[2].tool_results[0].result["error"]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire", ["openai_chat", "anthropic", "google", "openai_responses"])
async def test_tools_at_work_on_every_wire_streamed_and_whole(wire: str, stream: bool) -> None:
    """The second call is done first; the provider gets the results in the order of its calls."""
    second_is_told = asyncio.Event()

    @tool
    async def work(ctx: ToolContext, n: int) -> str:
        await ctx.progress(n)
        if n == 0:
            await second_is_told.wait()
        return f"result {n}"

    def whole(request: ModelRequest, next_: Next) -> AsyncIterator[Event]:
        return next_(request.replace(stream=stream))

    model = ScriptedModel([[call("work", id=f"c{n}", n=n) for n in range(2)], "Done."], wire=wire)
    a = Agent(model, tools=[work], middleware=[whole])
    told: list[Any] = []
    async with asyncio.timeout(10), a.run("hi") as run:
        async for event in run:
            told += (
                [event.value["done"]]
                if isinstance(event, Custom)
                else [each.result for each in results_of([event])]
            )
            if told[-1:] == ["result 1"]:
                second_is_told.set()
        result = await run.result()
    assert told == [0, 1, "result 1", "result 0"]
    assert [part.result for part in result.messages[2].tool_results] == ["result 0", "result 1"]
    sent = [part.result for message in model.requests[1].messages for part in message.tool_results]
    assert sent == ["result 0", "result 1"]
    assert result.output == "Done."
