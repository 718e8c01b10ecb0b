"""The cohere wire: events become a response, streamed and whole."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from dragoman import errors
from dragoman.event import (
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartStarted,
    RunError,
)
from dragoman.fold import fold, unfold
from dragoman.message import (
    FinishReason,
    MarkPart,
    Message,
    Origin,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    Usage,
)
from dragoman.request import ModelRequest
from dragoman.wires import cohere as wire
from support.cohere import ANNOTATED, END, PLAN, decode, encode, piece, stream

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


arguments = st.dictionaries(
    words, st.integers(-99, 99) | words | st.none() | st.lists(words, max_size=2), max_size=3
)


@st.composite
def answers(draw: Any) -> Message:
    """A model's message as this format can say it."""
    pieces: list[Any] = [ThinkingPart(text, PLAN) for text in draw(st.lists(words, max_size=1))]
    pieces += draw(
        st.lists(st.builds(TextPart, words) | st.builds(ThinkingPart, words), max_size=3)
    )
    found = draw(st.lists(st.tuples(words, arguments), max_size=3))
    pieces += [ToolCallPart(f"c{n}", name, given) for n, (name, given) in enumerate(found)]
    told, answer = draw(st.tuples(st.integers(0, 99), st.integers(0, 99)))
    usage = Usage(input_tokens=told, output_tokens=answer, total_tokens=told + answer)
    reason = (
        FinishReason.tool_calls
        if found
        else draw(st.sampled_from([FinishReason.stop, FinishReason.length]))
    )
    cited = {"cohere": {"citations": [{"start": 0}]}} if draw(st.booleans()) else None
    return Message(
        Role.MODEL,
        tuple(pieces),
        origin=Origin("", response_id="r"),
        finish_reason=reason,
        usage=usage,
        native=cited,
    )


@given(answers())
def test_what_the_encoder_writes_is_read_back(message):
    events = unfold([message])
    encoder = wire.encoder()
    streamed = b"".join(map(encoder.feed, events)) + encoder.close()
    whole = msgspec.json.encode(wire.dump_response(events))
    for written in (streamed, whole):
        (read,) = fold(decode(written))
        assert read.replace(id=None) == message


def test_the_encoder_tells_an_error_as_the_end():
    encoder = wire.encoder(id="r")
    begun = unfold([Message.model("a")])[:3]
    written = (
        b"".join(map(encoder.feed, [*begun, RunError(errors.OverloadedError("no room"))]))
        + encoder.close()
    )
    *_, last = decode(written)
    assert isinstance(last.error, errors.OverloadedError) and last.error.partial.text == "a"
    assert wire.dump_response([RunError(errors.OverloadedError("no room"))]) == {
        "message": "overloaded: no room"
    }


def test_only_the_models_first_answer_is_written():
    encoder = wire.encoder()
    others = [
        MessageStarted("u", Role.USER),
        MessageStarted("b", Role.MODEL, 1),
        MessageStarted("d", Role.MODEL),
    ]
    dropped = unfold([Message.model("no").replace(id="d")])[1:-1]
    told = [
        event
        for message in ("u", "b")
        for event in unfold([Message.model("no").replace(id=message)])[1:]
    ]
    shown = [
        *others[:2],
        *told,
        others[2],
        MessageDropped("d"),
        *dropped,
        *unfold([Message.model("yes").replace(id="m")]),
    ]
    written = b"".join(map(encoder.feed, shown)) + encoder.close()
    assert fold(decode(written))[0].text == "yes"
    assert encoder.feed(MessageFinished("m")) == b"" == encoder.close()


def test_further_fields_of_a_message_go_out_live_and_from_storage():
    events = decode(stream(ANNOTATED, piece("a"), END))
    (message,) = fold(events)
    for told in (encode(events), encode(unfold([Message.from_json(message.to_json())]))):
        assert told[0]["delta"]["message"]["annotations"] == [1]
        assert fold(decode(stream(*told)))[0].native == message.native


def test_what_is_retracted_ends_and_leaves_no_citations():
    void = [
        MessageStarted("a", Role.MODEL),
        PartStarted("a", 0, OpenText()),
        PartDelta("a", 0, "half an answ"),
        PartStarted("a", 1, ToolCallPart("c", "f")),
        PartDelta("a", 1, '{"x'),
        MessageFinished(
            "a",
            usage=Usage(input_tokens=1, output_tokens=1),
            native={"cohere": {"citations": [{"n": 1}]}},
        ),
        MessageDropped("a"),
    ]
    whole = unfold([Message.model("whole").replace(id="b")])
    told = encode([*void, *whole])
    assert [(event["type"], event.get("index")) for event in told] == [
        ("message-start", None), ("content-start", 0), ("content-delta", 0), ("tool-call-start", 0), ("tool-call-delta", 0),
        ("content-end", 0), ("tool-call-end", 0), ("content-start", 1), ("content-delta", 1), ("content-end", 1),
        ("message-end", None),
    ]  # fmt: skip
    assert wire.dump_response([*void, *whole])["message"] == {
        "role": "assistant",
        "content": [{"type": "text", "text": "whole"}],
    }


def test_marks_are_passed_over():
    message = Message.model(
        ThinkingPart("so", PLAN), "a", ToolCallPart("c", "f", {"x": 1})
    ).replace(id="m")
    mark = MarkPart("step", {"ui": {"n": 1}})
    marked = message.replace(
        content=(mark, *[each for piece in message.content for each in (piece, mark)])
    )
    assert encode(unfold([marked])) == encode(unfold([message]))
    assert wire.dump_response(unfold([marked])) == wire.dump_response(unfold([message]))


def test_the_envelope_of_an_answer():
    envelope = wire.envelope(ModelRequest("m"), id="7", now=datetime(2026, 1, 2, tzinfo=UTC))
    assert (
        envelope == wire.envelope(None, id="7", now=datetime(2026, 1, 2, tzinfo=UTC)) == {"id": "7"}
    )
    events = unfold([Message.model("a").replace(id="m")])
    assert wire.dump_response(events, **envelope)["id"] == "7"
    encoder = wire.encoder(**envelope)
    (read,) = fold(decode(b"".join(map(encoder.feed, events)) + encoder.close()))
    assert read.origin == Origin("", response_id="7")


def test_a_ping_tells_nothing():
    assert wire.stream_type == "text/event-stream"
    written = stream(piece("a"), END)
    assert fold(decode(wire.ping + written + wire.ping)) == fold(decode(written))
