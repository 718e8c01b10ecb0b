"""The anthropic wire: what is cut, odd or malformed in a response ends it and never raises
(D-6)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import DecodeError, OverloadedError, RateLimitError, StreamCutError
from dragoman.event import MessageFinished, RunError
from dragoman.fold import fold
from dragoman.message import Citation, FinishReason, TextPart
from dragoman.wires import anthropic as wire
from support.anthropic import (
    START,
    STOP,
    block,
    call,
    decode,
    decode_events,
    deep,
    end,
    sse,
    start_of,
    text,
)


def test_pings_comments_done_and_new_events_are_ignored():
    noise = (
        b": hi\n\n" + sse({"type": "ping"}, {"type": "new_event", "index": 0}) + b"data: [DONE]\n\n"
    )
    data = sse(START) + noise + sse(*text(0, "x"), end()) + noise + sse(STOP) + noise
    (folded,) = fold(decode(data))
    assert folded.text == "x"


def test_the_last_event_needs_no_blank_line_and_no_message_stop():
    assert not isinstance(decode(sse(START, end(), STOP).rstrip())[-1], RunError)
    assert not isinstance(decode(sse(START, *text(0, "x"), end()))[-1], RunError)


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_every_cut_before_the_stop_reason_is_an_error_with_what_came(data):
    body = sse(START, *text(0, "Grüße"), *call(1, '{"a": "ü"}'), end("tool_use"), STOP)
    cut = data.draw(st.integers(len(b"event: "), body.index(b"event: message_delta") + 60))
    events = decode(body[:cut])
    assert isinstance(events[-1], RunError)
    assert isinstance(events[-1].error, StreamCutError)
    partial = events[-1].error.partial
    if partial is not None:
        told = b'"content_block_stop", "index": 1}' in body[:cut]
        assert [c.state for c in partial.tool_calls] in ([], ["complete" if told else "cut"])
        (folded,) = fold(events)
        assert folded.finish_reason is FinishReason.error
        assert folded.content == partial.content


@pytest.mark.parametrize(
    ("kind", "error"), [("overloaded_error", OverloadedError), ("rate_limit_error", RateLimitError)]
)
def test_errors_inside_a_stream(kind, error):
    told = {"type": "error", "error": {"type": kind, "message": "Sorry"}, "request_id": "req_1"}
    events = decode(sse(START, *text(0, "x"), told, *text(1, "ignored"), end(), STOP))
    assert isinstance(events[-1], RunError)
    assert type(events[-1].error) is error
    assert events[-1].error.request_id == "req_1"
    assert events[-1].error.partial.text == "x"
    assert b"Sorry" in events[-1].error.body
    for body in (json.dumps(told).encode(), sse(told)):
        (only,) = decode(body)
        assert type(only.error) is error


@pytest.mark.parametrize(
    "piece",
    [
        b"data: {oops\n\n",
        b"data: 3\n\n",
        b"data: {}\n\n",
        b'data: {"type": "message_start"}\n\n',
        b'data: {"type": "message_start", "message": {"content": 3}}\n\n',
        b'data: {"type": "message_start", "message": {"content": [3]}}\n\n',
        b'data: {"type": "content_block_start", "index": 0}\n\n',
        b'data: {"type": "content_block_start", "content_block": {}}\n\n',
        b'data: {"type": "content_block_delta", "index": 0, "delta": 3}\n\n',
        b'data: {"type": "message_delta", "delta": 3}\n\n',
        b'data: "\xff"\n\n',
        b"data: " + b"[" * 100_000 + b"\n\n",
        b"<html>Bad gateway</html>",
    ],
)
def test_malformed_pieces_are_errors_and_never_raise(piece):
    events = decode(piece)
    assert isinstance(events[-1], RunError)
    assert isinstance(events[-1].error, DecodeError)
    assert events[-1].error.body in piece
    assert decode(b"")[-1].error.partial is None


JSON_VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.integers(),
        st.text(max_size=5),
        st.sampled_from(["text", "tool_use", "thinking", "message", "error", "text_delta"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "index",
                    "delta",
                    "content_block",
                    "message",
                    "content",
                    "input",
                    "id",
                    "name",
                    "usage",
                    "text",
                    "error",
                    "tool_use_id",
                ]
            ),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=12,
)


KINDS = st.sampled_from(
    [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "message",
        "error",
    ]
)


@given(
    st.lists(
        st.tuples(
            KINDS,
            st.dictionaries(
                st.sampled_from(
                    ["index", "delta", "content_block", "message", "usage", "error", "content"]
                ),
                JSON_VALUES,
            ),
        ),
        max_size=5,
    )
)
@settings(max_examples=80, deadline=None)
@pytest.mark.slow
def test_no_answer_makes_the_decoder_raise(pieces):
    events = decode(sse(*[{**fields, "type": kind} for kind, fields in pieces]))
    fold(events)
    assert isinstance(events[-1], (RunError, MessageFinished))


def test_a_stream_cut_in_a_block_keeps_its_further_deltas():
    cited = {"type": "citations_delta", "citation": {"title": "t"}}
    events = decode_events(start_of(), *block(0, {"type": "text", "text": "a"}, cited, cited)[:-1])
    assert events[-1].error.partial.content == (
        TextPart(
            "a", {"anthropic": {"citations": [{"title": "t"}] * 2}}, (Citation(title="t"),) * 2
        ),
    )


@pytest.mark.parametrize(
    "piece",
    [
        b'{"a":' + b"[" * 2000 + b"]" * 2000 + b"}",
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"},"a":'
        + b"[" * 2000
        + b"]" * 2000
        + b"}",
    ],
)
def test_d6_depth_is_bounded_in_a_stream(piece: bytes):
    start = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": ""},
    }
    events = decode(
        sse({"type": "message_start", "message": {}}, start) + b"data: " + piece + b"\n\n"
    )
    assert isinstance(events[-1], RunError) and isinstance(events[-1].error, DecodeError)


def test_depth_is_bounded_in_a_whole_answer():
    (event,) = wire.load_response({"type": "message", "content": deep(2000)})
    assert (
        isinstance(event, RunError)
        and isinstance(event.error, DecodeError)
        and "deep" in event.error.message
    )
