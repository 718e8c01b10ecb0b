"""Whole lists of events, one for each kind of run, so that one that is missing is noticed; and what
the same runs stream."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman import (
    Agent,
    Capability,
    Custom,
    Limits,
    Message,
    Tool,
    ToolCallPart,
    ToolResultPart,
    Usage,
    fold,
    tool,
    unfold,
)
from dragoman.errors import DragomanError, LimitReachedError, ProviderError, TypedOutputError
from dragoman.event import (
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
    RunStarted,
    StepFinished,
    StepStarted,
    ToolStarted,
)
from dragoman.fold import parse_call
from dragoman.message import FinishReason, Role, TextPart, ThinkingPart
from support.model import FORCING, PROVIDER, agent, call, says, waiting, waits_for

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"z": {"type": "integer"}}, "required": ["z"]}
APART = msgspec.structs.replace(
    PROVIDER, capabilities=PROVIDER.capabilities - {Capability.typed_output_with_tools}
)


@tool
async def t(x: int = 0) -> int:
    """Adds one."""
    return x + 1


async def events_of(a: Agent[Any], **how: Any) -> list[Event]:
    async with a.run("hi", **how) as run:
        return [event async for event in run]


def whole(message: Message, message_id: str, piece: int = 1000) -> list[Event]:
    """The events of a scripted message that comes in one piece a part."""
    return unfold([message.replace(id=message_id)])


def told(events: list[Event]) -> list[Event]:
    """Events without what no test can know: ids of the run's own, times; and without turns, which
    have tests of their own."""
    ids: dict[str, str] = {}

    def plain(value: Any) -> Any:
        return ids.setdefault(value, f"own{len(ids)}") if len(value) == 32 else value

    out: list[Event] = []
    for event in events:
        changes = {
            name: plain(value)
            for name in ("run_id", "thread_id", "message_id")
            if (value := getattr(event, name, None)) is not None
        }
        if isinstance(event, MessageStarted):
            changes |= {"created_at": None, "turn": None}
        out.append(msgspec.structs.replace(event, **changes) if changes else event)
    return out


RUN, PROMPT, OTHER = "own0", "own1", "own2"
ASKED = unfold([Message.user("hi").replace(id=PROMPT)])
BEGIN = [RunStarted(RUN, RUN), *ASKED]
BEGUN = ToolStarted("c1", "t")
BEGIN_TYPED = [RunStarted(RUN, RUN, typed="text"), *ASKED]


def scripted(*answers: Any, **how: Any) -> Agent[Any]:
    a, script = agent(*answers, **how)
    script.piece = 1000
    return a


def step(number: int, *inside: Event) -> list[Event]:
    name = f"model call {number}"
    return [StepStarted(name), *inside, StepFinished(name)]


async def test_text() -> None:
    answer = says(ThinkingPart("hm"), "A", usage=3)
    events = await events_of(scripted(answer))
    assert told(events) == [
        *BEGIN,
        *step(1, *whole(answer, "m1")),
        RunFinished(RUN, "success", answer.usage, result="A"),
    ]


async def test_tools() -> None:
    calls, answer = says("A", call("t", x=1), usage=1), says("B", usage=2)
    results = Message.user(ToolResultPart("c1", "t", 2)).replace(id=OTHER)
    events = await events_of(scripted(calls, answer, tools=[t]))
    assert told(events) == [
        *BEGIN,
        *step(1, *whole(calls, "m1"), BEGUN, *unfold([results])),
        *step(2, *whole(answer, "m2")),
        RunFinished(
            RUN, "success", Usage(input_tokens=0, output_tokens=3, total_tokens=3), result="A\nB"
        ),
    ]


async def test_d29_thinking_alone_after_tools_is_retracted_and_asked_again() -> None:
    calls, answer = says(call("t", x=1)), says("B")
    results = Message.user(ToolResultPart("c1", "t", 2)).replace(id=OTHER)
    nothing = whole(says(ThinkingPart("hm"), usage=5), "m2")[:-1]
    a, script = agent(
        calls,
        says(ThinkingPart("hm"), usage=5),
        answer,
        tools=[t],
    )
    script.piece = 1000
    async with a.run("hi") as run:
        events = [event async for event in run]
        result = await run.result()
    assert told(events) == [
        *BEGIN,
        *step(1, *whole(calls, "m1"), BEGUN, *unfold([results])),
        *step(2, *nothing, MessageDropped("m2", "nothing was said; the model is asked again")),
        *step(3, *whole(answer, "m3")),
        RunFinished(
            RUN, "success", Usage(input_tokens=0, output_tokens=5, total_tokens=5), result="B"
        ),
    ]
    assert (result.output, result.usage.total_tokens) == ("B", 5)
    assert script.requests[2].messages == script.requests[1].messages
    assert tuple(fold(events)) == result.messages


async def test_d29_the_second_message_of_thinking_alone_ends_the_run() -> None:
    a, script = agent(says(call("t")), says(ThinkingPart("hm")), tools=[t])
    result = await a.send("hi")
    assert len(script.requests) == 3
    assert result.messages[-1].content == (ThinkingPart("hm"),)


async def test_typed_and_corrected() -> None:
    wrong, right = says("Sure: z"), says('{"z":1}')
    events = await events_of(scripted(wrong, right), output_schema=SCHEMA)
    (correction,) = [message for message in fold(events)[1:] if message.role is Role.USER]
    assert "it is no JSON" in correction.text
    assert told(events) == [
        *BEGIN_TYPED,
        *step(
            1, *whole(wrong, "m1"), *told(unfold([correction.replace(id=OTHER, created_at=None)]))
        ),
        *step(2, *whole(right, "m2")),
        RunFinished(RUN, result={"z": 1}),
    ]


async def test_typed_by_a_tool() -> None:
    answer = says(ToolCallPart("r", "return_result", {"z": 1}))
    ok = Message.user(ToolResultPart("r", "return_result", "ok")).replace(id=OTHER)
    a = scripted(answer, provider=FORCING)
    events = await events_of(a, output_schema=SCHEMA)
    assert told(events) == [
        RunStarted(RUN, RUN, typed="call"),
        *ASKED,
        *step(1, *whole(answer, "m1"), *unfold([ok])),
        RunFinished(RUN, result={"z": 1}),
    ]


async def test_typed_in_two_phases() -> None:
    aside, right = says("it is one"), says('{"z":1}')
    events = await events_of(
        scripted(aside, right, tools=[t], provider=APART), output_schema=SCHEMA
    )
    dropped = MessageDropped("m1", "the answer follows by the schema")
    assert told(events) == [
        *BEGIN_TYPED,
        *step(1, *whole(aside, "m1")[:-1], dropped),
        *step(2, *whole(right, "m2")),
        RunFinished(RUN, result={"z": 1}),
    ]


async def test_pending() -> None:
    asking = says(call("ask"))
    events = await events_of(scripted(asking, tools=[Tool("ask")]))
    pending = RunFinished(RUN, "pending", None, (waits_for(asking, waiting()),))
    assert told(events) == [*BEGIN, *step(1, *whole(says(waiting()), "m1")), pending]


async def test_a_call_of_the_clients_that_cannot_be_run_waits_for_nobody() -> None:
    broken = parse_call(call("ask"), "[1]")
    a, _ = agent(says(broken), says("B"), tools=[Tool("ask")])
    async with a.run("hi") as run:
        events = [event async for event in run]
        result = await run.result()
    assert tuple(fold(events)) == result.messages
    assert [message.tool_calls for message in result.messages if message.tool_calls] == [(broken,)]
    assert (result.output, result.pending) == ("B", ())


async def test_a_call_that_waits_is_the_clients_in_events_messages_and_pending() -> None:
    a, _ = agent(says(call("ask"), call("t", id="c2")), tools=[Tool("ask"), t])
    async with a.run("hi") as run:
        events = [event async for event in run]
        result = await run.result()
    assert tuple(fold(events)) == result.messages
    started = [event.part for event in events if isinstance(event, PartStarted)]
    assert [part.run_by for part in started if isinstance(part, ToolCallPart)] == [
        "client",
        "agent",
    ]
    assert [each.run_by for each in result.messages[1].tool_calls] == ["client", "agent"]
    assert result.pending == (waits_for(result.messages[1], waiting()),)


HALF: list[Event] = [
    MessageStarted("m", Role.MODEL),
    PartStarted("m", 0, OpenText()),
    PartDelta("m", 0, "half"),
]


async def test_a_failing_call() -> None:
    error = ProviderError("gone")
    events = await events_of(scripted([*HALF, RunError(error)]))
    assert told(events) == [
        *BEGIN,
        *step(
            1,
            *HALF,
            PartFinished("m", 0, TextPart("half")),
            MessageFinished("m", FinishReason.error),
        ),
        RunError(error, RUN),
    ]


async def test_a_limit() -> None:
    calls = says(call("t", x=1))
    results = Message.user(ToolResultPart("c1", "t", 2)).replace(id=OTHER)
    a = scripted(calls, tools=[t], limits=Limits(model_calls=1))
    async with a.run("hi") as run:
        events = [event async for event in run]
    assert isinstance(run.error, LimitReachedError)
    assert told(events) == [
        *BEGIN,
        *step(1, *whole(calls, "m1"), BEGUN, *unfold([results])),
        RunError(run.error, RUN),
    ]


async def test_cancelled() -> None:
    async def model(request: Any, following: Any) -> Any:
        for event in HALF:
            yield event
        runs[0].cancel()
        import anyio

        await anyio.sleep_forever()

    runs: list[Any] = []
    async with Agent(PROVIDER, middleware=[model]).run("hi") as run:
        runs.append(run)
        events = [event async for event in run]
    assert told(events) == [
        *BEGIN,
        *step(
            1,
            *HALF,
            PartFinished("m", 0, TextPart("half")),
            MessageFinished("m", FinishReason.cancelled),
        ),
        RunFinished(RUN, "cancelled"),
    ]


async def test_a_paused_turn() -> None:
    first, second = says("A", reason=FinishReason.pause, usage=1), says("B", usage=2)
    events = await events_of(scripted(first, second))
    usage = Usage(input_tokens=0, output_tokens=3, total_tokens=3)
    assert told(events) == [
        *BEGIN,
        *step(
            1,
            *whole(first, "m1")[:-1],
            PartStarted("m1", 1, OpenText()),
            PartDelta("m1", 1, "B"),
            PartFinished("m1", 1, TextPart("B")),
            MessageFinished("m1", FinishReason.stop, usage),
        ),
        RunFinished(RUN, "success", usage, result="AB"),
    ]


async def test_an_exception_of_user_code_is_told_as_a_run_error_and_raised_as_it_is() -> None:
    async def model(request: Any, following: Any) -> Any:
        for event in HALF:
            yield event
        raise ZeroDivisionError("mine")

    a = Agent(PROVIDER, middleware=[model])
    async with a.run("hi") as run:
        events = [event async for event in run]
        with pytest.raises(ZeroDivisionError, match="mine") as caught:
            await run.result()
    assert isinstance(events[-1], RunError)
    assert events[-1].error.__cause__ is caught.value
    assert "ZeroDivisionError" in str(events[-1].error)
    assert run.error.result.messages == tuple(fold(events))
    assert run.error.result.output == "half"
    with pytest.raises(ZeroDivisionError):
        [chunk async for chunk in a.send_stream("hi")]
    seen: list[Event] = []
    with pytest.raises(ZeroDivisionError):
        async for event in a.send_events("hi"):
            seen.append(event)
    assert isinstance(seen[-1], RunError)


async def test_an_exception_that_cannot_say_what_it_is() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    async def model(request: Any, following: Any) -> Any:
        raise Mute
        yield

    with pytest.raises(Mute):
        await Agent(PROVIDER, middleware=[model]).send("hi")


async def test_every_error_carries_the_result_so_far() -> None:
    a, _ = agent(says("A", call("t"), usage=3), ProviderError("gone"), tools=[t])
    with pytest.raises(ProviderError) as caught:
        await a.send("hi")
    result = caught.value.result
    assert [message.role for message in result.messages] == [Role.USER, Role.MODEL, Role.USER]
    assert (result.output, result.usage.total_tokens) == ("A", 3)
    assert "result" in DragomanError.__doc__


@pytest.mark.parametrize("provider", [PROVIDER, FORCING])
async def test_a_typed_answer_that_stays_wrong_carries_all_rounds(provider: Any) -> None:
    answer = (
        says(call("t"), ToolCallPart("r", "return_result", {"z": "x"}))
        if provider is FORCING
        else says("no")
    )
    a, _ = agent(answer, tools=[t], provider=provider)
    async with a.run("hi", output_schema=SCHEMA) as run:
        events = [event async for event in run]
        with pytest.raises(TypedOutputError) as caught:
            await run.result()
    assert caught.value.result.messages == tuple(fold(events))
    assert len(caught.value.result.messages) == (5 if provider is FORCING else 4)


async def test_a_message_that_is_dropped_before_anything_stood_in_it() -> None:
    a, _ = agent(
        [
            MessageStarted("a", Role.MODEL),
            MessageDropped("a"),
            *whole(says("good"), "b"),
            Custom("after"),
        ]
    )
    async with a.run("hi") as run:
        events = [event async for event in run]
        result = await run.result()
    assert result.output == "good"
    assert tuple(fold(events)) == result.messages


async def test_d29_of_an_empty_message_after_tools_nothing_is_told() -> None:
    calls, answer = says(call("t", x=1)), says("B")
    results = Message.user(ToolResultPart("c1", "t", 2)).replace(id=OTHER)
    events = await events_of(scripted(calls, says(usage=5), answer, tools=[t]))
    assert told(events) == [
        *BEGIN,
        *step(1, *whole(calls, "m1"), BEGUN, *unfold([results])),
        *step(2),
        *step(3, *whole(answer, "m3")),
        RunFinished(
            RUN, "success", Usage(input_tokens=0, output_tokens=5, total_tokens=5), result="B"
        ),
    ]


async def test_a_run_that_was_cancelled_stays_so_when_its_time_ends_while_it_stops() -> None:
    async def model(request: Any, following: Any) -> Any:
        for event in HALF:
            yield event
        runs[0].cancel()
        import anyio

        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.3)

    runs: list[Any] = []
    async with Agent(PROVIDER, middleware=[model], limits=Limits(seconds=0.1)).run("hi") as run:
        runs.append(run)
        events = [event async for event in run]
    assert told(events)[-1] == RunFinished(RUN, "cancelled")
