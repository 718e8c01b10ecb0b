"""What a run costs by count. To each delta it adds nothing where nobody wants chunks, one chunk
where somebody does; it pays by the read. Around a short answer and a round of tools it enters no
more functions than today."""

from __future__ import annotations

import gc
import sys
from collections import Counter
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
from support.answers import agent_of, answer
from support.model import call

pytestmark = pytest.mark.anyio

READS, SMALL, LARGE = 5, 10, 110
SLACK = 50  # a run gives the event loop back by the clock
OURS = str(Path(dragoman.__file__).parent)
MOST_FOR_AN_ANSWER, MOST_FOR_A_ROUND = 660, 2260
"""Functions of the library, by CPython 3.11; later ones enter fewer."""


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

    async def batches(_model: ChatModel, _request: Any) -> AsyncGenerator[list[Event], None]:
        for events in reads(size):
            yield events

    monkeypatch.setattr(ChatModel, "_call", batches)
    agent = Agent(**{"model": "openai", "api_key": "x", **how})
    entered, output = await entered_by(use(agent))
    assert output == "word " * size * READS
    return entered.total()


async def entered_by(work: Awaitable[str]) -> tuple[Counter[str], str]:
    """The functions of the library that are entered, or resumed, by their names, and what the work
    returns."""
    found: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            found[frame.f_code.co_name] += 1

    # What other tests have left is not finalized meanwhile, where that would count.
    gc.collect()
    gc.disable()
    sys.setprofile(count)
    try:
        return found, await work
    finally:
        sys.setprofile(None)
        gc.enable()


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


def add(x: int) -> int:
    return x + 1


@pytest.mark.parametrize("use", [sent, streamed])
async def test_a_short_answer_enters_few_functions(
    use: Callable[[Agent[None]], Awaitable[str]],
) -> None:
    agent, _ = agent_of("openai_chat", *[answer("openai_chat", "It is so.")] * 3)
    await use(agent), await use(agent)
    entered, output = await entered_by(use(agent))
    assert output == "It is so."
    assert entered.total() <= MOST_FOR_AN_ANSWER
    # What depends on the agent and its model alone is made once.
    assert entered.keys().isdisjoint({"request_headers", "_list_paths", "_mend_struct"})


async def test_a_round_of_tools_enters_few_functions() -> None:
    calls = answer("openai_chat", *[call("add", x=x) for x in range(3)])
    rounds = [calls, answer("openai_chat", "Sums.")] * 3
    agent, _ = agent_of("openai_chat", *rounds, tools=[add])
    await sent(agent), await sent(agent)
    entered, output = await entered_by(sent(agent))
    assert output == "Sums."
    assert entered.total() <= MOST_FOR_A_ROUND
    assert entered.keys().isdisjoint({"_dump_answer"})


async def test_a_run_begins_with_its_prompt_and_ends_with_its_last_step() -> None:
    agent, _ = agent_of("openai_chat", answer("openai_chat", "Yes."))
    async with agent.run("hi") as run:
        steps = [[type(event).__name__ for event in step.events] async for step in run.steps()]
    assert steps[0][:2] == ["RunStarted", "MessageStarted"]
    assert steps[0][-1] == "MessageFinished"
    assert steps[1] == ["StepStarted"]
    assert steps[-2:] == [["MessageFinished"], ["StepFinished", "RunFinished"]]
