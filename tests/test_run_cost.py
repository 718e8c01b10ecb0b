"""What a run adds to each delta: nothing where nobody wants chunks, one chunk where somebody does.
It pays by the read."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import dragoman
from dragoman import Agent, Usage
from dragoman.event import (
    Event,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
)
from dragoman.message import FinishReason, Role, TextPart
from dragoman.model import Breaker, Throttle, fallback
from dragoman.model.chat_model import ChatModel

pytestmark = pytest.mark.anyio

READS, SMALL, LARGE = 5, 10, 110
SLACK = 50  # a run gives the event loop back by the clock
OURS = str(Path(dragoman.__file__).parent)


def reads(size: int) -> list[list[Event]]:
    """A text in so many deltas a read."""
    deltas: list[list[Event]] = [
        [PartDelta("m", 0, "word ") for _ in range(size)] for _ in range(READS)
    ]
    return [
        [MessageStarted("m", Role.MODEL), PartStarted("m", 0, OpenText())],
        *deltas,
        [PartFinished("m", 0, TextPart("word " * size * READS))],
        [MessageFinished("m", FinishReason.stop, Usage(input_tokens=1))],
    ]


async def calls(
    monkeypatch: pytest.MonkeyPatch,
    size: int,
    use: Callable[[Agent[None]], Awaitable[str]],
    **how: Any,
) -> int:
    """How many functions of the library are entered, or resumed."""
    found = 0

    async def batches(_model: ChatModel, _request: Any) -> AsyncGenerator[list[Event], None]:
        for events in reads(size):
            yield events

    def count(frame: FrameType, event: str, _: Any) -> None:
        nonlocal found
        found += event == "call" and frame.f_code.co_filename.startswith(OURS)

    monkeypatch.setattr(ChatModel, "_call", batches)
    agent = Agent(**{"model": "openai", "api_key": "x", **how})
    sys.setprofile(count)
    try:
        output = await use(agent)
    finally:
        sys.setprofile(None)
    assert output == "word " * size * READS
    return found


async def sent(agent: Agent[None]) -> str:
    return (await agent.send("hi")).output


async def streamed(agent: Agent[None]) -> str:
    return "".join([chunk.output async for chunk in agent.send_stream("hi")])


async def events(agent: Agent[None]) -> str:
    return "".join(
        [
            str(event.delta)
            async for event in agent.send_events("hi")
            if isinstance(event, PartDelta)
        ][1:]
    )


@pytest.mark.parametrize(("use", "most"), [(sent, 0), (streamed, 1), (events, 2)])
async def test_calls_for_each_delta(
    monkeypatch: pytest.MonkeyPatch, use: Callable[[Agent[None]], Awaitable[str]], most: int
) -> None:
    """`send` enters no function of the library for a delta; a stream is resumed once for each
    chunk, and that is all."""
    await calls(monkeypatch, SMALL, use)  # what is imported or compiled first
    few, many = await calls(monkeypatch, SMALL, use), await calls(monkeypatch, LARGE, use)
    assert many - few <= most * (LARGE - SMALL) * READS + SLACK


@pytest.mark.parametrize(
    "how",
    [
        {"model": ["openai", "anthropic"]},
        {"model": fallback("openai", "anthropic", breaker=Breaker())},
        {
            "middleware": [
                Throttle(concurrency=1, requests_per_minute=1000, tokens_per_minute=10**9)
            ]
        },
    ],
    ids=["fallback", "breaker", "throttle"],
)
async def test_what_stands_around_a_model_by_the_read_costs_nothing_for_a_delta(
    monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    await calls(monkeypatch, SMALL, sent, **how)
    few, many = (
        await calls(monkeypatch, SMALL, sent, **how),
        await calls(monkeypatch, LARGE, sent, **how),
    )
    assert many - few <= SLACK
