"""What clients see of a run whose model changes its working memory."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Message, TextPart, ThinkingPart, ToolCallPart, ToolResultPart, fold, unfold
from dragoman.codec.working_parts import WORKING_MEMORY, hide_working, hide_working_text
from dragoman.event import Event, MessageDropped, MessageStarted, PartDelta
from dragoman.runs.hidden import WorkingFilter

CALL = ToolCallPart("w", "updateWorkingMemory", {"memory": "# A"})
RESULT = ToolResultPart("w", "updateWorkingMemory", {"success": True, "version": 1})
OTHER = ToolCallPart("o", "look", {})
FOREIGN = ToolCallPart("f", "updateWorkingMemory", {}, run_by="client")


def named(*messages: Message) -> list[Message]:
    return [message.replace(id=f"m{index}") for index, message in enumerate(messages)]


def filtered(events: Sequence[Event], *, tags: bool = True) -> list[Message]:
    return fold(WorkingFilter(tags=tags).feed(events))


def test_calls_and_results_are_hidden_and_messages_of_nothing_else() -> None:
    messages = named(
        Message.user("Hi."),
        Message.model(CALL),
        Message.user(RESULT),
        Message.model("Wait.", CALL, OTHER, FOREIGN),
        Message.user(RESULT, ToolResultPart("o", "look", 1)),
        Message.model("Done."),
    )
    seen = filtered(unfold(messages))
    assert [message.id for message in seen] == ["m0", "m3", "m4", "m5"]
    assert seen[1].content == (TextPart("Wait."), OTHER, FOREIGN)
    assert seen[2].content == (ToolResultPart("o", "look", 1),)


def test_a_message_that_is_dropped_before_it_was_seen_is_not_told_of() -> None:
    (message,) = named(Message.model(CALL))
    events = [*unfold([message])[:-1], MessageDropped("m0", "again")]
    assert WorkingFilter(tags=False).feed(events) == []
    assert WorkingFilter(tags=False).feed([MessageDropped("x", "again")])


PIECES = st.lists(
    st.sampled_from(["<working_memory>", "</working_memory>", "<", "work", "</", "a", "\n", "<working_"]),
    min_size=1,
    max_size=8,
)  # fmt: skip


@given(PIECES, st.integers(1, 20))
def test_a_text_that_streams_is_the_text_without_the_working_memory(
    pieces: list[str], size: int
) -> None:
    """R-14: whatever the deltas, their text and the whole are what is left of the answer; nothing
    of it is sent that must be taken back."""
    text = "".join(pieces)
    question, answer = named(Message.user(text), Message.model(text))
    events: list[Event] = []
    for event in unfold([question, answer]):
        if isinstance(event, PartDelta):
            cut = [text[start : start + size] for start in range(0, len(text), size)]
            events += [PartDelta(event.message_id, event.index, delta) for delta in cut]
        else:
            events.append(event)
    shown = hide_working_text(text)
    filter_ = WorkingFilter(tags=True)
    seen = [told for event in events for told in filter_.feed([event])]
    deltas = [
        event.delta for event in seen if isinstance(event, PartDelta) and event.message_id == "m1"
    ]
    assert "".join(map(str, deltas)) == shown
    expected = [question, *([answer.replace(content=(TextPart(shown),))] if shown else [])]
    assert fold(seen) == expected
    assert filtered(events, tags=False) == [question, answer]


def test_what_cannot_be_a_tag_is_not_held_back() -> None:
    filter_ = WorkingFilter(tags=True)
    (
        begun,
        *_,
    ) = unfold(named(Message.model("x")))
    assert isinstance(begun, MessageStarted)
    filter_.feed(unfold(named(Message.model("x")))[:2])
    sent = [
        [
            event.delta
            for event in filter_.feed([PartDelta("m0", 0, delta)])
            if isinstance(event, PartDelta)
        ]
        for delta in ("a < b", " <wor", "ld", "<working_memory", "!")
    ]
    assert sent == [["a < b"], [" "], ["<world"], [], ["<working_memory!"]]


@pytest.mark.parametrize(
    ("content", "left"),
    [
        ((CALL,), None),
        ((ThinkingPart("Hm."), CALL), None),
        ((TextPart(" \n"), CALL), None),
        ((RESULT,), None),
        ((TextPart("Wait."), CALL), (TextPart("Wait."),)),
        ((ThinkingPart("Hm."),), (ThinkingPart("Hm."),)),
        ((TextPart(" "),), (TextPart(" "),)),
        ((CALL, OTHER), (OTHER,)),
    ],
)
def test_r14_a_step_left_with_thinking_or_blank_text_is_hidden(
    content: tuple, left: object
) -> None:
    """R-14: but one that had no more from the beginning stays."""
    role = Message.user if content == (RESULT,) else Message.model
    shown = hide_working(role(*content))
    assert (shown and shown.content) == left


def test_only_an_answer_that_was_read_is_changed() -> None:
    text = "a <working_memory>x</working_memory>"
    answer = Message.model(text)
    assert hide_working(answer) is answer
    read = answer.replace(metadata={WORKING_MEMORY: 1})
    shown = hide_working(read)
    assert shown is not None
    assert shown.text == "a "
    assert hide_working(read.replace(content=(TextPart(text[2:]),))) is None
