"""Runs of agents within tools: their events stand in the stream of the run around them, and what
they take counts there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from dragoman import (
    Agent,
    Limits,
    Message,
    ToolContext,
    Usage,
    dump_messages,
    fold,
    load_messages,
    tool,
    unfold,
)
from dragoman.errors import LimitReachedError, ProviderError
from dragoman.event import (
    Custom,
    Event,
    MessageFinished,
    MessageStarted,
    PartDelta,
    RunError,
    RunFinished,
    RunStarted,
    StateDelta,
    StateSnapshot,
    StepFinished,
    StepStarted,
    event_from_json,
    event_to_json,
)
from dragoman.fold import compact
from dragoman.message import Role
from dragoman.runs import visible
from dragoman.testing import ScriptedModel
from dragoman.testing import call as scripted_call
from dragoman.tools import Tool, handoff
from dragoman.tools.outbox import BOUND
from support.model import PROVIDER, Script, agent, call, says

pytestmark = pytest.mark.anyio


def asking(inner: Agent[Any], name: str = "delegate", **how: Any) -> Tool:
    """A tool that has an agent do something."""

    async def handler(ctx: ToolContext[Any]) -> str:
        result = await ctx.send(inner, "Do it.", run_id=f"run-{ctx.call.id}", **how)
        return f"it said: {result.output}"

    return Tool(name, "Has another do it.", handler, {"type": "object", "properties": {}})


def nested(depth: int, **how: Any) -> Agent[Any]:
    """An agent with an agent in its tool, and so on."""
    inner, _ = agent(says("Innermost.", usage=1), ids="x", **how)
    for level in range(depth):
        inner, _ = agent(
            says(f"Level {level} asks.", call("delegate", id=f"o{level}"), usage=1),
            says(f"Level {level} done.", usage=1),
            tools=[asking(inner)],
            ids=f"level{level}-",
            **how,
        )
    return inner


async def told(a: Agent[Any], prompt: Any = "Go.", **how: Any) -> tuple[list[Event], Any]:
    async with a.run(prompt, **how) as run:
        events = [event async for event in run]
        return events, await run.result()


def runs_of(events: Sequence[Event]) -> dict[str, str | None]:
    """Each run and the one around it."""
    return {event.run_id: event.parent_run_id for event in events if isinstance(event, RunStarted)}


@pytest.mark.parametrize("depth", [1, 2, 3])
async def test_events_of_inner_runs_stand_in_the_stream_with_their_own_run_id(depth: int) -> None:
    events, result = await told(nested(depth), run_id="root")
    chain = ["root", *[f"run-o{level}" for level in reversed(range(depth))]]
    assert runs_of(events) == dict(zip(chain, [None, *chain], strict=False))
    assert fold(events) == list(result.messages)
    for level, run_id in enumerate(chain[1:]):
        texts = [message.text for message in fold(events, run_id=run_id)]
        name = depth - 2 - level
        expected = (
            ["Innermost."] if name < 0 else [f"Level {name} asks.", "", f"Level {name} done."]
        )
        assert texts == ["Do it.", *expected]
    starts = [event for event in events if isinstance(event, MessageStarted)]
    assert len({event.message_id for event in starts}) == len(starts)
    ends = [event.run_id for event in events if isinstance(event, RunFinished)]
    assert ends == chain[::-1]


async def test_what_happens_in_an_inner_run_is_told_while_it_happens() -> None:
    was_read = asyncio.Event()

    @tool
    async def waits() -> int:
        await asyncio.wait_for(was_read.wait(), 30)
        return 1

    inner, _ = agent(says("I look.", call("waits", id="i")), says("Done."), tools=[waits])
    a, _ = agent(says(call("delegate", id="o")), says("Fine."), tools=[asking(inner)])
    texts = ""
    async with a.run("Go.") as run:
        async for event in run:
            if isinstance(event, PartDelta):
                texts += str(event.delta)
            if texts.endswith("I look."):
                was_read.set()
    assert texts.endswith("Fine.")


async def test_chunks_and_output_are_those_of_the_run_alone() -> None:
    @tool
    async def say(ctx: ToolContext[Any]) -> str:
        await ctx.emit("inside", 1)
        await ctx.state.patch([{"op": "add", "path": "/inside", "value": 1}])
        return "ok"

    inner, _ = agent(says("Inner text.", call("say", id="i")), says("Inner end."), tools=[say])
    a, _ = agent(says("A", call("delegate", id="o")), says("B"), tools=[asking(inner)])
    chunks = [chunk async for chunk in a.send_stream("Go.")]
    assert "".join(chunk.output for chunk in chunks) == "A\nB"
    assert [chunk.custom for chunk in chunks if chunk.custom] == []
    assert [chunk.state for chunk in chunks if chunk.state] == []
    events, result = await told(a, "Go.")
    assert result.output == "B"
    assert [
        (type(event), event.run_id) for event in events if isinstance(event, Custom | StateSnapshot)
    ] == []


async def test_events_beside_messages_say_whose_they_are() -> None:
    @tool
    async def say(ctx: ToolContext[Any]) -> str:
        await ctx.emit("inside", 1)
        await ctx.state.patch([{"op": "add", "path": "/a", "value": 1}])
        await ctx.state.patch([{"op": "add", "path": "/b", "value": 1}])
        return "ok"

    inner, _ = agent(says(call("say", id="i")), says("Inner end."), tools=[say])
    a, _ = agent(says(call("delegate", id="o")), says("B"), tools=[asking(inner)])
    events, result = await told(a)
    kinds = (Custom, StateSnapshot, StateDelta)
    assert [(type(event), event.run_id) for event in events if isinstance(event, kinds)] == [
        (kind, "run-o") for kind in kinds
    ]
    assert result.state is None
    steps = [
        (event.name, event.run_id)
        for event in events
        if isinstance(event, StepStarted | StepFinished)
    ]
    assert steps == [
        ("model call 1", None),
        *[(f"model call {number}", "run-o") for number in (1, 1, 2, 2)],
        ("model call 1", None),
        *[("model call 2", None)] * 2,
    ]
    assert [event_from_json(event_to_json(event)) for event in events] == events
    assert fold(compact(events)) == fold(events)
    assert fold(compact(events), run_id="run-o") == fold(events, run_id="run-o")


async def test_a_state_may_be_shared() -> None:
    @tool
    async def write(ctx: ToolContext[Any]) -> str:
        await ctx.state.patch([{"op": "add", "path": "/by", "value": "inner"}])
        return "ok"

    inner, _ = agent(says(call("write", id="i")), says("End."), tools=[write])
    a, _ = agent(says(call("delegate", id="o")), says("B"), tools=[asking(inner, share_state=True)])
    events, result = await told(a, state={"x": 1})
    assert result.state == {"x": 1, "by": "inner"}
    assert [event.run_id for event in events if isinstance(event, StateDelta)] == [None]


async def test_messages_that_have_one_id_are_told_apart() -> None:
    """The scripts give the ids m1, m2 to the messages of both agents, and of two that run side by
    side."""
    pair = [asking(agent(says(f"{name} says it."))[0], name) for name in ("one", "two")]
    a, _ = agent(says(call("one", id="c1"), call("two", id="c2")), says("B"), tools=pair)
    events, result = await told(a)
    assert fold(events) == list(result.messages)
    assert fold(events, run_id="run-c1")[-1].text == "one says it."
    assert fold(events, run_id="run-c2")[-1].text == "two says it."


async def test_a_client_sees_nothing_of_inner_runs() -> None:
    events, result = await told(nested(2), run_id="root")
    for retractable in (False, True):
        seen = [*visible(events, retractable=retractable)]
        assert "".join(
            str(event.delta) for event in seen if isinstance(event, PartDelta)
        ) == f"Go.{result.output}".replace("\n", "" if retractable else "\n")
        assert runs_of(seen) == {"root": None}
        assert [event.run_id for event in seen if isinstance(event, RunFinished)] == ["root"]
        assert not [event for event in seen if getattr(event, "run_id", None) not in (None, "root")]


async def test_a_run_that_is_itself_an_inner_one_is_seen_and_so_is_the_next() -> None:
    events, result = await told(nested(0), run_id="inner")
    started = events[0]
    assert isinstance(started, RunStarted)
    alone: list[Event] = [RunStarted("inner", parent_run_id="elsewhere"), *events[1:]]
    seen = [*visible([*alone, *events])]
    assert [message.text for message in fold(seen) if message.role is Role.MODEL] == [
        result.output
    ] * 2
    assert len([event for event in seen if isinstance(event, RunFinished)]) == 2


async def test_the_error_of_an_inner_run_is_the_result_of_the_tool_alone() -> None:
    inner, _ = agent(ProviderError("it broke"))
    a, _ = agent(says(call("delegate", id="o")), says("B"), tools=[asking(inner)])
    events, result = await told(a)
    assert result.output == "B"
    assert "it broke" in result.messages[2].tool_results[0].result["error"]
    errors = [event for event in events if isinstance(event, RunError)]
    assert [event.run_id for event in errors] == ["run-o"]
    assert isinstance([*visible(events)][-1], RunFinished)


async def test_an_inner_run_does_not_outrun_the_reader() -> None:
    pulled = 0

    async def endless(_request: Any, _next: Any) -> Any:
        nonlocal pulled
        begin, start, _, *end = unfold([says("x").replace(id="long")])
        yield begin
        yield start
        while pulled < 20 * BOUND:
            pulled += 1
            yield PartDelta("long", 0, "word ")
        for event in end:
            yield event

    inner = Agent(PROVIDER, middleware=[endless])
    a, _ = agent(says(call("delegate", id="o")), says("B"), tools=[asking(inner)])
    async with a.run("Go.") as run:
        async for event in run:
            if isinstance(event, PartDelta) and event.delta == "word ":
                break
        before = pulled
        for _ in range(50):
            await asyncio.sleep(0)
        assert pulled <= before + 2 * BOUND < 20 * BOUND


# what it takes


@pytest.mark.parametrize("depth", [1, 2, 3])
async def test_usage_counts_once_streamed_and_whole(depth: int) -> None:
    result = await nested(depth).send("Go.", run_id="root")
    calls = 2 * depth + 1
    assert result.usage == Usage(input_tokens=0, output_tokens=calls, total_tokens=calls)
    assert {each.run_id for each in result.calls} == {
        "root",
        *[f"run-o{level}" for level in range(depth)],
    }
    chunks = [chunk async for chunk in nested(depth).send_stream("Go.")]
    assert sum((chunk.usage for chunk in chunks if chunk.usage), Usage()) == result.usage
    assert len([each for chunk in chunks for each in chunk.calls]) == len(result.calls) == calls
    events, _ = await told(nested(depth))
    ends = [event.usage for event in events if isinstance(event, RunFinished)]
    assert [usage and usage.total_tokens for usage in ends] == list(range(1, calls + 1, 2))


async def test_what_a_failed_inner_run_took_counts() -> None:
    inner, _ = agent(says(call("none", id="i"), usage=5), ProviderError("it broke"))
    a, _ = agent(says(call("delegate", id="o"), usage=1), says("B", usage=1), tools=[asking(inner)])
    result = await a.send("Go.")
    assert result.usage is not None
    assert result.usage.total_tokens == 7


@pytest.mark.parametrize(
    ("limits", "word"),
    [
        (Limits(model_calls=3), "3 model calls"),
        (Limits(tool_calls=2), "2 tool calls"),
        (Limits(total_tokens=3), "3 total tokens"),
    ],
)
async def test_a_limit_of_the_run_ends_it_wherever_it_is_met(limits: Limits, word: str) -> None:
    """The innermost meets it, three levels down, and none of those around it goes on."""
    a = nested(3)
    with pytest.raises(LimitReachedError, match=word) as raised:
        await a.send("Go.", limits=limits)
    assert raised.value.result is not None
    assert raised.value.result.messages[-1].tool_results
    events = [event async for event in _until_failed(a, limits=limits)]
    errors = [event for event in events if isinstance(event, RunError)]
    assert len(errors) == len(runs_of(events))
    assert all(isinstance(event.error, LimitReachedError) for event in errors)


async def _until_failed(a: Agent[Any], **how: Any) -> Any:
    async with nested(3).run("Go.", **how) as run:
        async for event in run:
            yield event


async def test_a_limit_of_the_inner_run_is_an_error_of_its_tool() -> None:
    inner, _ = agent(says(call("none", id="i")), limits=Limits(model_calls=2))
    a, _ = agent(says(call("delegate", id="o")), says("B"), tools=[asking(inner)])
    result = await a.send("Go.", limits=Limits(model_calls=10))
    assert result.output == "B"
    assert "2 model calls" in result.messages[2].tool_results[0].result["error"]


async def test_ids_and_what_the_caller_passed_are_inherited() -> None:
    seen: list[ToolContext[Any]] = []

    @tool
    async def look(ctx: ToolContext[Any]) -> str:
        seen.append(ctx)
        return "ok"

    inner, _ = agent(says(call("look", id="i")), says("End."), tools=[look])
    for _ in range(2):
        inner, _ = agent(says(call("delegate", id="o")), says("B"), tools=[asking(inner)])
    passed = {
        "deps": 1,
        "thread_id": "t",
        "resource_id": "r",
        "context": ("c",),
        "metadata": {"m": 1},
    }
    events, _ = await told(inner, **passed)
    (ctx,) = seen
    assert (ctx.deps, ctx.thread_id, ctx.resource_id, ctx.context, ctx.metadata) == (
        1,
        "t",
        "r",
        ("c",),
        {"m": 1},
    )
    assert {
        (event.thread_id, event.resource_id) for event in events if isinstance(event, RunStarted)
    } == {("t", "r")}


# the end


@pytest.mark.parametrize("depth", [1, 2, 3])
async def test_cancelling_ends_all_inner_runs_at_once(depth: int) -> None:
    left: list[str] = []
    runs: list[Any] = []

    @tool
    async def sleeps() -> str:
        runs[0].cancel()
        try:
            await asyncio.sleep(60)
        finally:
            left.append("ended")
        return "never"

    inner, _ = agent(says("I wait.", call("sleeps", id="s")), tools=[sleeps])
    for level in range(depth):
        inner, _ = agent(says(call("delegate", id=f"o{level}")), tools=[asking(inner)])
    async with inner.run("Go.") as run:
        runs.append(run)
        events = [event async for event in run]
        result = await run.result()
    assert left == ["ended"]
    assert [event.outcome for event in events if isinstance(event, RunFinished)] == [
        "cancelled"
    ] * (depth + 1)
    assert fold(events) == list(result.messages)
    opened = [event.message_id for event in events if isinstance(event, MessageStarted)]
    assert sorted(opened) == sorted(
        event.message_id for event in events if isinstance(event, MessageFinished)
    )
    steps = [(event.name, event.run_id) for event in events if isinstance(event, StepStarted)]
    assert sorted(steps, key=str) == sorted(
        [(event.name, event.run_id) for event in events if isinstance(event, StepFinished)], key=str
    )


async def test_a_tool_that_is_out_of_time_ends_its_agent() -> None:
    @tool
    async def sleeps() -> str:
        await asyncio.sleep(60)
        return "never"

    inner, _ = agent(says("I wait.", call("sleeps", id="s")), tools=[sleeps])
    slow = Tool(
        "delegate", "", asking(inner).handler, {"type": "object", "properties": {}}, timeout=0.3
    )
    a, _ = agent(says(call("delegate", id="o")), says("B"), tools=[slow])
    events, result = await told(a)
    assert "did not finish" in result.messages[2].tool_results[0].result["error"]
    assert next(
        (event.run_id, event.outcome) for event in events if isinstance(event, RunFinished)
    ) == (
        "run-o",
        "cancelled",
    )


# side by side


@given(
    st.lists(
        st.lists(st.text("abc ", min_size=1, max_size=8), min_size=1, max_size=3),
        min_size=1,
        max_size=4,
    ),
    st.integers(1, 4),
)
def test_inner_runs_side_by_side_fold_each_to_its_own(texts: list[list[str]], piece: int) -> None:
    """Whatever they say and in whatever pieces: the laws hold for the run and for each within
    it."""

    @tool
    async def yields() -> str:
        await asyncio.sleep(0)
        return "ok"

    async def go() -> tuple[list[Event], Any]:
        tools: list[Tool] = []
        for number, each in enumerate(texts):
            answers = [*[says(text, call("yields", id="y")) for text in each[:-1]], says(each[-1])]
            inner, script = agent(*answers, tools=[yields])
            script.piece = piece
            tools.append(asking(inner, f"t{number}"))
        calls = [call(f"t{number}", id=f"c{number}") for number in range(len(texts))]
        a, _ = agent(says(*calls), says("Done."), tools=tools)
        return await told(a)

    events, result = asyncio.run(go())
    for stream in (
        events,
        compact(events),
        [event_from_json(event_to_json(event)) for event in events],
    ):
        assert fold(stream) == list(result.messages)
        for number, each in enumerate(texts):
            said = fold(stream, run_id=f"run-c{number}")
            assert [message.text for message in said if message.role is Role.MODEL] == each
    assert [message.text for message in fold(visible(events)) if message.role is Role.MODEL] == [
        "Done."
    ]


async def test_it_is_a_message_of_the_history_alone() -> None:
    """What an inner run said is not in the history, and going on with it asks nobody twice."""
    result = await nested(1).send("Go.")
    assert [message.role for message in result.messages] == [
        Role.USER,
        Role.MODEL,
        Role.USER,
        Role.MODEL,
    ]
    assert isinstance(result.messages[0], Message)


async def test_two_that_wait_side_by_side_are_answered_one_by_one() -> None:
    ran: list[str] = []

    @tool(requires_approval=True)
    def act(what: str) -> str:
        ran.append(what)
        return f"did {what}"

    def made(*left: int) -> Agent[Any]:
        tools: list[Tool] = []
        for number, skip in enumerate(left):
            said = [
                says(call("act", id="x", what=str(number)), usage=1),
                says(f"{number} done.", usage=1),
            ][skip:]
            tools.append(asking(agent(*said, tools=[act], ids=f"in{number}-")[0], f"t{number}"))
        outer = [
            says(call("t0", id="c0"), call("t1", id="c1"), usage=1),
            says("All done.", usage=1),
        ]
        return agent(*outer[max(left) :], tools=tools, ids="out-")[0]

    events, first = await told(made(0, 0))
    assert [each.id for each in first.pending] == ["c0/x", "c1/x"]
    assert [event.outcome for event in events if isinstance(event, RunFinished)] == ["pending"] * 3
    assert fold(events) == list(first.messages)
    second = await made(1, 1).send(
        None, history=first.messages, resume=[first.pending[1].approve()]
    )
    assert [each.id for each in second.pending] == ["c0/x"]
    history = [*first.messages, *second.messages]
    third = await made(1, 1).send(None, history=history, resume=[second.pending[0].approve()])
    assert (third.output, ran) == ("All done.", ["1", "0"])
    spent = [each.usage.total_tokens for each in (first, second, third) if each.usage]
    assert spent == [3, 1, 2]


async def test_a_tool_may_ask_several_agents_at_once_and_then_a_person() -> None:
    """Those that came to their end are not asked again, whichever was the first to do so."""
    order: list[asyncio.Event] = [asyncio.Event(), asyncio.Event()]
    scripts: list[Any] = []

    async def slow(request: Any, next: Any) -> Any:
        await order[0].wait()
        async for event in next(request):
            yield event

    async def quick(request: Any, next: Any) -> Any:
        async for event in next(request):
            yield event
        order[0].set()

    helpers: list[Agent[Any]] = []
    for name, layer in (("slow", slow), ("quick", quick)):
        scripts.append(Script(says(f"{name}.")))
        helpers.append(Agent(PROVIDER, middleware=[layer, scripts[-1]]))

    @tool
    async def survey(ctx: ToolContext[Any]) -> str:
        results = await asyncio.gather(*[ctx.send(each, "?") for each in helpers])
        return " ".join([*[each.output for each in results], ctx.ask("Well?")])

    a, _ = agent(says(call("survey", id="c")), says("Done."), tools=[survey])
    first = await a.send("Go.")
    second = await a.send(None, history=first.messages, resume=[first.pending[0].answer("Yes.")])
    assert second.messages[0].tool_results[0].result == "slow. quick. Yes."
    assert [len(script.requests) for script in scripts] == [1, 1]


class Trip(BaseModel):
    city: str


async def test_a_typed_answer_is_the_same_value_when_the_tool_is_run_again() -> None:
    helper, script = agent(says('{"city":"Oslo"}'))
    seen: list[Any] = []

    @tool
    async def plan(ctx: ToolContext[Any]) -> str:
        seen.append((await ctx.send(helper, "?", output_type=Trip)).output)
        return f"{seen[-1].city} {ctx.ask('When?')}"

    a, _ = agent(says(call("plan", id="c")), says("Done."), tools=[plan])
    first = await a.send("Go.")
    second = await a.send(
        None,
        history=load_messages(dump_messages(first.messages)),
        resume=[first.pending[0].answer("now")],
    )
    assert second.messages[0].tool_results[0].result == "Oslo now"
    assert seen == [Trip(city="Oslo")] * 2
    assert len(script.requests) == 1


@pytest.mark.parametrize("depth", [1, 2])
async def test_a_bound_of_dollars_holds_for_inner_runs_too(depth: int) -> None:
    def made() -> Agent[Any]:
        inner = Agent(ScriptedModel.like("openai:gpt-4o", [scripted_call("nothing"), "x"]))
        for _ in range(depth):
            answers = [scripted_call("ask", prompt="?"), "y"]
            inner = Agent(
                ScriptedModel.like("openai:gpt-4o", answers), tools=[inner.as_tool("ask")]
            )
        return inner

    cost = (await made().send("Go.")).cost
    assert cost
    with pytest.raises(LimitReachedError, match="US dollars") as raised:
        await made().send("Go.", limits=Limits(cost=cost / 3))
    assert raised.value.result is not None
    assert raised.value.result.cost is not None
    assert raised.value.result.cost < cost


async def test_time_that_is_up_ends_inner_runs() -> None:
    runs: list[Any] = []

    @tool
    async def sleeps() -> str:
        runs[0]._expire()
        await asyncio.sleep(60)
        return "never"

    inner, _ = agent(says(call("sleeps", id="s")), tools=[sleeps])
    for level in range(2):
        inner, _ = agent(says(call("delegate", id=f"o{level}")), tools=[asking(inner)])
    async with inner.run("Go.", limits=Limits(seconds=600)) as run:
        runs.append(run)
        events = [event async for event in run]
        with pytest.raises(LimitReachedError, match="seconds"):
            await run.result()
    assert [event.run_id for event in events if isinstance(event, RunFinished)] == [
        "run-o0",
        "run-o1",
    ]
    assert isinstance(events[-1], RunError)


async def test_time_that_is_up_while_the_reader_pauses_ends_inner_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A reader gives others their turn now and then, and is in no step of the run meanwhile."""
    monkeypatch.setattr("dragoman.run._BUSY_SECONDS", -1.0)
    ended: list[str] = []

    @tool
    async def sleeps(ctx: ToolContext[Any]) -> str:
        await ctx.emit("asleep", None)
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("sleeps")
        return "never"

    inner, _ = agent(says(call("sleeps", id="s")), tools=[sleeps])
    outer, _ = agent(says(call("delegate", id="o")), tools=[asking(inner)])
    events: list[Event] = []
    async with outer.run("Go.", limits=Limits(seconds=600)) as run:
        async for event in run:
            events.append(event)
            if isinstance(event, Custom):
                asyncio.get_running_loop().call_soon(run._expire)
    assert ended == ["sleeps"]
    assert [event.run_id for event in events if isinstance(event, RunFinished)] == ["run-o"]
    assert isinstance(events[-1], RunError)


async def test_who_asks_a_model_knows_the_run_around() -> None:
    helper, script = agent(says("ok"))
    a, _ = agent(says(call("delegate", id="o")), says("B"), tools=[asking(helper)])
    await a.send("Go.", run_id="root", resource_id="Ada")
    info = script.requests[0].run
    assert info is not None
    assert (info.run_id, info.parent_run_id, info.resource_id) == ("run-o", "root", "Ada")


@pytest.mark.parametrize("over", [False, True], ids=["tool", "hand-off"])
async def test_leaving_a_run_in_the_middle_of_an_inner_one_leaves_nothing_behind(
    over: bool,
) -> None:
    inner, script = agent(says("a long answer " * 50), ids="i")
    tools = [handoff(inner, "it")] if over else [asking(inner)]
    a, _ = agent(
        says(call("transfer_to_it" if over else "delegate", id="o")),
        says("B"),
        tools=tools,
        ids="o",
    )
    before = asyncio.all_tasks()
    async with a.run("Go.") as run:
        async for event in run:
            if isinstance(event, PartDelta) and event.message_id == "i1":
                break
    assert script.closed == 1
    assert asyncio.all_tasks() == before
    stream = a.send_stream("Go.")
    async for _ in stream:
        if script.requests[1:]:
            break
    await stream.aclose()
    assert asyncio.all_tasks() == before


async def test_a_step_of_an_inner_run_voids_nothing_of_a_typed_one() -> None:
    @tool
    def ask(ctx: ToolContext[Any]) -> str:
        return ctx.ask("Sure?")

    def made() -> Agent[Any]:
        inner, _ = agent(says(call("ask", id="i")), tools=[ask], ids="i")
        return agent(says("Hm.", call("delegate", id="o")), tools=[asking(inner)], ids="o")[0]

    async with made().run("Go.", output_type=Trip) as run:
        result: Any = await run.result()
    assert result.pending
    assert result.output == "Hm."
    assert (
        "".join(
            [
                chunk.output
                async for chunk in made().send_stream("Go.", output_schema={"type": "object"})
            ]
        )
        == "Hm."
    )
