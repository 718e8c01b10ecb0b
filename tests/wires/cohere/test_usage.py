"""The cohere wire: finish reasons and counts of tokens."""

from __future__ import annotations

import pytest

from dragoman.fold import fold
from dragoman.message import FinishReason, Usage
from dragoman.wires import cohere as wire
from support.cohere import START, content, decode, end, opened, stream


def test_usage_counts_all_tokens_and_buckets_are_parts_of_them():
    usage = {
        "billed_units": {"input_tokens": 1, "output_tokens": 2},
        "tokens": {
            "input_tokens": 10.0,
            "output_tokens": 20,
            "reasoning_tokens": 5,
            "image_tokens": 3,
        },
        "cached_tokens": 8,
    }
    message, = fold(decode(stream(START, content(0, "content-start", type="text", text="x"), end(usage=usage))))  # fmt: skip
    assert message.usage == Usage(
        input_tokens=10, output_tokens=20, total_tokens=30, cache_read_tokens=8, reasoning_tokens=5
    )
    assert message.native["cohere:notes"]["response"]["usage"] == {
        "billed_units": {"input_tokens": 1, "output_tokens": 2},
        "tokens": {"image_tokens": 3},
    }


@pytest.mark.parametrize(
    ("told", "calls", "reason"),
    [
        ("COMPLETE", False, "stop"),
        ("COMPLETE", True, "tool_calls"),
        ("STOP_SEQUENCE", False, "stop"),
        ("MAX_TOKENS", False, "length"),
        ("TOOL_CALL", True, "tool_calls"),
        ("NEW", False, "unspecified"),
    ],
)
def test_how_an_answer_ended(told, calls, reason):
    pieces = [opened(0), {"type": "tool-call-end", "index": 0}] if calls else []
    events = decode(stream(START, *pieces, end(told)))
    (message,) = fold(events)
    assert message.finish_reason is FinishReason[reason]
    assert wire.dump_response(events)["finish_reason"] == told


def test_usage_that_tells_one_count_has_no_total():
    (message,) = fold(decode(stream(START, end(usage={"tokens": {"output_tokens": 2}}))))
    assert message.usage == Usage(output_tokens=2)


def test_flags_are_no_counts():
    answer = {
        "message": {"content": []},
        "finish_reason": "COMPLETE",
        "usage": {"tokens": {"input_tokens": True}},
    }
    assert fold(wire.load_response(answer))[0].usage is None


def test_a_count_of_any_size_is_one():
    """Found by `make fuzz`: a whole number that no float holds raised an OverflowError."""
    for count, read in ((10**400, 10**400), (2.0, 2), (float("inf"), None)):
        answer = {
            "message": {"content": []},
            "finish_reason": "COMPLETE",
            "usage": {"tokens": {"output_tokens": count}},
        }
        usage = fold(wire.load_response(answer))[0].usage
        assert (usage and usage.output_tokens) == read
