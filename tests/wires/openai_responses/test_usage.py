"""The openai_responses wire: how a response ended, what it counts, and what it says of itself
(D-142r)."""

from __future__ import annotations

import pytest

from dragoman.fold import fold, unfold
from dragoman.message import FinishReason, Message, Usage
from dragoman.wires import openai_responses as wire
from support.responses import (
    CALL,
    FULL_HEAD,
    NAME,
    WHOLE,
    call_item,
    end_event,
    message,
    message_block,
    message_item,
    text_block,
)


def test_usage_has_disjoint_buckets_within_the_totals():
    expected = Usage(
        input_tokens=10,
        output_tokens=7,
        total_tokens=17,
        cache_read_tokens=4,
        cache_write_tokens=2,
        reasoning_tokens=3,
    )
    assert message(end_event(message_item("x"))).usage == expected
    events_in = message(
        end_event(
            message_item("x"),
            usage={"input_tokens": 1, "output_tokens": 2, "cost": 0.5, "num_sources_used": 0},
        )
    )
    assert events_in.usage == Usage(input_tokens=1, output_tokens=2, total_tokens=3)
    assert events_in.native[NAME + ":notes"]["response"]["usage"] == {"cost": 0.5}


@pytest.mark.parametrize(
    ("field", "known"),
    [("input_tokens_details", "cached_tokens"), ("output_tokens_details", "reasoning_tokens")],
)
def test_what_no_neutral_count_says_is_kept_alone(field, known):
    usage = {
        "input_tokens": 1,
        "output_tokens": 2,
        field: {known: 1, "audio_tokens": 3, "image_tokens": 0},
    }
    read = message(end_event(message_item("x"), usage=usage))
    assert read.native[NAME + ":notes"]["response"]["usage"] == {field: {"audio_tokens": 3}}


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (end_event(message_item("x")), FinishReason.stop),
        (end_event(call_item()), FinishReason.tool_calls),
        (
            end_event(
                message_item("x"),
                kind="incomplete",
                incomplete_details={"reason": "max_output_tokens"},
            ),
            FinishReason.length,
        ),
        (
            end_event(kind="incomplete", incomplete_details={"reason": "content_filter"}),
            FinishReason.content_filter,
        ),
        (
            end_event(kind="incomplete", incomplete_details={"reason": "steered"}),
            FinishReason.unspecified,
        ),
        (end_event(kind="incomplete", incomplete_details=None), FinishReason.unspecified),
        (end_event(status="cancelled"), FinishReason.cancelled),
        (end_event(status="queued"), FinishReason.unspecified),
        (
            end_event({**message_item(""), "content": [{"type": "refusal", "refusal": "no"}]}),
            FinishReason.refusal,
        ),
    ],
)
def test_d142r_how_it_ended(end, reason):
    """But for calls, which wait for an answer whatever the status says (the brief's decision,
    against D-142r)."""
    folded = message(end)
    assert folded.finish_reason is reason
    assert wire.dump_response(unfold([folded]))["status"] == end["response"]["status"]


KEPT = (
    "background", "conversation", "frequency_penalty", "max_output_tokens", "max_tool_calls", "parallel_tool_calls", "presence_penalty",
    "previous_response_id", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning", "safety_identifier", "stream",
    "temperature", "text", "tool_choice", "top_logprobs", "top_p", "truncation", "user",
)  # fmt: skip
OBJECTS = ("reasoning", "text")
LARGE = ("include", "instructions", "prompt", "tools")


@pytest.mark.parametrize("value", [{"x": 1}, "x"])
def test_d142r_what_is_kept_of_what_a_response_says_again(value):
    said_again = dict.fromkeys([*KEPT, *LARGE], value)
    itself = {"metadata": {"a": 1}, "service_tier": "flex", "store": False, "completed_at": 5}
    events = wire.load_response(
        {**WHOLE, **said_again, **itself, "output_text": "a", "empty": [], "none": None}
    )
    (read,) = fold(events)
    notes = read.native["openai_responses:notes"]
    kept = {
        key: each
        for key, each in said_again.items()
        if key in KEPT and (value != "x" or key not in OBJECTS)
    }
    assert notes["echo"] == kept
    assert notes["response"] == {"status": "completed", **itself}
    assert set(notes) == {"echo", "response", "digest"} and set(read.native) == {
        "openai_responses:notes"
    }
    again = wire.dump_response(events)
    assert {key: again[key] for key in [*kept, *itself]} == {**kept, **itself}
    usual = {key: each for key, each in FULL_HEAD.items() if key not in ("output", "usage")}
    assert wire.dump_response(wire.load_response({**WHOLE, **usual, "status": "completed", "store": True})) == {
        **FULL_HEAD, "status": "completed", "output": [message_block(text_block("a"))],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "status", "details"),
    [
        ("stop", "completed", None), ("tool_calls", "completed", None), ("refusal", "completed", None), ("pause", "completed", None),
        ("unspecified", "completed", None), (None, "completed", None), ("length", "incomplete", {"reason": "max_output_tokens"}),
        ("content_filter", "incomplete", {"reason": "content_filter"}), ("recitation", "incomplete", {"reason": "content_filter"}),
        ("cancelled", "cancelled", None), ("error", "failed", None),
    ],
)  # fmt: skip
def test_d142r_how_an_answer_of_others_ended(reason, status, details):
    body = wire.dump_response(unfold([Message.model("a").replace(id="m1", finish_reason=reason)]))
    assert body == {
        **FULL_HEAD, "id": "resp_m1", "created_at": 0, "model": "", "status": status, "incomplete_details": details,
        "output": [{"id": "msg_m1_0", "type": "message", "role": "assistant", "status": "completed", "content": [text_block("a")]}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("status", "why", "reason"),
    [
        ("completed", "max_output_tokens", "stop"), ("incomplete", "max_output_tokens", "length"), ("incomplete", "content_filter", "content_filter"),
        ("incomplete", "x", "unspecified"), ("incomplete", None, "unspecified"), ("cancelled", None, "cancelled"), ("queued", None, "unspecified"),
    ],
)  # fmt: skip
def test_d142r_how_an_answer_ended(status, why, reason):
    details = {"incomplete_details": {"reason": why}} if why else {}
    for more, ended in (
        ([], reason),
        ([CALL], "tool_calls" if reason == "stop" else reason),
        (
            [message_block({"type": "refusal", "refusal": "no"})],
            "refusal" if reason == "stop" else reason,
        ),
    ):
        (read,) = fold(
            wire.load_response(
                {
                    **WHOLE,
                    "status": status,
                    **details,
                    "output": [message_block(text_block("a")), *more],
                }
            )
        )
        assert read.finish_reason == ended


@pytest.mark.parametrize(
    ("counted", "usage", "written"),
    [
        ({"input_tokens": 1}, Usage(input_tokens=1), {"input_tokens": 1, "total_tokens": 1}),
        ({"output_tokens": 2}, Usage(output_tokens=2), {"output_tokens": 2, "total_tokens": 2}),
        ({"input_tokens": 1, "output_tokens": 2}, Usage(input_tokens=1, output_tokens=2, total_tokens=3), {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
        ({"input_tokens": True, "total_tokens": 9}, Usage(total_tokens=9), {"total_tokens": 9}),
        ({"input_tokens": 1, "output_tokens": 2, "total_tokens": 9}, Usage(input_tokens=1, output_tokens=2, total_tokens=9), {"input_tokens": 1, "output_tokens": 2, "total_tokens": 9}),
        ({"x": 1}, None, None), ({}, None, None), ("x", None, None),
    ],
)  # fmt: skip
def test_usage_to_the_last_count(counted, usage, written):
    events = wire.load_response({**WHOLE, "usage": counted})
    assert fold(events)[0].usage == usage
    nothing = {
        "input_tokens": 0, "output_tokens": 0, "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 0,
    }  # fmt: skip
    assert wire.dump_response(events)["usage"] == (
        None if written is None else {**nothing, **written}
    )


def test_an_unknown_count_of_cached_tokens_is_a_number_where_no_response_had_it():
    """The official clients' types demand one; a response that came without it goes without it."""
    events = unfold([Message.model("a").replace(usage=Usage(input_tokens=1, output_tokens=2))])
    assert wire.dump_response(events)["usage"]["input_tokens_details"]["cache_write_tokens"] == 0
    events = wire.load_response(
        {**WHOLE, "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}}
    )
    assert "cache_write_tokens" not in wire.dump_response(events)["usage"]["input_tokens_details"]
    events = unfold(
        [
            Message.model("a").replace(
                usage=Usage(input_tokens=1, output_tokens=2, cache_write_tokens=0)
            )
        ]
    )
    assert wire.dump_response(events)["usage"]["input_tokens_details"]["cache_write_tokens"] == 0
