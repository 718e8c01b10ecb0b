"""An answer of a small model that goes round in circles is ended (`model/repetition.py`)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest

from dragoman import Agent, FinishReason, TextPart, ThinkingPart, fold, providers, unfold
from dragoman.event import (
    Event,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
)
from dragoman.message import Role
from dragoman.model.repetition import end_repetition, is_repeating
from dragoman.request import ModelRequest
from support.model import pieces, says

pytestmark = pytest.mark.anyio

PROSE = (
    "Rivers begin as springs in the hills, gather brooks and streams on their way through the valleys, pass towns and "
    "fields, carry boats and barges, and end, wide and slow, in a delta by the sea, where salt and fresh water mix. "
)
LOOP = ".utils"


@pytest.mark.parametrize(
    "piece", ["x", "ab", LOOP, "    return list(range(length)) * 20\n", "y" + PROSE[:199]]
)
def test_one_piece_over_and_over_is_a_circle(piece: str) -> None:
    assert is_repeating(PROSE + piece * (240 // len(piece) + 5))
    assert not is_repeating(PROSE + piece * 3)


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
    assert not any(is_repeating(text[:end]) for end in range(len(text) + 1))


def test_where_a_circle_begins_to_be_one() -> None:
    """At least 240 characters, at least four times, of a piece of up to 200."""
    begin = "".join(chr(0x4E00 + n) for n in range(900))
    piece = "".join(chr(0x0400 + n) for n in range(201))
    for period in (1, 2, 59, 60, 61, 100, 200):
        least = max(240, 4 * period)
        text = begin + piece[:period] * 300
        assert is_repeating(text[: 900 + least])
        assert not is_repeating(text[: 900 + least - 1])
        assert is_repeating(text[900 : 900 + least])
        assert not is_repeating(text[900 : 900 + least - 1])
    assert not is_repeating(begin + piece * 9)


async def test_a_text_is_looked_at_every_40_characters_and_each_text_by_itself() -> None:
    """What two texts hold together is no circle, nor is what comes in another message."""
    start = [
        MessageStarted("a", Role.MODEL),
        PartStarted("a", 0, OpenText()),
        PartStarted("a", 1, ThinkingPart()),
    ]
    thought = [PartDelta("a", 1, "x" * 300), PartDelta("b", 0, "x" * 300)]
    first = [
        PartDelta("a", 0, "x" * 200),
        PartFinished("a", 0, TextPart("x" * 200)),
        PartStarted("a", 2, OpenText()),
    ]
    short = [PartDelta("a", 2, "x") for _ in range(239)]
    events = [*start, *thought, *first, *short, *[PartDelta("a", 2, "x")] * 41]

    async def model(_: ModelRequest) -> AsyncIterator[Event]:
        for event in events:
            yield event

    seen = [event async for event in end_repetition(ModelRequest("m"), model)]
    begun = len(start) + len(thought) + len(first) + 240  # a multiple of 40
    assert seen == [
        *events[:begun],
        PartFinished("a", 2, TextPart("x" * 240)),
        MessageFinished("a", FinishReason.length),
    ]


async def test_the_answer_ends_there_and_the_request_is_given_up() -> None:
    events = list(
        pieces(
            unfold(
                [says(PROSE + LOOP * 2000).replace(id="answer", finish_reason=FinishReason.stop)]
            ),
            7,
        )
    )
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
