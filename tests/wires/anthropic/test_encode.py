"""The anthropic wire: events become a response, streamed and whole."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from anthropic.types import Message as SdkMessage
from anthropic.types import RawMessageStreamEvent
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from dragoman.errors import OverloadedError
from dragoman.event import (
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
)
from dragoman.fold import fold, unfold
from dragoman.message import (
    DataPart,
    FinishReason,
    MarkPart,
    Message,
    Origin,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.request import ModelRequest
from dragoman.wires import anthropic as wire
from support.anthropic import decode, encode, encode_events

EVENTS = TypeAdapter(RawMessageStreamEvent)


MESSAGES = TypeAdapter(SdkMessage)


def frames(data):
    out = [frame.split("\n") for frame in data.decode().split("\n\n")[:-1]]
    assert all(name == f"event: {json.loads(d[6:])['type']}" for name, d in out)
    return [json.loads(d[6:]) for _, d in out]


def checked(data):
    """The events, after the official client's schema and the order of blocks were checked."""
    events = frames(data)
    for event in events:
        EVENTS.validate_python(event)
    assert [events[0]["type"], events[-2]["type"], events[-1]["type"]] == [
        "message_start",
        "message_delta",
        "message_stop",
    ]
    blocks = [e for e in events if e["type"].startswith("content_block")]
    for place, event in enumerate(blocks):
        started = event["type"] == "content_block_start"
        assert started is (place == 0 or blocks[place - 1]["type"] == "content_block_stop")
        assert (
            event["index"]
            == sum(e["type"] == "content_block_start" for e in blocks[: place + 1]) - 1
        )
    return events


def test_the_encoder_writes_what_the_official_client_expects():
    model = Message.model(ThinkingPart("hm"), "Hi", ToolCallPart("a", "f", {"x": 1})).replace(
        id="m", origin=Origin("local", model="smol")
    )
    events = [
        *unfold([model])[:-1],
        MessageFinished("m", FinishReason.tool_calls, Usage(input_tokens=5, output_tokens=2)),
    ]
    start, *blocks, delta, _ = checked(encode(events))
    assert start["message"] == {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "smol",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }
    assert [b["content_block"] for b in blocks if "content_block" in b] == [
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "text", "text": ""},
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    ]
    assert delta["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    assert delta["usage"] == {"input_tokens": 5, "output_tokens": 2}
    MESSAGES.validate_python(wire.dump_response(events))
    assert (
        frames(encode(events, id="msg_9", model="m9"))[0]["message"]
        | {"id": "msg_9", "model": "m9"}
        == frames(encode(events, id="msg_9", model="m9"))[0]["message"]
    )
    assert wire.dump_response(events, id="msg_9", model="m9")["id"] == "msg_9"


def test_deltas_are_written_as_they_come():
    encoder = wire.encoder()
    encoder.feed(MessageStarted("m", Role.MODEL))
    assert encoder.feed(PartStarted("m", 0, OpenText())) == b""
    assert b'"text":"a"' in encoder.feed(PartDelta("m", 0, "a"))
    assert b'"text":"b"' in encoder.feed(PartDelta("m", 0, "b"))
    assert frames(encoder.feed(PartFinished("m", 0, TextPart("ab")))) == [
        {"type": "content_block_stop", "index": 0}
    ]


def test_parts_told_without_deltas_are_written_whole():
    parts = (
        TextPart("a"),
        ThinkingPart("hm", {"anthropic": {"signature": "c2ln"}}),
        ToolCallPart("a", "f", {"x": 1}),
        ToolCallPart("b", "f"),
        ToolCallPart("c", "f", raw='{"x"', state="cut"),
    )
    events = [MessageStarted("m", Role.MODEL)]
    for index, part in enumerate(parts):
        events += [PartStarted("m", index, part), PartFinished("m", index, part)]
    data = encode([*events, MessageFinished("m", FinishReason.length)])
    checked(data)
    assert fold(decode(data))[0].content == parts


def test_parts_told_side_by_side_take_turns():
    one, two = ToolCallPart("a", "f"), ToolCallPart("b", "g")
    events = [
        MessageStarted("m", Role.MODEL),
        PartStarted("m", 0, one),
        PartStarted("m", 1, two),
        PartDelta("m", 0, '{"x":'),
        PartDelta("m", 1, '{"y":'),
        PartDelta("m", 0, "1}"),
        PartDelta("m", 1, "2}"),
        PartFinished("m", 1, ToolCallPart("b", "g", {"y": 2})),
        PartFinished("m", 0, ToolCallPart("a", "f", {"x": 1})),
        MessageFinished("m", FinishReason.tool_calls),
    ]
    data = encode(events)
    checked(data)
    assert [c.arguments for c in fold(decode(data))[0].tool_calls] == [{"x": 1}, {"y": 2}]


def test_parts_that_nobody_closed_are_closed():
    events = [
        MessageStarted("m", Role.MODEL),
        PartStarted("m", 0, OpenText()),
        PartStarted("m", 1, OpenText()),
        PartStarted("m", 2, OpenText()),
    ]
    events += [PartDelta("m", 0, "a"), PartDelta("m", 2, "c")]
    data = encode(events)
    checked(data)
    assert fold(decode(data))[0].text == "ac"


def test_only_what_the_model_said_is_written_once():
    model, user = Message.model("Hi").replace(id="m"), Message.user("no").replace(id="u")
    other = [
        MessageStarted("c", Role.MODEL, candidate=1),
        PartStarted("c", 0, OpenText()),
        PartDelta("c", 0, "no"),
    ]
    data = encode(
        [
            *unfold([user, model]),
            *other,
            RunFinished("r"),
            *unfold([Message.model("late").replace(id="l")]),
        ]
    )
    checked(data)
    assert fold(decode(data))[0].text == "Hi"
    assert encode([]) == b""
    assert encode(unfold([user])) == b""


def test_several_messages_of_the_model_are_one_and_their_usage_is_added():
    events = []
    for id_ in "ab":
        events += unfold([Message.model(id_).replace(id=id_)])[:-1]
        events.append(
            MessageFinished(id_, FinishReason.stop, Usage(input_tokens=1, output_tokens=2))
        )
    delta = checked(encode(events))[-2]
    assert delta["usage"] == {"input_tokens": 2, "output_tokens": 4}
    assert [b["text"] for b in wire.dump_response(events)["content"]] == ["a", "b"]
    assert wire.dump_response(events)["usage"]["output_tokens"] == 4


def test_a_retracted_message_is_closed_and_the_next_goes_on():
    events = [
        MessageStarted("a", Role.MODEL),
        PartStarted("a", 0, OpenText()),
        PartDelta("a", 0, "x"),
        MessageDropped("a"),
        PartDelta("a", 0, "!"),
    ]
    data = encode([*events, *unfold([Message.model("y").replace(id="b")])])
    checked(data)
    assert fold(decode(data))[0].text == "xy"


def test_errors_are_written():
    failed = [
        *unfold([Message.model("x").replace(id="m")])[:-1],
        RunError(OverloadedError("Overloaded")),
        RunFinished("r"),
    ]
    last = frames(encode(failed))[-1]
    assert last == {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    assert wire.dump_response(failed) == last
    events = decode(encode(failed))
    assert isinstance(events[-1].error, OverloadedError)
    assert events[-1].error.partial.text == "x"


def test_media_and_results_of_an_agent_are_no_part_of_a_response():
    model = Message.model(
        "x", DataPart(b"", "image/png", "a.png"), ToolResultPart("a", "f", "ok")
    ).replace(id="m")
    checked(encode(unfold([model])))
    assert fold(decode(encode(unfold([model]))))[0].text == "x[media: image/png] a.png"


TEXTS = st.text(min_size=1, max_size=20)


SIGNATURES = st.fixed_dictionaries({"signature": st.text(max_size=8)}).map(
    lambda own: {"anthropic": own}
)


ARGUMENTS = st.dictionaries(
    TEXTS, st.one_of(st.integers(-(2**53), 2**53), TEXTS, st.lists(st.booleans())), max_size=3
)


IDS = st.from_regex(r"[a-z]{1,8}", fullmatch=True)


PIECES = st.one_of(
    st.builds(TextPart, TEXTS),
    st.builds(TextPart, TEXTS, st.just({"anthropic": {"citations": [{"type": "char_location"}]}})),
    st.builds(ThinkingPart, st.text(max_size=20), SIGNATURES),
    st.builds(
        ThinkingPart, native=st.just({"anthropic": {"type": "redacted_thinking", "data": "x"}})
    ),
    st.builds(ToolCallPart, IDS, IDS, ARGUMENTS),
    st.builds(
        ToolCallPart,
        IDS,
        IDS,
        ARGUMENTS,
        run_by=st.just("provider"),
        native=st.just({"anthropic": {"type": "server_tool_use"}}),
    ),
    st.builds(
        ProviderPart,
        st.just("compaction"),
        st.just({"anthropic": {"type": "compaction", "content": "x"}}),
    ),
)


USAGES = st.builds(
    lambda fresh, read, output: Usage(
        input_tokens=fresh + read,
        output_tokens=output,
        total_tokens=fresh + read + output,
        cache_read_tokens=read,
    ),
    *[st.integers(0, 1000)] * 3,
)


@given(
    st.lists(PIECES, max_size=5),
    USAGES,
    st.sampled_from([FinishReason.stop, FinishReason.pause, FinishReason.refusal]),
    st.integers(1, 50),
)
@settings(max_examples=120, deadline=None)
@pytest.mark.slow
def test_what_is_written_is_read_back_as_it_was(pieces, usage, reason, size):
    if reason is FinishReason.stop and any(getattr(p, "run_by", None) == "agent" for p in pieces):
        reason = FinishReason.tool_calls
    origin = Origin("", served_model="m", response_id="msg_1")
    model = Message(Role.MODEL, pieces, id="message-0", origin=origin)
    events = [*unfold([model])[:-1], MessageFinished("message-0", reason, usage)]
    expected = model.replace(finish_reason=reason, usage=usage)
    data = encode(events)
    assert fold(decode(*[data[at : at + size] for at in range(0, len(data), size)])) == [expected]
    assert fold(wire.load_response(wire.dump_response(events))) == [expected]


def test_a_part_that_is_amended_after_its_end_is_told_once():
    """Another provider corrects a signature when its message ends."""
    events = unfold(
        [Message.model(ThinkingPart("hm"), "a").replace(id="m", finish_reason=FinishReason.stop)]
    )
    amended = PartFinished(
        "m", 0, ThinkingPart("hm", {"openai_responses": {"encrypted_content": "late"}})
    )
    for place in (4, 5, len(events) - 1):
        encoder = wire.encoder()
        told = [*events[:place], amended, *events[place:]]
        assert [
            type(p)
            for p in fold(decode(b"".join(map(encoder.feed, told)) + encoder.close()))[0].content
        ] == [
            ThinkingPart,
            TextPart,
        ]


def opened(name: str, index: int, text: str) -> list[Any]:
    return [PartStarted(name, index, OpenText()), PartDelta(name, index, text)]


def test_what_is_retracted_ends_and_what_waited_of_it_is_never_told():
    void = [
        MessageStarted("a", Role.MODEL),
        *opened("a", 0, "half an answ"),
        *opened("a", 1, "waits"),
        PartFinished("a", 1, TextPart("waits")),
        MessageDropped("a"),
    ]
    whole = unfold(
        [Message.model("whole").replace(id="b", usage=Usage(input_tokens=1, output_tokens=2))]
    )
    told = encode_events([*void, *whole])
    assert [event["type"] for event in told] == [
        "message_start", "content_block_start", "content_block_delta", "content_block_stop",
        "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop",
    ]  # fmt: skip
    assert "waits" not in json.dumps(told)
    assert wire.dump_response([*void, *whole])["content"] == [{"type": "text", "text": "whole"}]


@pytest.mark.parametrize("file_id", ["", "file_1"])
def test_a_file_that_the_provider_holds_stays_one_in_a_response(file_id: str):
    block = {"type": "container_upload", "file_id": file_id, "caller": "x"}
    events = wire.load_response(
        {"type": "message", "content": [block, {"type": "text", "text": "a"}]}
    )
    assert wire.dump_response(events)["content"] == [block, {"type": "text", "text": "a"}]
    encoder = wire.encoder()
    streamed = b"".join(map(encoder.feed, events)) + encoder.close()
    assert wire.dump_response(decode(streamed))["content"] == [block, {"type": "text", "text": "a"}]


def test_marks_are_passed_over():
    message = Message.model(ThinkingPart("hm"), "a", ToolCallPart("c", "f", {"x": 1})).replace(
        id="m"
    )
    mark = MarkPart("step", {"ui": {"n": 1}})
    marked = message.replace(
        content=(mark, *[each for piece in message.content for each in (piece, mark)])
    )
    assert encode(unfold([marked])) == encode(unfold([message]))
    assert wire.dump_response(unfold([marked])) == wire.dump_response(unfold([message]))


NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("request_", "envelope", "head"),
    [
        (ModelRequest("asked"), {"id": "msg_7", "model": "asked"}, ("msg_7", "asked")),
        (ModelRequest(""), {"id": "msg_7"}, ("msg_7", "claude")),
        (None, {"id": "msg_7"}, ("msg_7", "claude")),
    ],
)
def test_the_envelope_of_an_answer(request_, envelope, head):
    assert wire.envelope(request_, id="7", now=NOW) == envelope
    events = unfold([Message.model("a").replace(id="m", origin=Origin("p", model="claude"))])
    start = checked(encode(events, **envelope))[0]["message"]
    whole = wire.dump_response(events, **envelope)
    assert (start["id"], start["model"]) == (whole["id"], whole["model"]) == head


def test_a_ping_is_an_event_that_tells_nothing():
    assert wire.stream_type == "text/event-stream"
    assert frames(wire.ping) == [{"type": "ping"}]
    written = encode(unfold([Message.model("a")]))
    assert fold(decode(wire.ping, written, wire.ping)) == fold(decode(written))
