"""The anthropic wire's responses: rules D-110…D-113, D-146, decisions 3, 13, 14, 21 and 22; streamed, whole and written."""

from __future__ import annotations

import json

import pytest
from anthropic.types import Message as SdkMessage
from anthropic.types import RawMessageStreamEvent
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from dragoman.errors import DecodeError, OverloadedError, RateLimitError, StreamCutError
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
from dragoman.wires import anthropic as wire

START = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [],
        "stop_reason": None,
        "usage": {
            "input_tokens": 10,
            "cache_read_input_tokens": 3,
            "cache_creation_input_tokens": 4,
            "output_tokens": 1,
        },
    },
}
STOP = {"type": "message_stop"}


def sse(*events):
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


def block(index, start, *deltas, stop=True):
    events = [{"type": "content_block_start", "index": index, "content_block": start}]
    events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return [*events, {"type": "content_block_stop", "index": index}] if stop else events


def end(reason="end_turn", **usage):
    return {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": 7, **usage},
    }


def text(index, *texts):
    return block(index, {"type": "text", "text": ""}, *[{"type": "text_delta", "text": t} for t in texts])


def call(index, *pieces, kind="tool_use", **fields):
    start = {"type": kind, "id": f"toolu_{index}", "name": "f", "input": {}, **fields}
    return block(index, start, *[{"type": "input_json_delta", "partial_json": p} for p in pieces])


def decode(*data, origin=None, new_id=None):
    decoder = wire.decoder(origin=origin, new_id=new_id)
    return [event for chunk in data for event in decoder.feed(chunk)] + decoder.close()


def message(*events):
    decoded = decode(sse(START, *events))
    assert not [event for event in decoded if isinstance(event, RunError)]
    (folded,) = fold(decoded)
    return folded


def test_a_stream_of_text():
    folded = message(*text(0, "Hel", "lo"), end(), STOP)
    assert folded.content == (TextPart("Hello"),)
    assert folded.finish_reason is FinishReason.stop
    assert folded.origin == Origin("", served_model="claude", response_id="msg_1")


def test_the_given_origin_and_minted_ids():
    events = decode(sse(START, end(), STOP), origin=Origin("anthropic", model="m"), new_id=lambda: "minted")
    assert events[0].message_id == "minted"
    assert events[0].origin == Origin("anthropic", model="m", served_model="claude", response_id="msg_1")


def test_decision_2_separate_blocks_stay_separate():
    folded = message(*text(0, "a"), *call(1, "{}"), *text(2, "b"), *text(3, "c"), end(), STOP)
    assert [type(piece) for piece in folded.content] == [TextPart, ToolCallPart, TextPart, TextPart]


def test_decision_14_an_empty_block_is_no_part():
    assert message(*text(0), end(), STOP).content == ()


def test_d110_input_is_gathered_from_deltas():
    folded = message(*call(0, "", '{"ci', 'ty": "Oslo"}'), *call(1), *call(2, "", ""), end("tool_use"), STOP)
    assert [(c.arguments, c.state) for c in folded.tool_calls] == [
        ({"city": "Oslo"}, "complete"),
        ({}, "complete"),
        ({}, "complete"),
    ]
    assert folded.finish_reason is FinishReason.tool_calls


def test_d110_input_may_come_whole_and_callers_are_kept():
    folded = message(*call(0, input={"a": 1}, caller={"type": "direct"}), end("tool_use"), STOP)
    assert folded.tool_calls[0] == ToolCallPart(
        "toolu_0", "f", {"a": 1}, native={"anthropic": {"caller": {"type": "direct"}}}
    )


def test_a_call_without_an_id_gets_one_and_says_so():
    events = decode(sse(START, *call(0, id=None), *call(1, id=""), end("tool_use"), STOP))
    first, second = fold(events)[0].tool_calls
    assert (first.id, second.id) == ("call-0", "call-1")
    assert first.native == {"anthropic": {"id": None}}
    minted = fold(decode(sse(START, *call(0, id=None), end("tool_use"), STOP), new_id=lambda: "minted"))[0].tool_calls
    assert minted[0].id == "minted"
    sent = wire.dump_messages([Message.user("x"), Message.model(*minted)])["messages"][1]["content"][0]
    assert sent["id"] == "minted"


def test_decision_13_blocks_told_side_by_side_do_not_mix():
    a, b = call(0, '{"x":', "1}"), call(1, '{"y":', "2}")
    folded = message(a[0], b[0], a[1], b[1], b[2], a[2], a[3], b[3], end("tool_use"), STOP)
    assert [c.arguments for c in folded.tool_calls] == [{"x": 1}, {"y": 2}]


@pytest.mark.parametrize(
    "delta",
    [
        {"type": "text_delta", "text": "x"},
        {"type": "signature_delta", "signature": "x"},
    ],
)
def test_decision_13_a_delta_that_names_nothing_known_is_an_error(delta):
    events = decode(sse(START, {"type": "content_block_delta", "index": 5, "delta": delta}, end(), STOP))
    assert isinstance(events[-1].error, DecodeError)
    assert "block 5" in events[-1].error.message


def test_a_delta_of_the_wrong_kind_is_an_error():
    events = decode(
        sse(START, *block(0, {"type": "text", "text": ""}, {"type": "input_json_delta", "partial_json": "{}"}))
    )
    assert "input_json_delta" in events[-1].error.message


def test_a_call_cut_by_the_token_limit_is_never_complete():
    folded = message(*call(0, '{"a": 1}'), *call(1, '{"a": '), end("max_tokens"), STOP)
    assert [(c.state, c.arguments) for c in folded.tool_calls] == [("complete", {"a": 1}), ("cut", {})]
    assert folded.tool_calls[1].raw == '{"a": '
    assert folded.finish_reason is FinishReason.length
    assert message(*call(0), end("max_tokens"), STOP).tool_calls[0].state == "cut"
    first, _ = message(*call(0), *call(1, '{"a'), end("model_context_window_exceeded"), STOP).tool_calls
    assert first.state == "complete"


def test_arguments_that_are_no_object_are_invalid():
    folded = message(*call(0, "[1]"), *call(1, '{"a" 1}'), end("tool_use"), STOP)
    assert [(c.state, c.arguments, c.raw) for c in folded.tool_calls] == [
        ("invalid", {}, "[1]"),
        ("invalid", {}, '{"a" 1}'),
    ]


def thinking(index, *texts, signature=None):
    deltas = [{"type": "thinking_delta", "thinking": t} for t in texts]
    deltas += [{"type": "signature_delta", "signature": signature}] if signature else []
    return block(index, {"type": "thinking", "thinking": "", "signature": ""}, *deltas)


def test_d111_d146_thinking_is_told_once_and_is_no_part():
    events = decode(sse(START, *thinking(0, "h", "m", signature="c2ln"), *text(1, "Yes"), end(), STOP))
    assert [e.delta for e in events if isinstance(e, PartDelta)] == ["h", "m", "Yes"]
    (folded,) = fold(events)
    assert folded.thinking == "hm"
    assert folded.text == "Yes"
    assert folded.parts == (TextPart("Yes"),)
    assert folded.content[0] == ThinkingPart("hm", {"anthropic": {"signature": "c2ln"}})


def test_d146_what_was_thought_goes_back_byte_exact():
    redacted = {"type": "redacted_thinking", "data": "ZW5j"}
    folded = message(*thinking(0, signature="c2ln"), *block(1, redacted), *text(2, "Yes"), end(), STOP)
    sent = wire.dump_messages([Message.user("x"), folded])["messages"][1]["content"]
    assert sent == [
        {"type": "thinking", "thinking": "", "signature": "c2ln"},
        redacted,
        {"type": "text", "text": "Yes"},
    ]


def test_thinking_that_nobody_signs_is_kept():
    folded = message(
        *block(0, {"type": "thinking", "thinking": "a"}, {"type": "thinking_delta", "thinking": "b"}), end(), STOP
    )
    assert wire.dump_messages([folded])["messages"][0]["content"] == [{"type": "thinking", "thinking": "ab"}]


@pytest.mark.parametrize(
    ("reason", "neutral", "kept"),
    [
        ("end_turn", FinishReason.stop, None),
        ("stop_sequence", FinishReason.stop, "stop_sequence"),
        ("tool_use", FinishReason.tool_calls, None),
        ("max_tokens", FinishReason.length, None),
        ("model_context_window_exceeded", FinishReason.length, "model_context_window_exceeded"),
        ("pause_turn", FinishReason.pause, None),
        ("refusal", FinishReason.refusal, None),
        ("something_new", FinishReason.unspecified, "something_new"),
    ],
)
def test_d112_decision_21_stop_reasons(reason, neutral, kept):
    folded = message(*text(0, "x"), end(reason), STOP)
    assert folded.finish_reason is neutral
    assert (folded.native or {}).get("anthropic:notes", {}).get("response", {}).get("stop_reason") == kept
    assert (
        wire.dump_response([*unfold([folded]), MessageFinished(folded.id, neutral, native=folded.native)])[
            "stop_reason"
        ]
        == reason
    )


def test_a_stop_with_calls_to_answer_is_tool_calls():
    folded = message(*call(0, "{}"), end("end_turn"), STOP)
    assert folded.finish_reason is FinishReason.tool_calls
    assert folded.native["anthropic:notes"]["response"]["stop_reason"] == "end_turn"
    server = message(*call(0, "{}", kind="server_tool_use"), end("end_turn"), STOP)
    assert server.finish_reason is FinishReason.stop


def test_d113_decision_3_usage_of_start_and_delta_are_one():
    usage = message(*text(0, "x"), end(output_tokens_details={"thinking_tokens": 5}), STOP).usage
    expected = Usage(
        input_tokens=17, output_tokens=7, total_tokens=24, cache_read_tokens=3, cache_write_tokens=4, reasoning_tokens=5
    )
    assert usage == expected
    later = message(end(input_tokens=20, cache_read_input_tokens=None), end(), STOP).usage
    assert (later.input_tokens, later.output_tokens) == (27, 7)


def test_usage_that_tells_little():
    plain = {**START, "message": {**START["message"], "usage": {}}}
    (folded,) = fold(decode(sse(plain, end(), STOP)))
    assert folded.usage == Usage(output_tokens=7)
    (silent,) = fold(decode(sse(plain, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, STOP)))
    assert silent.usage is None


def test_further_fields_of_the_response_are_kept_around_the_message():
    last = {
        **end("stop_sequence", server_tool_use={"web_search_requests": 1}),
        "context_management": {"applied_edits": []},
    }
    last["delta"] = {
        "stop_reason": "stop_sequence",
        "stop_sequence": "END",
        "container": {"id": "c"},
        "stop_details": None,
    }
    folded = message(last, STOP)
    assert folded.native["anthropic:notes"]["response"] == {
        "stop_reason": "stop_sequence",
        "stop_sequence": "END",
        "container": {"id": "c"},
        "context_management": {"applied_edits": []},
        "usage": {"server_tool_use": {"web_search_requests": 1}},
    }
    assert "response" not in json.dumps(wire.dump_messages([folded]))


def test_citations_are_gathered():
    deltas = [{"type": "citations_delta", "citation": {"n": n}} for n in (1, 2)]
    start = {"type": "text", "text": "", "citations": []}
    folded = message(
        *block(0, start, {"type": "text_delta", "text": "x"}, *deltas), *block(1, {**start, "text": "y"}), end(), STOP
    )
    assert folded.content == (TextPart("x", {"anthropic": {"citations": [{"n": 1}, {"n": 2}]}}), TextPart("y"))


def test_unknown_deltas_and_blocks_are_kept():
    compaction = block(0, {"type": "compaction", "content": None}, {"type": "compaction_delta", "content": "a"})
    grown = block(
        1,
        {"type": "new", "a": "x", "b": [1]},
        {"type": "new_delta", "a": "y", "b": [2], "c": 3},
        {"type": "text_delta", "text": "t"},
    )
    odd = block(2, {"type": "text", "text": ""}, {"type": "text_delta", "text": "x"}, {"type": "odd_delta", "odd": 1})
    folded = message(*compaction, *grown, *odd, end(), STOP)
    assert folded.content == (
        ProviderPart("compaction", {"anthropic": {"type": "compaction", "content": "a"}}),
        ProviderPart("new", {"anthropic": {"type": "new", "a": "xy", "b": [1, 2], "c": 3, "text": "t"}}),
        TextPart("x", {"anthropic": {"odd": 1}}),
    )


def test_decision_22_tools_that_the_provider_ran():
    found = {"type": "web_search_tool_result", "tool_use_id": "toolu_0", "content": [{"type": "web_search_result"}]}
    folded = message(*call(0, '{"query": "x"}', kind="server_tool_use"), *block(1, found), *text(2, "x"), end(), STOP)
    asked, answered, _ = folded.content
    assert (asked.run_by, asked.arguments) == ("provider", {"query": "x"})
    assert answered == ToolResultPart(
        "toolu_0", "f", found["content"], run_by="provider", native={"anthropic": {"type": "web_search_tool_result"}}
    )
    assert folded.tool_calls == ()
    sent = wire.dump_messages([folded])["messages"][0]["content"]
    assert sent[:2] == [{"type": "server_tool_use", "id": "toolu_0", "name": "f", "input": {"query": "x"}}, found]


def test_a_whole_answer_is_told_as_its_stream_would_have_been():
    streamed = decode(
        sse(START, *thinking(0, "hm", signature="c2ln"), *text(1, "a"), *call(2, '{"x":1}'), end("tool_use"), STOP)
    )
    whole = {
        **START["message"],
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "a", "citations": None},
            {"type": "tool_use", "id": "toolu_2", "name": "f", "input": {"x": 1}},
        ],
        "stop_reason": "tool_use",
        "usage": {**START["message"]["usage"], "output_tokens": 7},
    }
    events = wire.load_response(whole)
    assert fold(events) == fold(streamed)
    assert [type(e) for e in events] == [type(e) for e in streamed]
    assert wire.load_response(json.dumps(whole, indent=1).encode()) == events
    assert decode(json.dumps(whole).encode()[:50], json.dumps(whole).encode()[50:]) == events


def test_blocks_that_nobody_closed_are_whole_at_the_end():
    open_text = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "x"}, stop=False)
    open_block = block(1, {"type": "compaction", "content": "c"}, stop=False)
    folded = message(*open_text, *open_block, end(), STOP)
    assert [type(piece) for piece in folded.content] == [TextPart, ProviderPart]


def test_pings_comments_done_and_new_events_are_ignored():
    noise = b": hi\n\n" + sse({"type": "ping"}, {"type": "new_event", "index": 0}) + b"data: [DONE]\n\n"
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
                st.sampled_from(["index", "delta", "content_block", "message", "usage", "error", "content"]),
                JSON_VALUES,
            ),
        ),
        max_size=5,
    )
)
@settings(max_examples=80, deadline=None)
def test_no_answer_makes_the_decoder_raise(pieces):
    events = decode(sse(*[{**fields, "type": kind} for kind, fields in pieces]))
    fold(events)
    assert isinstance(events[-1], (RunError, MessageFinished))


# -- writing ----------------------------------------------------------------------------------------------------------

EVENTS = TypeAdapter(RawMessageStreamEvent)
MESSAGES = TypeAdapter(SdkMessage)


def encode(events, **envelope):
    encoder = wire.encoder(**envelope)
    return b"".join(map(encoder.feed, events)) + encoder.close()


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
        assert event["index"] == sum(e["type"] == "content_block_start" for e in blocks[: place + 1]) - 1
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
        frames(encode(events, id="msg_9", model="m9"))[0]["message"] | {"id": "msg_9", "model": "m9"}
        == frames(encode(events, id="msg_9", model="m9"))[0]["message"]
    )
    assert wire.dump_response(events, id="msg_9", model="m9")["id"] == "msg_9"


def test_deltas_are_written_as_they_come():
    encoder = wire.encoder()
    encoder.feed(MessageStarted("m", Role.MODEL))
    assert encoder.feed(PartStarted("m", 0, OpenText())) == b""
    assert b'"text":"a"' in encoder.feed(PartDelta("m", 0, "a"))
    assert b'"text":"b"' in encoder.feed(PartDelta("m", 0, "b"))
    assert frames(encoder.feed(PartFinished("m", 0, TextPart("ab")))) == [{"type": "content_block_stop", "index": 0}]


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
    other = [MessageStarted("c", Role.MODEL, candidate=1), PartStarted("c", 0, OpenText()), PartDelta("c", 0, "no")]
    data = encode([*unfold([user, model]), *other, RunFinished("r"), *unfold([Message.model("late").replace(id="l")])])
    checked(data)
    assert fold(decode(data))[0].text == "Hi"
    assert encode([]) == b""
    assert encode(unfold([user])) == b""


def test_several_messages_of_the_model_are_one_and_their_usage_is_added():
    events = []
    for id_ in "ab":
        events += unfold([Message.model(id_).replace(id=id_)])[:-1]
        events.append(MessageFinished(id_, FinishReason.stop, Usage(input_tokens=1, output_tokens=2)))
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
    model = Message.model("x", DataPart(b"", "image/png", "a.png"), ToolResultPart("a", "f", "ok")).replace(id="m")
    checked(encode(unfold([model])))
    assert fold(decode(encode(unfold([model]))))[0].text == "x[media: image/png] a.png"


TEXTS = st.text(min_size=1, max_size=20)
SIGNATURES = st.fixed_dictionaries({"signature": st.text(max_size=8)}).map(lambda own: {"anthropic": own})
ARGUMENTS = st.dictionaries(TEXTS, st.one_of(st.integers(-(2**53), 2**53), TEXTS, st.lists(st.booleans())), max_size=3)
IDS = st.from_regex(r"[a-z]{1,8}", fullmatch=True)
PIECES = st.one_of(
    st.builds(TextPart, TEXTS),
    st.builds(TextPart, TEXTS, st.just({"anthropic": {"citations": [{"type": "char_location"}]}})),
    st.builds(ThinkingPart, st.text(max_size=20), SIGNATURES),
    st.builds(ThinkingPart, native=st.just({"anthropic": {"type": "redacted_thinking", "data": "x"}})),
    st.builds(ToolCallPart, IDS, IDS, ARGUMENTS),
    st.builds(
        ToolCallPart,
        IDS,
        IDS,
        ARGUMENTS,
        run_by=st.just("provider"),
        native=st.just({"anthropic": {"type": "server_tool_use"}}),
    ),
    st.builds(ProviderPart, st.just("compaction"), st.just({"anthropic": {"type": "compaction", "content": "x"}})),
)
USAGES = st.builds(
    lambda fresh, read, output: Usage(
        input_tokens=fresh + read, output_tokens=output, total_tokens=fresh + read + output, cache_read_tokens=read
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
    events = unfold([Message.model(ThinkingPart("hm"), "a").replace(id="m", finish_reason=FinishReason.stop)])
    amended = PartFinished("m", 0, ThinkingPart("hm", {"openai_responses": {"encrypted_content": "late"}}))
    for place in (4, 5, len(events) - 1):
        encoder = wire.encoder()
        told = [*events[:place], amended, *events[place:]]
        assert [type(p) for p in fold(decode(b"".join(map(encoder.feed, told)) + encoder.close()))[0].content] == [
            ThinkingPart,
            TextPart,
        ]
