"""The cohere wire at the edges of its tables."""

from __future__ import annotations

from dragoman.loss import Loss
from dragoman.message import Message, ThinkingPart, ToolCallPart
from dragoman.wires import cohere as wire


def test_a_call_that_stands_in_a_users_message_is_lost_and_said_to_be() -> None:
    losses: list[Loss] = []
    call = ToolCallPart("c1", "f", {}, native={"cohere": {"own": 1}})
    assert wire.dump_messages([Message.user("hi", call)], losses=losses) == [{"role": "user", "content": "hi"}]
    assert losses == [Loss(0, 1, "tool_call", "the API has no block for it")]


def test_thinking_of_which_another_format_holds_a_signature_alone_is_lost_and_said_to_be() -> None:
    losses: list[Loss] = []
    signed = ThinkingPart("", native={"anthropic": {"signature": "s"}})
    assert wire.dump_messages([Message.model(signed, "hi")], losses=losses) == [{"role": "assistant", "content": "hi"}]
    assert losses == [Loss(0, 0, "thinking", "it is signed for another format")]
