"""The emitter: well-formed events, whatever a wire tells it."""

from __future__ import annotations

from itertools import count
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from dragoman.codec.emitter import Emitter
from dragoman.errors import ProviderError, StreamCutError
from dragoman.event import (
    Event,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
)
from dragoman.fold import fold, unfold
from dragoman.message import (
    DataPart,
    FinishReason,
    LinkPart,
    Message,
    Origin,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    Usage,
)
from support import strategies as some

CALL = ToolCallPart("1", "f")


def well_formed(events: list[Event]) -> None:
    """One message; every part is started once, then its deltas, then finished once, all inside the
    message."""
    open_parts: set[int] = set()
    seen: set[int] = set()
    kinds = [type(event) for event in events if not isinstance(event, RunError)]
    assert kinds[:1] in ([], [MessageStarted])
    assert kinds.count(MessageStarted) == kinds.count(MessageFinished) == (1 if kinds else 0)
    for event in events:
        if isinstance(event, PartStarted):
            assert event.index not in seen
            open_parts.add(event.index)
            seen.add(event.index)
        elif isinstance(event, PartDelta):
            assert event.index in open_parts
            assert event.delta
        elif isinstance(event, PartFinished):
            open_parts.remove(event.index)
        elif isinstance(event, MessageFinished):
            assert not open_parts
            assert not isinstance(events[-1], (PartStarted, PartDelta, PartFinished))


def test_text_thinking_and_a_call():
    emitter = Emitter(None, origin=Origin("p"))
    emitter.start(native={"w": {"a": 1}}, metadata={"k": 1})
    emitter.add_thinking("t", "hm")
    emitter.add_thinking("t", "m")
    emitter.add_text("x", "Hel")
    call = emitter.ensure_part(("call", 0), CALL)
    emitter.add(call, '{"a"')
    emitter.add_text("x", "lo")
    emitter.add(call, ":1}")
    assert emitter.find(("call", 0)) is call
    assert emitter.find("nothing") is None
    assert emitter.ensure_part(("call", 0)) is call
    call.native["w"] = {"sig": 1}
    emitter.finish(
        FinishReason.tool_calls,
        Usage(output_tokens=1),
        origin=Origin("q"),
        metadata={"l": 2},
        native={"w": {"b": 2}},
    )
    closed = ToolCallPart("1", "f", {"a": 1}, native={"w": {"sig": 1}})
    assert emitter.calls() == (closed,)
    assert emitter.origin == Origin("q")
    events = emitter.take()
    assert emitter.take() == []
    well_formed(events)
    assert events == [
        MessageStarted("message-0", Role.MODEL, 0, Origin("p"), {"k": 1}, {"w": {"a": 1}}),
        PartStarted("message-0", 0, ThinkingPart()),
        PartDelta("message-0", 0, "hm"),
        PartDelta("message-0", 0, "m"),
        PartStarted("message-0", 1, OpenText()),
        PartDelta("message-0", 1, "Hel"),
        PartStarted("message-0", 2, CALL),
        PartDelta("message-0", 2, '{"a"'),
        PartDelta("message-0", 1, "lo"),
        PartDelta("message-0", 2, ":1}"),
        PartFinished("message-0", 0, ThinkingPart("hmm")),
        PartFinished("message-0", 1, TextPart("Hello")),
        PartFinished("message-0", 2, closed),
        MessageFinished(
            "message-0",
            FinishReason.tool_calls,
            Usage(output_tokens=1),
            Origin("q"),
            {"l": 2},
            {"w": {"b": 2}},
        ),
    ]
    assert [emitter.build_partial_message()] == fold(events)


def test_ids_and_candidates():
    numbers = count(7)
    emitter = Emitter(lambda: f"id-{next(numbers)}", candidate=2)
    emitter.finish(FinishReason.stop)
    started = emitter.take()[0]
    assert started == MessageStarted("id-7", Role.MODEL, 2)
    assert next(numbers) == 8, "one message, one id"
    assert Emitter(None, candidate=3).message_id == "message-3"
    other = Emitter(None, candidate=1)
    other.add_text("x", "b")
    other.close_all()
    assert other.build_partial_message().text == "b", "another candidate is a message too"


def test_a_text_that_never_came_leaves_nothing_behind():
    """Decision 14."""
    emitter = Emitter(None)
    emitter.add_text("a", "")
    emitter.add_thinking("b", "")
    emitter.add(emitter.ensure_part("c", OpenText(native={"w": {}})), "")
    assert emitter.take() == [MessageStarted("message-0", Role.MODEL)]
    assert emitter.close(emitter.ensure_part("c")) is None
    late = emitter.ensure_part("d", OpenText(native={"w": {"x": 1}}))
    emitter.add(late, "x")
    assert emitter.close(late) == TextPart("x", {"w": {"x": 1}})
    signed = emitter.ensure_part("e", ThinkingPart())
    signed.native["w"] = {"signature": "s"}
    emitter.ensure_part("f", OpenText("begun"))
    emitter.finish(FinishReason.stop)
    events = emitter.take()
    well_formed([MessageStarted("message-0", Role.MODEL), *events])
    assert [event.index for event in events if isinstance(event, PartStarted)] == [1, 2, 3]
    assert emitter.build_partial_message().content == (
        TextPart("x", {"w": {"x": 1}}),
        ThinkingPart("", {"w": {"signature": "s"}}),
        TextPart("begun"),
    )


def test_a_key_can_be_used_again_once_its_part_is_closed():
    emitter = Emitter(None)
    emitter.add_text("x", "a")
    first = emitter.find("x")
    assert first is not None
    emitter.close(first)
    assert emitter.find("x") is None
    emitter.add_text("x", "b")
    emitter.finish(FinishReason.stop)
    assert emitter.build_partial_message().content == (TextPart("a"), TextPart("b"))


@given(some.content)
def test_a_part_that_came_whole_is_told_as_in_unfold(part: Any):
    emitter = Emitter(None)
    emitter.add_whole_part(part)
    emitter.add_whole_part(LinkPart("u"))
    emitter.finish(FinishReason.stop)
    events = emitter.take()
    well_formed(events)
    message = Message.model(part, LinkPart("u")).replace(
        id="message-0", finish_reason=FinishReason.stop
    )
    assert events == unfold([message])
    assert emitter.build_partial_message() == message


def test_an_error_closes_what_is_open_and_carries_the_message_so_far():
    emitter = Emitter(None, origin=Origin("p"))
    emitter.start(metadata={"k": 1})
    emitter.add_whole_part(DataPart(b"x", "image/png"))
    emitter.add(emitter.ensure_part(0, CALL), '{"a": 1}')
    emitter.add_text(1, "half")
    error = StreamCutError("cut")
    emitter.fail(error)
    events = emitter.take()
    well_formed(events)
    assert events[-1] == RunError(error)
    assert emitter.finished
    cut = ToolCallPart("1", "f", raw='{"a": 1}', state="cut")
    message = Message(
        Role.MODEL,
        (DataPart(b"x", "image/png"), cut, TextPart("half")),
        id="message-0",
        origin=Origin("p"),
        metadata={"k": 1},
        finish_reason=FinishReason.error,
    )
    assert error.partial == message
    assert fold(events) == [message]


def test_an_error_before_or_after_the_message_is_only_an_error():
    before, after, known = (
        ProviderError("no"),
        ProviderError("late"),
        ProviderError("no", partial=Message.model("mine")),
    )
    emitter = Emitter(None)
    emitter.fail(before)
    assert emitter.take() == [RunError(before)]
    assert before.partial is None
    assert emitter.build_partial_message() == Message(Role.MODEL)
    emitter.finish(FinishReason.stop)
    emitter.take()
    emitter.fail(after)
    assert emitter.take() == [RunError(after)]
    assert after.partial is None
    other = Emitter(None)
    other.add_text(0, "a")
    other.fail(known)
    assert known.partial == Message.model("mine")


def test_a_part_is_known_as_soon_as_it_is_opened_and_complete_when_it_is_closed():
    emitter = Emitter(None, origin=Origin("p"))
    first, second = emitter.ensure_part(0, CALL), emitter.ensure_part(1, CALL)
    assert emitter.take()[1:] == [
        PartStarted("message-0", 0, CALL),
        PartStarted("message-0", 1, CALL),
    ]
    for call in (first, second):
        emitter.add(call, "{}")
    assert emitter.close(first) == CALL
    emitter.close_all()
    assert emitter.calls() == (CALL, CALL)
    emitter.finish(FinishReason.tool_calls)
    assert emitter.origin == Origin("p")


def test_a_finish_may_cut():
    emitter = Emitter(None)
    emitter.add(emitter.ensure_part(0, CALL), "{}")
    emitter.finish(FinishReason.length, cut=True)
    assert emitter.calls() == (msgspec.structs.replace(CALL, raw="{}", state="cut"),)


STEP = st.tuples(
    st.sampled_from(["text", "thinking", "call", "whole", "close", "start", "add"]),
    st.integers(0, 3),
    st.sampled_from(["", "a", '{"x":', "1}"]),
)


@given(st.lists(STEP, max_size=20), st.sampled_from(["finish", "cut", "fail"]))
def test_whatever_a_wire_tells_the_events_are_well_formed(
    steps: list[tuple[str, int, str]], end: str
):
    emitter = Emitter(None)
    events: list[Event] = []
    for step, key, delta in steps:
        if step in ("text", "thinking"):
            getattr(emitter, f"add_{step}")((step, key), delta)
        elif step == "call":
            emitter.add(emitter.ensure_part(("call", key), CALL), delta)
        elif step == "whole":
            emitter.add_whole_part(LinkPart(delta))
        elif step == "start":
            emitter.start()
        elif part := emitter.find(("text", key)) or emitter.find(("call", key)):
            emitter.close(part) if step == "close" else emitter.add(part, delta)
        events += emitter.take()
    if end == "fail":
        emitter.fail(ProviderError("no"))
    else:
        emitter.finish(FinishReason.stop, cut=end == "cut")
    events += emitter.take()
    well_formed(events)
    assert fold(events) == ([emitter.build_partial_message()] if emitter.started else [])
