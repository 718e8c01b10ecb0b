"""The seeds' accumulator: rules D-33…D-36, by decisions 2 and 14."""

from __future__ import annotations

from dragoman import Message, TextPart, ToolCallPart, unfold
from dragoman.message import ThinkingPart
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
    message = Message.model(ThinkingPart("hm"), "text", ToolCallPart("1", "t", {"x": 1})).replace(id="m")
    builder = MessageAccumulator()
    assert builder.message() == Message.model()
    for event in unfold([message]):
        builder.add(event)
    assert builder.message() == message
