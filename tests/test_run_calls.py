"""`result.calls`: one for each model call of a run, on every wire, streamed and whole; `usage` is
their sum."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman import Agent, Usage, tool, unfold
from dragoman.errors import DragomanError, ProviderError
from dragoman.event import MessageDropped, MessageStarted, OpenText, PartDelta, PartStarted
from dragoman.message import FinishReason, Origin, Role, ToolCallPart
from dragoman.result import ChatResult, ModelCall, sum_usage
from support.answers import MODELS, agent_of, answer
from support.model import agent, call, says

pytestmark = pytest.mark.anyio

FIRST = Usage(input_tokens=100, output_tokens=20, total_tokens=120)
SECOND = Usage(input_tokens=130, output_tokens=7, total_tokens=137)
BOTH = Usage(input_tokens=230, output_tokens=27, total_tokens=257)
EVERY_WIRE = pytest.mark.parametrize("wire", MODELS)
EITHER_WAY = pytest.mark.parametrize("whole", [False, True], ids=["streamed", "whole"])


@tool
async def add(x: int) -> int:
    """Adds one."""
    return x + 1


def counts(usage: Usage | None) -> tuple[Any, ...]:
    """The tokens that every wire tells."""
    return () if usage is None else (usage.input_tokens, usage.output_tokens, usage.total_tokens)


def two_calls(wire: str, *, whole: bool) -> Agent[Any]:
    exchanges = [
        answer(wire, "I add.", ToolCallPart("c1", "add", {"x": 1}), usage=FIRST, whole=whole),
        answer(wire, "Two.", usage=SECOND, whole=whole),
    ]
    return agent_of(wire, *exchanges, tools=[add])[0]


@EVERY_WIRE
@EITHER_WAY
async def test_each_call_in_order_with_whom_it_asked_and_what_it_took(
    wire: str, whole: bool
) -> None:
    result = await two_calls(wire, whole=whole).send("1 + 1?")
    assert [counts(each.usage) for each in result.calls] == [counts(FIRST), counts(SECOND)]
    for each in result.calls:
        provider, _, model = MODELS[wire].partition(":")
        assert each.origin is not None
        assert (each.origin.provider, each.origin.model, each.origin.served_model) == (
            provider,
            model,
            model,
        )
        assert each.created_at is not None
        assert not each.cached
    assert {each.run_id for each in result.calls} == {result.calls[0].run_id} != {""}
    assert result.usage == sum_usage(result.calls)
    assert counts(result.usage) == counts(BOTH)


@EVERY_WIRE
@EITHER_WAY
async def test_chunks_hold_each_call_once_and_their_usage(wire: str, whole: bool) -> None:
    chunks = [chunk async for chunk in two_calls(wire, whole=whole).send_stream("1 + 1?")]
    assert [counts(each.usage) for chunk in chunks for each in chunk.calls] == [
        counts(FIRST),
        counts(SECOND),
    ]
    assert all(chunk.usage == sum_usage(chunk.calls) for chunk in chunks)


@EVERY_WIRE
async def test_a_call_that_was_cut_is_there(wire: str) -> None:
    """What it took nobody has told, unless the provider did before."""
    text = "Once upon a time there was a very very long story"
    middle = len(answer(wire, text, usage=FIRST).body) // 2
    a, _ = agent_of(wire, answer(wire, text, usage=FIRST, cut_after=middle))
    with pytest.raises(DragomanError) as caught:
        await a.send("Tell.")
    assert isinstance(caught.value.result, ChatResult)
    (only,) = caught.value.result.calls
    assert only.origin is not None
    assert counts(only.usage) != counts(FIRST)
    assert caught.value.result.usage == only.usage


async def test_a_request_that_was_refused_is_none() -> None:
    a, _ = agent(ProviderError("no"))
    with pytest.raises(ProviderError) as caught:
        await a.send("hi")
    assert caught.value.result is not None
    assert caught.value.result.calls == ()


async def test_a_run_that_is_left_in_the_middle_of_an_answer() -> None:
    a, _ = agent(
        [
            MessageStarted("m", Role.MODEL, origin=Origin("p")),
            PartStarted("m", 0, OpenText()),
            PartDelta("m", 0, "a"),
        ]
    )
    async with a.run("hi") as run:
        async for event in run:
            if isinstance(event, PartDelta) and event.delta == "a":
                run.cancel()
        result = await run.result()
    assert [(each.origin, each.usage) for each in result.calls] == [(Origin("p"), None)]


@pytest.mark.parametrize("told", [True, False], ids=["tokens told", "not told"])
async def test_a_retracted_attempt_is_there(told: bool) -> None:
    failed = says("half", usage=3).replace(
        id="m1", finish_reason=FinishReason.error, origin=Origin("a")
    )
    first = unfold([failed]) if told else unfold([failed])[:-1]
    second = unfold([says("whole", usage=5).replace(id="m2", origin=Origin("b"))])
    a, _ = agent([*first, MessageDropped("m1", "again"), *second])
    result = await a.send("hi")
    assert result.output == "whole"
    assert [(each.origin, each.usage and each.usage.output_tokens) for each in result.calls] == [
        (Origin("a"), 3 if told else None),
        (Origin("b"), 5),
    ]
    assert result.usage is not None
    assert result.usage.output_tokens == (8 if told else 5)


async def test_a_turn_that_was_paused_is_a_call_each_time() -> None:
    a, _ = agent(says("A", reason=FinishReason.pause, usage=1), says("B", usage=2))
    chunks = [chunk async for chunk in a.send_stream("hi")]
    (calls,) = [chunk.calls for chunk in chunks if chunk.calls]
    assert [each.usage and each.usage.output_tokens for each in calls] == [1, 2]
    assert [chunk.usage and chunk.usage.output_tokens for chunk in chunks if chunk.usage] == [3]


async def test_an_empty_answer_after_tools_counts() -> None:
    a, _ = agent(says(call("add", x=1), usage=1), says(usage=2), says("done", usage=4), tools=[add])
    result = await a.send("hi")
    assert [each.usage and each.usage.output_tokens for each in result.calls] == [1, 2, 4]


async def test_an_answer_from_a_cache_took_nothing() -> None:
    """Its own usage is there, but what the run took is none."""
    events = unfold([says("hi", usage=9).replace(id="m1")])
    a, _ = agent([*events[:-1], msgspec.structs.replace(events[-1], cached=True)])
    result = await a.send("hi")
    assert result.calls[0].cached
    assert result.calls[0].usage == Usage(input_tokens=0, output_tokens=9, total_tokens=9)
    assert counts(result.usage) == (0, 0, 0)


def test_the_sum_of_calls() -> None:
    assert sum_usage([]) is None
    assert sum_usage([ModelCall(), ModelCall(usage=FIRST), ModelCall(usage=SECOND)]) == BOTH
    assert sum_usage([ModelCall(usage=FIRST, cached=True)]) == Usage(
        input_tokens=0, output_tokens=0, total_tokens=0
    )
