"""How an answer of Google's wire ended: usage, finish reasons and what stands around the candidates
(D-126, D-128)."""

from __future__ import annotations

import pytest

from dragoman.fold import fold, unfold
from dragoman.message import FinishReason, Message, Usage
from dragoman.wires import google as wire
from support.google import (
    ENDS,
    PARTS,
    answer,
    body,
    chunk,
    decode,
    decode_chunks,
    message,
    sse,
    text,
    whole,
)


def test_d128_what_stands_around_the_answer_is_kept():
    beside = {
        "groundingMetadata": {"a": 1},
        "citationMetadata": {"citations": [1]},
        "safetyRatings": [],
        "finishMessage": "m",
    }
    first, last = (
        chunk(text("a")),
        chunk(text("b"), finish="STOP", createTime="t", modelVersion="v", responseId="r"),
    )
    first["candidates"][0] |= {
        "groundingMetadata": {"b": 2},
        "citationMetadata": {"citations": [0]},
    }
    last["candidates"][0] |= beside
    read = message(first, last)
    assert read.native["google:notes"]["response"] == {
        **beside, "groundingMetadata": {"a": 1, "b": 2}, "citationMetadata": {"citations": [0, 1]}, "createTime": "t",
    }  # fmt: skip
    assert (read.origin.served_model, read.origin.response_id) == ("v", "r")


def test_usage_is_the_last_that_was_told():
    first = {
        "promptTokenCount": 5,
        "candidatesTokenCount": 1,
        "totalTokenCount": 6,
        "serviceTier": "standard",
    }
    last = {
        "promptTokenCount": 5, "candidatesTokenCount": 4, "thoughtsTokenCount": 3, "cachedContentTokenCount": 2,
        "toolUsePromptTokenCount": 10, "totalTokenCount": 22, "serviceTier": None, "promptTokensDetails": [1],
    }  # fmt: skip
    read = message(
        chunk(text("a"), usageMetadata=first),
        chunk(text("b"), usageMetadata=last),
        chunk(text("c"), finish="STOP"),
    )
    assert read.usage == Usage(
        input_tokens=15,
        output_tokens=7,
        total_tokens=22,
        cache_read_tokens=2,
        cache_write_tokens=None,
        reasoning_tokens=3,
    )
    assert read.native["google:notes"]["response"]["usageMetadata"] == {
        "toolUsePromptTokenCount": 10, "serviceTier": "standard", "promptTokensDetails": [1],
    }  # fmt: skip


def test_a_total_that_is_not_told_is_the_sum():
    usage = whole(text("a"), usageMetadata={"promptTokenCount": 3, "candidatesTokenCount": 4}).usage
    assert usage.total_tokens == 7


def test_usage_that_is_not_told_is_not_made_up():
    assert whole(text("a")).usage is None
    assert whole(text("a"), usageMetadata={"trafficType": "x"}).usage is None
    assert whole(text("a"), usageMetadata={"promptTokenCount": 3}).usage == Usage(input_tokens=3)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        *[(name, FinishReason.content_filter) for name in ("SAFETY", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "SPII", "MODEL_ARMOR", "IMAGE_PROHIBITED_CONTENT")],
        *[(name, FinishReason.recitation) for name in ("RECITATION", "IMAGE_RECITATION")],
        *[(name, FinishReason.error) for name in ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE", "NO_IMAGE", "IMAGE_OTHER")],
        *[(name, FinishReason.unspecified) for name in ("FINISH_REASON_UNSPECIFIED", "OTHER", "SOMETHING_NEW")],
        *[(name, FinishReason.content_filter) for name in ("LANGUAGE", "ESCALATION", "PUP_LIMITED_DISABLED")],
        ("CONTINUATION", FinishReason.length),
        ("STOP", FinishReason.stop),
        ("MAX_TOKENS", FinishReason.length),
    ],
)  # fmt: skip
def test_d126_finish_reasons_and_back(name, reason):
    events = decode(sse(chunk(text("a"), finish=name)))
    assert fold(events)[0].finish_reason is reason
    assert wire.dump_response(events)["candidates"][0]["finishReason"] == name


def test_a_blocked_prompt_is_an_empty_message_that_the_filter_cut():
    feedback = {
        "promptFeedback": {"blockReason": "SAFETY", "safetyRatings": []},
        "usageMetadata": {"promptTokenCount": 4},
    }
    for events in (decode(sse(feedback)), wire.load_response(feedback)):
        (read,) = fold(events)
        assert (read.content, read.finish_reason, read.usage.input_tokens) == (
            (),
            FinishReason.content_filter,
            4,
        )
        assert read.native["google:notes"]["response"] == {
            "block_reason": "SAFETY",
            "promptFeedback": {"safetyRatings": []},
        }
        assert wire.dump_response(events) == {"candidates": [], **feedback}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"createTime": "t", "modelStatus": {"a": 1}, "turnToken": "k"},
        {"promptFeedback": {"safetyRatings": []}},
    ],
)
def test_d126_d128_how_an_answer_ended_is_written_as_it_was_read(end, fields):
    answer = body(PARTS["text"], end, **fields)
    assert wire.dump_response(wire.load_response(answer)) == answer


def test_d128_a_blocked_prompt_is_written_as_it_was_read():
    answer = {
        "candidates": [],
        "promptFeedback": {"blockReason": "SAFETY", "safetyRatings": [{"a": 1}]},
        "modelVersion": "m",
    }
    assert wire.dump_response(wire.load_response(answer)) == answer


@pytest.mark.parametrize("number", [1, 2, 3, 4, 7, 8, 11, 99])
def test_d126_reasons_by_their_numbers(number):
    reason = {
        1: "stop",
        2: "length",
        3: "content_filter",
        4: "recitation",
        7: "content_filter",
        8: "content_filter",
        11: "content_filter",
    }
    (read,) = fold(wire.load_response(body(PARTS["text"], {"finishReason": number})))
    assert read.finish_reason == reason.get(number, "unspecified")


@pytest.mark.parametrize(
    ("reason", "name"),
    [
        ("stop", "STOP"), ("tool_calls", "STOP"), ("length", "MAX_TOKENS"), ("content_filter", "SAFETY"), ("refusal", "SAFETY"), ("recitation", "RECITATION"),
        ("cancelled", "OTHER"), ("unspecified", "OTHER"), (None, "OTHER"),
    ],
)  # fmt: skip
def test_d126_reasons_of_others(reason, name):
    made = Message.model("a").replace(
        finish_reason=reason, usage=Usage(input_tokens=5, output_tokens=3, reasoning_tokens=3)
    )
    assert wire.dump_response(unfold([made])) == {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": "a"}]},
                "finishReason": name,
                "index": 0,
            }
        ],
        "usageMetadata": {"promptTokenCount": 5, "thoughtsTokenCount": 3},
    }


@pytest.mark.parametrize("end", ["SAFETY", "MAX_TOKENS", "RECITATION", "OTHER", "STOP"])
def test_d126_calls_count_where_the_answer_ended_by_itself_alone(end):
    (read,) = fold(wire.load_response(body(PARTS["call"], {"finishReason": end})))
    (plain,) = fold(wire.load_response(body(PARTS["text"], {"finishReason": end})))
    assert read.finish_reason == (FinishReason.tool_calls if end == "STOP" else plain.finish_reason)


def test_a_bool_is_no_count_of_tokens():
    (message,) = fold(
        wire.load_response({**answer({"text": "a"}), "usageMetadata": {"promptTokenCount": True}})
    )
    assert message.usage is None and Message.from_json(message.to_json()) == message


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (1, "stop"),
        (2, "length"),
        (3, "content_filter"),
        (4, "recitation"),
        (8, "content_filter"),
        (5, "unspecified"),
    ],
)
def test_a_finish_reason_by_its_number_is_read_and_written_again(number, reason):
    counted = {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3}
    events = decode_chunks({**answer({"text": "a"}, finishReason=number), "usageMetadata": counted})
    (message,) = fold(events)
    assert (message.finish_reason, message.usage.total_tokens) == (reason, 3)
    assert wire.dump_response(events)["candidates"][0]["finishReason"] == number
