"""The seeds' accumulator: rules D-33…D-36, by decisions 2 and 14."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from dragoman import Message, TextPart, ToolCallPart, fold, unfold
from dragoman.event import (
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
)
from dragoman.message import FinishReason, Origin, Role, ThinkingPart, Usage
from dragoman.orchestration import MessageAccumulator

ACCUMULATOR = MessageAccumulator()


def test_d33_with_nothing_before_the_chunk_is_the_message() -> None:
    chunk = Message.user("a")
    assert ACCUMULATOR.accumulate(None, chunk) is chunk
    assert ACCUMULATOR.accumulate(Message.model(), chunk) is chunk


def test_d34_a_call_of_the_same_id_is_merged_what_is_not_empty_wins() -> None:
    one = Message.model(ToolCallPart("1", "look", {}))
    two = ACCUMULATOR.accumulate(one, Message.model(ToolCallPart("1", "", {"x": 1})))
    assert two.content == (ToolCallPart("1", "look", {"x": 1}),)
    three = ACCUMULATOR.accumulate(two, Message.model(ToolCallPart("1", "see", {})))
    assert three.content == (ToolCallPart("1", "see", {"x": 1}),)


def test_d34_calls_without_id_are_always_appended() -> None:
    one = Message.model(ToolCallPart("", "a"))
    assert len(ACCUMULATOR.accumulate(one, Message.model(ToolCallPart("", "a"))).content) == 2


def test_d35_other_parts_are_appended_metadata_merges_and_the_role_stays() -> None:
    one = Message.model("a").replace(metadata={"k": 1, "l": 1})
    two = ACCUMULATOR.accumulate(one, Message.user("b").replace(metadata={"k": 2}))
    assert (two.role, two.text, two.metadata) == (one.role, "ab", {"k": 2, "l": 1})


def test_d36_texts_side_by_side_join_and_order_is_kept() -> None:
    call = ToolCallPart("1", "t")
    message = Message.model("a", "b", call, "c")
    assert ACCUMULATOR.consolidate(message).content == (TextPart("ab"), call, TextPart("c"))
    signed = TextPart("b", {"google": {"thoughtSignature": "x"}})
    assert ACCUMULATOR.consolidate(Message.model("a", signed)).content == (TextPart("a"), signed)


def test_it_builds_a_message_from_events() -> None:
    message = Message.model(ThinkingPart("hm"), "text", ToolCallPart("1", "t", {"x": 1})).replace(
        id="m"
    )
    builder = MessageAccumulator()
    assert builder.message() == Message.model()
    for event in unfold([message]):
        builder.add(event)
    assert builder.message() == message


FULL = Message.model(
    TextPart("a"),
    ToolCallPart("1", "look", {"x": 1}, '{"x": 1}', "complete", "client", {"w": {"a": 1}}),
).replace(
    id="m",
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
    origin=Origin("p"),
    metadata={"k": 1},
    finish_reason=FinishReason.pause,
    usage=Usage(input_tokens=1),
    native={"w": {"m": 1}},
)
MORE = Message.user(ToolCallPart("2", "see")).replace(
    id="n",
    created_at=datetime(2026, 2, 2, tzinfo=UTC),
    origin=Origin("q"),
    metadata={"l": 2},
    finish_reason=FinishReason.stop,
    usage=Usage(input_tokens=2),
    native={"v": {"n": 2}},
)


@pytest.mark.parametrize("part", [TextPart("b"), ToolCallPart("2", "see")])
def test_d35_of_two_messages_the_seconds_fields_win_where_it_has_them(part: Any) -> None:
    """With a call among the new parts and without one."""
    content = (*FULL.content, part)
    assert ACCUMULATOR.accumulate(FULL, Message.user(part)) == FULL.replace(content=content)
    chunk = MORE.replace(content=(part,))
    expected = MORE.replace(role=FULL.role, content=content, metadata={"k": 1, "l": 2})
    assert ACCUMULATOR.accumulate(FULL, chunk) == expected


def test_d34_a_call_that_comes_again_keeps_what_the_new_one_has_not() -> None:
    one, call = FULL.replace(content=FULL.content[1:]), FULL.content[1]
    bare = Message.model(ToolCallPart("1", "", native=None))
    assert ACCUMULATOR.accumulate(one, bare).content == (call,)
    new = ToolCallPart("1", "see", {"y": 2}, '{"y":  2}', "invalid", native={"v": {"b": 2}})
    assert ACCUMULATOR.accumulate(one, Message.model(new)).content == (
        msgspec.structs.replace(new, run_by="client"),
    )
    cut = ToolCallPart("1", "see", raw="{", state="cut")
    kept = msgspec.structs.replace(call, name="see")
    assert ACCUMULATOR.accumulate(one, Message.model(cut)).content == (kept,)


def test_d34_only_the_call_of_the_same_id_is_merged_and_each_stays_in_its_place() -> None:
    one = Message.model("a", ToolCallPart("1", "f"), ToolCallPart("", "g"), ToolCallPart("2", "h"))
    more = Message.model(
        *[
            "b",
            ToolCallPart("2", "", {"x": 2}),
            ToolCallPart("3", "i"),
            ToolCallPart("3", "", {"x": 3}),
        ],
        *[ToolCallPart("", "j"), ToolCallPart("", "k"), ToolCallPart("1", "", {"x": 1})],
    )
    assert ACCUMULATOR.accumulate(one, more).content == (
        *[
            TextPart("a"),
            ToolCallPart("1", "f", {"x": 1}),
            ToolCallPart("", "g"),
            ToolCallPart("2", "h", {"x": 2}),
        ],
        *[
            TextPart("b"),
            ToolCallPart("3", "i", {"x": 3}),
            ToolCallPart("", "j"),
            ToolCallPart("", "k"),
        ],
    )


def test_d36_what_carries_something_of_a_providers_parts_the_texts_around_it() -> None:
    signed, call = TextPart("s", {"w": {"a": 1}}), ToolCallPart("1", "t")
    message = FULL.replace(
        content=(
            TextPart("a"),
            TextPart("b"),
            signed,
            signed,
            TextPart("c"),
            call,
            ThinkingPart("hm"),
            TextPart("d"),
            TextPart("e"),
        )
    )
    content = (
        TextPart("ab"),
        signed,
        signed,
        TextPart("c"),
        call,
        ThinkingPart("hm"),
        TextPart("de"),
    )
    assert ACCUMULATOR.consolidate(message) == FULL.replace(content=content)


class Noting(MessageAccumulator):
    """Notes what it is called with, and changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[Message | None, Message]] = []

    def accumulate(self, existing: Message | None, chunk: Message) -> Message:
        self.seen.append((existing, chunk))
        return super().accumulate(existing, chunk)


CALL = ToolCallPart("1", "t", {"x": 1})
SIGNED = TextPart("ef", {"w": {"s": 1}})
EVENTS: list[Event] = [
    PartDelta("m", 0, "before anything"),
    MessageStarted("m", Role.MODEL),
    MessageStarted("other", Role.MODEL, 1),
    PartStarted("other", 0, OpenText()),
    PartDelta("other", 0, "not mine"),
    PartFinished("other", 0, TextPart("not mine")),
    PartStarted("m", 0, ThinkingPart("")),
    PartDelta("m", 0, "hm"),
    PartFinished("m", 0, ThinkingPart("hm")),
    PartStarted("m", 1, OpenText()),
    PartDelta("m", 1, "a"),
    PartDelta("m", 1, ""),
    PartDelta("m", 7, "of no part"),
    PartDelta("m", 1, "b"),
    PartFinished("m", 1, TextPart("ab")),
    PartDelta("m", 1, "late"),
    PartStarted("m", 2, TextPart("cd")),
    PartFinished("m", 2, TextPart("cd")),
    PartStarted("m", 3, ToolCallPart("1", "t")),
    PartDelta("m", 3, '{"x":1}'),
    PartFinished("m", 3, CALL),
    PartStarted("m", 4, OpenText(native=SIGNED.native)),
    PartDelta("m", 4, "ef"),
    PartFinished("m", 4, SIGNED),
    MessageFinished("m", FinishReason.tool_calls, Usage(input_tokens=1), metadata={"k": 1}),
]  # fmt: skip
CONTENT = (ThinkingPart("hm"), TextPart("ab"), TextPart("cd"), CALL, SIGNED)


def test_accumulate_is_called_with_each_piece_of_text_and_with_every_other_part_whole() -> None:
    builder = Noting()
    for event in EVENTS:
        builder.add(event)
    pieces: list[Any] = [
        ThinkingPart("hm"),
        TextPart("a"),
        TextPart("b"),
        TextPart("cd"),
        CALL,
        TextPart("ef"),
    ]
    assert [chunk for _, chunk in builder.seen] == [Message.model(piece) for piece in pieces]
    befores = [before for before, _ in builder.seen]
    assert befores == [Message.model(*pieces[:count]) for count in range(len(pieces))]
    assert builder.message() == fold(EVENTS)[0]
    assert builder.message().content == CONTENT


def test_when_its_message_is_dropped_it_begins_again() -> None:
    builder = Noting()
    for event in [*EVENTS[1:13], MessageDropped("m"), *EVENTS[1:2], *EVENTS[9:14], *EVENTS[-1:]]:
        builder.add(event)
    assert builder.seen[-2:] == [
        (Message.model(), Message.model("a")),
        (Message.model("a"), Message.model("b")),
    ]
    assert builder.message().content == (TextPart("ab"),)


@pytest.mark.parametrize("kind", ["accumulate", "consolidate"])
def test_what_an_override_makes_is_content_and_metadata_and_the_rest_is_the_providers(
    kind: str,
) -> None:
    """What the provider signed stays at its text."""

    def first(self: MessageAccumulator, existing: Message | None, chunk: Message) -> Message:
        merged = MessageAccumulator.accumulate(self, existing, chunk)
        return merged.replace(
            metadata={"mine": True}, content=tuple(p for p in merged.content if p != CALL)
        )

    def second(self: MessageAccumulator, message: Message) -> Message:
        merged = MessageAccumulator.consolidate(self, message)
        return merged.replace(
            metadata={"mine": True}, content=tuple(p for p in merged.content if p != CALL)
        )

    own = type("Own", (MessageAccumulator,), {kind: first if kind == "accumulate" else second})
    builder = own()
    for event in EVENTS:
        builder.add(event)
    texts = (TextPart("abcdef"),) if kind == "accumulate" else (TextPart("abcd"), SIGNED)
    plain = fold(EVENTS)[0]
    assert builder.message() == plain.replace(
        content=(ThinkingPart("hm"), *texts), metadata={"k": 1, "mine": True}
    )
