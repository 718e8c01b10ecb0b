"""An answer of a small model that goes round in circles is ended (`model/repetition.py`)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest

from dragoman import Agent, FinishReason, TextPart, fold, providers, unfold
from dragoman.event import Event
from dragoman.model.repetition import circles, end_repetition
from dragoman.request import ModelRequest
from support import pieces, says

pytestmark = pytest.mark.anyio

PROSE = (
    "Rivers begin as springs in the hills, gather brooks and streams on their way through the valleys, pass towns and "
    "fields, carry boats and barges, and end, wide and slow, in a delta by the sea, where salt and fresh water mix. "
)
LOOP = ".utils"


@pytest.mark.parametrize("piece", ["x", "ab", LOOP, "    return list(range(length)) * 20\n", "y" + PROSE[:199]])
def test_one_piece_over_and_over_is_a_circle(piece: str) -> None:
    assert circles(PROSE + piece * (240 // len(piece) + 5))
    assert not circles(PROSE + piece * 3)


@pytest.mark.parametrize(
    "text",
    [
        PROSE,
        PROSE + "-" * 120,
        "| --- " * 12 + "|",
        "\n".join(f"{n}. The number {n} is one more than {n - 1}." for n in range(40)),
        PROSE * 3,
    ],
)
def test_what_people_write_is_none(text: str) -> None:
    assert not any(circles(text[:end]) for end in range(len(text) + 1))


async def test_the_answer_ends_there_and_the_request_is_given_up() -> None:
    events = list(pieces(unfold([says(PROSE + LOOP * 2000).replace(id="answer", finish_reason=FinishReason.stop)]), 7))
    given, closed = 0, False

    async def model(_: ModelRequest) -> AsyncIterator[Event]:
        nonlocal given, closed
        try:
            for event in events:
                given += 1
                yield event
        finally:
            closed = True

    seen = [event async for event in end_repetition(ModelRequest("m"), model)]
    (message,) = fold(seen)
    (part,) = message.content
    assert isinstance(part, TextPart)
    assert (PROSE + LOOP * 2000).startswith(part.text)
    assert len(PROSE) + 240 <= len(part.text) < len(PROSE) + 300
    assert message.finish_reason is FinishReason.length
    assert closed
    assert given < len(events) / 10


async def test_an_answer_that_ends_by_itself_passes_as_it_is() -> None:
    events = unfold([says(PROSE, "More.").replace(id="answer", finish_reason=FinishReason.stop)])

    async def model(_: ModelRequest) -> AsyncIterator[Event]:
        for event in events:
            yield event

    assert [event async for event in end_repetition(ModelRequest("m"), model)] == events


async def test_a_record_says_whether_its_models_need_that(llm) -> None:
    llm.reply = lambda _: says(LOOP * 500)
    record = providers.get("openai-compatible")
    assert (record.repeats_itself, providers.get("local").repeats_itself) == (False, True)
    for repeats, lengths in ((False, {len(LOOP * 500)}), (True, range(240, 900))):
        provider = msgspec.structs.replace(record, repeats_itself=repeats, chat_model="tiny")
        async with Agent(provider) as agent:
            assert len((await agent.send("x")).output) in lengths
