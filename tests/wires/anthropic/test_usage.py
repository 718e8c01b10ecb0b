"""The anthropic wire: stop reasons and counts of tokens (D-112, D-113, decisions 3 and 21)."""

from __future__ import annotations

import pytest

from dragoman.event import MessageFinished
from dragoman.fold import fold, unfold
from dragoman.message import FinishReason, Message, Usage
from dragoman.wires import anthropic as wire
from support.anthropic import (
    END,
    START,
    STOP,
    TEXT,
    call,
    decode,
    decode_events,
    encode_events,
    end,
    message,
    sse,
    start_of,
    text,
)


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
    assert (folded.native or {}).get("anthropic:notes", {}).get("response", {}).get(
        "stop_reason"
    ) == kept
    assert (
        wire.dump_response(
            [*unfold([folded]), MessageFinished(folded.id, neutral, native=folded.native)]
        )["stop_reason"]
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
        input_tokens=17,
        output_tokens=7,
        total_tokens=24,
        cache_read_tokens=3,
        cache_write_tokens=4,
        reasoning_tokens=5,
    )
    assert usage == expected
    later = message(end(input_tokens=20, cache_read_input_tokens=None), end(), STOP).usage
    assert (later.input_tokens, later.output_tokens) == (27, 7)


def test_usage_that_tells_little():
    plain = {**START, "message": {**START["message"], "usage": {}}}
    (folded,) = fold(decode(sse(plain, end(), STOP)))
    assert folded.usage == Usage(output_tokens=7)
    (silent,) = fold(
        decode(sse(plain, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, STOP))
    )
    assert silent.usage is None


TIER = {
    "input_tokens": 3,
    "cache_read_input_tokens": 9,
    "cache_creation": {"ephemeral_5m_input_tokens": 0},
    "service_tier": "standard",
}


def test_usage_of_the_start_is_written_where_it_came():
    first, *_, last, _ = encode_events(decode_events(start_of(**TIER), *TEXT, *END))
    assert first["message"]["usage"] == {"output_tokens": 1, **TIER}
    assert last["usage"] == {"input_tokens": 3, "output_tokens": 7, "cache_read_input_tokens": 9}


def test_usage_of_a_stored_message_goes_out_once():
    events = decode_events(start_of(**TIER), *TEXT, *END)
    (message,) = fold(events)
    whole = wire.dump_response(events)
    assert whole["usage"] == {**TIER, "output_tokens": 7}
    assert message == fold(wire.load_response(whole))[0]
    first, *_, last, _ = encode_events(unfold([Message.from_json(message.to_json())]))
    assert (
        first["message"]["usage"]["service_tier"] == "standard"
        and "service_tier" not in last["usage"]
    )
    assert last["usage"]["input_tokens"] == 3
