"""The ollama wire at the edges of its tables."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.errors import StreamCutError
from dragoman.event import RunError
from dragoman.loss import Loss
from dragoman.message import Message, Role, ThinkingPart, ToolCallPart, ToolResultPart
from dragoman.wires import ollama as wire


def test_a_result_in_the_models_own_message_is_lost_and_said_to_be() -> None:
    losses: list[Loss] = []
    message = Message.model(ToolCallPart("c1", "t", {"x": 1}), ToolResultPart("c1", "t", "7"))
    call = {"id": "c1", "function": {"name": "t", "arguments": {"x": 1}}}
    assert wire.dump_messages([message], losses=losses) == [
        {"role": "assistant", "content": "", "tool_calls": [call]}
    ]
    assert losses == [Loss(0, 1, "tool result", "this format has no tools that the provider runs")]


def test_a_stream_that_was_cut_says_so() -> None:
    decoder = wire.decoder()
    *_, error = [
        *decoder.feed(b'{"message":{"role":"assistant","content":"hi"},"done":false}\n'),
        *decoder.close(),
    ]
    assert isinstance(error, RunError)
    assert isinstance(error.error, StreamCutError)
    assert error.error.message == "the stream ended before the answer did. Send the request again."


@pytest.mark.parametrize(("last", "told"), [({}, "t2"), ({"created_at": "t3"}, "t3")])
def test_the_last_time_that_was_told_is_the_answers(last: dict[str, str], told: str) -> None:
    lines: list[dict[str, Any]] = [
        {
            "model": "m",
            "created_at": "t1",
            "message": {"role": "assistant", "content": "a"},
            "done": False,
        },
        {
            "model": "m",
            "created_at": "t2",
            "message": {"role": "assistant", "content": "b"},
            "done": False,
        },
        {
            "model": "m",
            "message": {"role": "assistant", "content": ""},
            "done": True,
            "done_reason": "stop",
            **last,
        },
    ]
    decoder = wire.decoder()
    events = [
        *decoder.feed(b"".join(json.dumps(line).encode() + b"\n" for line in lines)),
        *decoder.close(),
    ]
    assert wire.dump_response(events)["created_at"] == told


@pytest.mark.parametrize(
    "message", [Message.user(ThinkingPart("hm"), "a"), Message.model(ThinkingPart(""), "a")]
)
def test_thinking_that_nobody_can_read_is_lost_and_said_to_be(message: Message) -> None:
    losses: list[Loss] = []
    [sent] = wire.dump_messages([message], losses=losses)
    assert sent == {"role": "user" if message.role is Role.USER else "assistant", "content": "a"}
    assert losses == [Loss(0, 0, "thinking", "only a model's message has readable thinking here")]
