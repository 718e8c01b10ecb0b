"""Answers as Ollama's wire reads them."""

from __future__ import annotations

import json

import pytest

from dragoman.event import RunError
from dragoman.fold import fold
from dragoman.message import FinishReason, TextPart, ThinkingPart, ToolCallPart, Usage
from support.ollama import call, decode, line


def test_thinking_text_and_calls_over_several_lines():
    events = decode(
        line(thinking="h"),
        line(thinking="m"),
        line(content="a"),
        line(content="b"),
        line(tool_calls=[call("f", {"x": 1}, id="c1")]),
        line(tool_calls=[call("f", {"x": 2})]),
        line(done=True) | {"done_reason": "stop", "eval_count": 3},
        line(content="too late"),
    )
    (message,) = fold(events)
    own = {"ollama": {"id": None}}
    assert message.content == (
        ThinkingPart("hm"),
        TextPart("ab"),
        ToolCallPart("c1", "f", {"x": 1}),
        ToolCallPart("call-0", "f", {"x": 2}, native=own),
    )
    assert message.finish_reason is FinishReason.tool_calls
    assert message.usage == Usage(output_tokens=3)


def test_decision_2_text_on_both_sides_of_a_call_stays_there():
    (message,) = fold(
        decode(line(content="a"), line(tool_calls=[call()]), line(content="b"), line(done=True))
    )
    assert [type(part).__name__ for part in message.content] == [
        "TextPart",
        "ToolCallPart",
        "TextPart",
    ]


def test_ids_are_minted_by_the_caller_where_none_came():
    ids = iter("abc")
    (message,) = fold(
        decode(line(tool_calls=[call(), call()]), line(done=True), new_id=lambda: next(ids))
    )
    assert (message.id, [c.id for c in message.tool_calls]) == ("a", ["b", "c"])


def test_a_whole_answer_over_several_lines_is_read():
    body = json.dumps(line(done=True, content="hé") | {"done_reason": "stop"}, indent=2).encode()
    assert fold(decode(body))[0].text == "hé"
    assert (
        fold(decode(body[:-1]))[:1] == []
        and type(decode(body[:-1])[-1].error).__name__ == "StreamCutError"
    )


@pytest.mark.parametrize(
    ("lines", "error", "text"),
    [
        ([line(content="a"), {"error": "server busy, please try again"}], "OverloadedError", "a"),
        ([{"error": {"message": "an odd one"}}], "ProviderError", None),
        ([{"error": "no", "status_code": 401}], "AuthenticationError", None),
        ([line(content="a"), b"{cut", b"\n"], "DecodeError", "a"),
        ([b"<html>"], "DecodeError", None),
        ([b"{malformed: <<<"], "DecodeError", None),
        ([line(content="a"), b"[1]\n"], "DecodeError", "a"),
        ([b'{"x": 1}\n'], "DecodeError", None),
        ([{"message": 1}], "DecodeError", None),
        ([line(content=["a"])], "DecodeError", ""),
        ([line(content="a"), line(tool_calls=[{"function": {}}])], "DecodeError", "a"),
        ([], "StreamCutError", None),
        ([line(content="a"), b'{"model": "m", "cre'], "StreamCutError", "a"),
    ],
)
def test_what_goes_wrong_in_an_answer_is_an_error_value(lines, error, text):
    *_, last = decode(*lines)
    assert isinstance(last, RunError) and type(last.error).__name__ == error
    partial = last.error.partial
    assert (partial.text if partial else None) == text
