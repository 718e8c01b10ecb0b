"""How an answer of Ollama's wire ended: reasons, counts, log probabilities."""

from __future__ import annotations

import pytest

from dragoman.fold import fold
from dragoman.message import FinishReason
from dragoman.wires import ollama as wire
from support.ollama import call, decode, line


@pytest.mark.parametrize(
    ("why", "calls", "reason"),
    [
        ("stop", False, "stop"),
        ("stop", True, "tool_calls"),
        ("length", True, "length"),
        ("load", False, "unspecified"),
        ("unload", False, "unspecified"),
        (None, True, "tool_calls"),
        (None, False, "unspecified"),
    ],
)
def test_how_an_answer_ended(why, calls, reason):
    last = line(done=True, **({"tool_calls": [call()]} if calls else {}))
    (message,) = fold(decode(last | ({"done_reason": why} if why else {})))
    assert message.finish_reason is FinishReason[reason]
    kept = (message.native or {}).get("ollama:notes", {}).get("response", {}).get("done_reason")
    assert kept == (why if why in ("load", "unload") else None)


def test_log_probabilities_of_all_lines_are_kept():
    events = decode(
        line(content="a") | {"logprobs": [1]},
        line(content="b") | {"logprobs": [2]},
        line(done=True),
    )
    (message,) = fold(events)
    assert message.native["ollama:notes"]["response"]["logprobs"] == [1, 2]


def test_flags_are_no_counts():
    answer = {
        "message": {"content": "a"},
        "done": True,
        "prompt_eval_count": True,
        "eval_count": False,
    }
    assert fold(wire.load_response(answer))[0].usage is None
