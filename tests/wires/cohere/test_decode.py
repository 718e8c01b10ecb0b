"""The cohere wire: a response, streamed or whole, becomes events (D-6, D-96)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.event import RunError
from dragoman.fold import fold, unfold
from dragoman.message import (
    FinishReason,
    Origin,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    Usage,
)
from dragoman.wires import cohere as wire
from dragoman.wires.cohere.quirks import OWN
from support.cohere import (
    ANNOTATED,
    END,
    PLAN,
    START,
    call,
    content,
    decode,
    encode,
    end,
    opened,
    piece,
    stream,
)


def test_a_plan_then_calls_side_by_side():
    message, = fold(
        decode(
            stream(
                START,
                {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "I "}}},
                {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "look"}}},
                opened(0),
                opened(1, "g", call_id=""),
                call(1, function={"arguments": '{"y":'}),
                call(0, function={"arguments": '{"x":1}'}),
                call(1, function={"arguments": "2}"}),
                {"type": "tool-call-end", "index": 0},
                {"type": "tool-call-end", "index": 1},
                {"type": "never-heard-of"},
                end("TOOL_CALL", usage={"billed_units": {"input_tokens": 3, "output_tokens": 4}}),
                b"[DONE]",
                content(0, text="too late"),
            )
        )
    )  # fmt: skip
    assert message.content == (
        ThinkingPart("I look", PLAN),
        ToolCallPart("c1", "f", {"x": 1}),
        ToolCallPart("call-1", "g", {"y": 2}, native={"cohere": {"id": None}}),
    )
    assert message.finish_reason is FinishReason.tool_calls
    assert message.usage == Usage(input_tokens=3, output_tokens=4, total_tokens=7)
    assert message.origin == Origin("", response_id="r1")


@pytest.mark.parametrize(
    ("text", "reason", "state"),
    [
        ("", "TOOL_CALL", "complete"),
        ("null", "TOOL_CALL", "complete"),
        ("{}", "MAX_TOKENS", "complete"),
        ("", "MAX_TOKENS", "cut"),
        ('{"x":', "MAX_TOKENS", "cut"),
        ('{"x":', "TOOL_CALL", "invalid"),
        ("[1]", "COMPLETE", "invalid"),
    ],
)
def test_d96_arguments_may_be_none_cut_or_invalid(text, reason, state):
    events = decode(
        stream(START, opened(0, arguments=text), {"type": "tool-call-end", "index": 0}, end(reason))
    )
    (found,) = fold(events)[0].tool_calls
    assert (found.state, found.arguments) == (state, {})


def test_blocks_of_other_kinds_and_log_probabilities_are_kept():
    document = {"type": "document", "document": {"data": "x"}}
    delta = content(0, text="a")
    delta["delta"]["logprobs"] = {"text": "a"}
    (message,) = fold(
        decode(
            stream(
                START,
                content(0, "content-start", type="text", text=""),
                delta,
                content(1, "content-start", **document),
                end(),
            )
        )
    )
    assert message.text == "a" and message.content[1] == ProviderPart(
        "document", {"cohere": document}
    )
    assert message.native["cohere:notes"]["response"]["logprobs"] == [{"text": "a"}]


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        (stream(START, content(0, text="a"), end("ERROR", error="too many requests")), "RateLimitError", "a"),
        (stream(START, end("ERROR")), "ProviderError", ""),
        (stream(START, end("TIMEOUT")), "ProviderTimeoutError", ""),
        (b'{"id": "r9", "message": "invalid api token"}', "AuthenticationError", None),
        (stream({"message": "odd"}), "ProviderError", None),
        (stream(START, b"{odd"), "DecodeError", ""),
        (stream(START, b"[1]"), "DecodeError", ""),
        (stream(START, call(3, function={"arguments": "x"})), "DecodeError", ""),
        (stream(START, opened(0, name="")), "DecodeError", ""),
        (stream(START, content(0, text=1)), "DecodeError", ""),
        (stream(START, content(0, text="a"), content(0, thinking="h")), "DecodeError", "a"),
        (stream(START, {"type": "content-start", "index": 0}), "DecodeError", ""),
        (stream(START, {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": 1}}}), "DecodeError", ""),
        (b'{"finish_reason": "COMPLETE", "message": {"content": 1}}', "DecodeError", ""),
        (b'{"finish_reason": "COMPLETE", "message": 1}', "DecodeError", None),
        (b"<html>", "DecodeError", None),
        (b"", "StreamCutError", None),
        (stream(START, content(0, text="a")) + b'data: {"type": "mess', "StreamCutError", "a"),
    ],
)  # fmt: skip
def test_what_goes_wrong_in_an_answer_is_an_error_value(data, error, text):
    *_, last = decode(data)
    assert isinstance(last, RunError) and type(last.error).__name__ == error
    partial = last.error.partial
    assert (partial.text if partial else None) == text


def test_a_block_may_begin_without_its_text():
    (message,) = fold(
        decode(stream(START, content(0, "content-start", type="text"), content(0, text="a"), end()))
    )
    assert message.text == "a"


def test_ids_are_minted_by_the_caller_where_none_came():
    ids = iter("abc")
    events = decode(stream(START, opened(0, call_id=""), end("TOOL_CALL")), lambda: next(ids))
    assert (fold(events)[0].id, fold(events)[0].tool_calls[0].id) == ("a", "b")


def test_text_after_a_plan_ends_the_plan():
    plan = {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "p"}}}
    (message,) = fold(
        decode(stream(START, plan, content(0, "content-start", type="text", text="a"), plan, end()))
    )
    assert message.content == (ThinkingPart("p", PLAN), TextPart("a"), ThinkingPart("p", PLAN))


def test_log_probabilities_beside_the_deltas_are_kept_in_order():
    pieces = [piece(str(n), logprobs={"text": str(n), "logprobs": [-n]}) for n in range(4)]
    (message,) = fold(decode(stream(ANNOTATED, *pieces, END)))
    assert message.text == "0123"
    assert [entry["text"] for entry in OWN.response(message.native)["logprobs"]] == list("0123")
    again = fold(decode(stream(*encode(unfold([message])))))[0]
    assert OWN.response(again.native)["logprobs"] == OWN.response(message.native)["logprobs"]
    assert (
        wire.dump_response(unfold([message]))["logprobs"]
        == OWN.response(message.native)["logprobs"]
    )


def test_log_probabilities_cost_linear_time(monkeypatch: pytest.MonkeyPatch):
    """The list of those so far is not copied with each that comes: it stays the same list."""
    decoder = wire.decoder()
    decoder.feed(stream(ANNOTATED, piece("a", logprobs={"n": 0})))
    (so_far,) = [
        value for value in vars(decoder).values() if isinstance(value, dict) and "logprobs" in value
    ]
    first = so_far["logprobs"]
    decoder.feed(stream(*(piece("a", logprobs={"n": n}) for n in range(1, 50))))
    assert so_far["logprobs"] is first and len(first) == 50


def decode_events(*events: Any) -> list[Any]:
    decoder = wire.decoder()
    data = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    return [*decoder.feed(data), *decoder.close()]


OPENED = {
    "type": "content-start",
    "index": 0,
    "delta": {"message": {"content": {"type": "text", "text": "a"}}},
}


@pytest.mark.parametrize("index", [{}, [0], None, 1.5, "x"])
@pytest.mark.parametrize(
    "kind", ["content-end", "content-delta", "tool-call-start", "tool-call-delta", "tool-call-end"]
)
def test_d6_an_index_of_any_kind_makes_no_decoder_raise(kind: str, index: Any):
    message = {
        "content": {"type": "text", "text": "b"},
        "tool_calls": {"id": "c", "function": {"name": "f", "arguments": "{}"}},
    }
    end = {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}}
    events = decode_events(
        START, OPENED, {"type": kind, "index": index, "delta": {"message": message}}, end
    )
    assert type(events[-1]).__name__ in ("RunError", "MessageFinished")


def test_the_end_of_a_block_without_a_number_ends_the_first():
    events = decode_events(START, OPENED, {"type": "content-end"})
    assert [type(event).__name__ for event in events[:4]] == [
        "MessageStarted",
        "PartStarted",
        "PartDelta",
        "PartFinished",
    ]
