"""The cohere wire at the edges of its tables."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.loss import Loss
from dragoman.message import Content, Message, TextPart, ThinkingPart, ToolCallPart
from dragoman.wires import cohere as wire


def test_a_call_that_stands_in_a_users_message_is_lost_and_said_to_be() -> None:
    losses: list[Loss] = []
    call = ToolCallPart("c1", "f", {}, native={"cohere": {"own": 1}})
    assert wire.dump_messages([Message.user("hi", call)], losses=losses) == [
        {"role": "user", "content": "hi"}
    ]
    assert losses == [Loss(0, 1, "tool call", "the API has no block for it")]


def test_thinking_of_which_another_format_holds_a_signature_alone_is_lost_and_said_to_be() -> None:
    losses: list[Loss] = []
    signed = ThinkingPart("", native={"anthropic": {"signature": "s"}})
    assert wire.dump_messages([Message.model(signed, "hi")], losses=losses) == [
        {"role": "assistant", "content": "hi"}
    ]
    assert losses == [Loss(0, 0, "thinking", "it is signed for another format")]


PLAN = ThinkingPart("I look.", native={"cohere:notes": {"spelling": {"field": "tool_plan"}}})
CALL = ToolCallPart("c1", "f", {})
SENT_CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ORDER = "this format has a message's plan before its content, and both before its calls"


@pytest.mark.parametrize(
    ("content", "sent", "lost"),
    [
        ((PLAN, TextPart("x"), CALL), {"content": "x", "tool_calls": [SENT_CALL]}, []),
        ((TextPart("x"), PLAN), {"content": "x"}, [Loss(0, 1, "order", ORDER)]),
        ((CALL, PLAN), {"tool_calls": [SENT_CALL]}, [Loss(0, 1, "order", ORDER)]),
    ],
)
def test_a_plan_goes_out_as_a_plan_wherever_it_stands(
    content: tuple[Content, ...], sent: dict[str, object], lost: list[Loss]
) -> None:
    losses: list[Loss] = []
    [message] = wire.dump_messages([Message.model(*content)], losses=losses)
    assert message == {"role": "assistant", "tool_plan": "I look.", **sent}
    assert losses == lost


def test_texts_that_follow_each_other_are_in_order() -> None:
    losses: list[Loss] = []
    [message] = wire.dump_messages([Message.model("x", "y")], losses=losses)
    assert [block["text"] for block in message["content"]] == ["x", "y"]
    assert losses == []


SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(
    ("function", "own"),
    [
        ({"name": "f", "parameters": SCHEMA}, None),
        ({"name": "f"}, {"cohere:notes": {"spelling": {"parameters": "absent"}}}),
        ({"name": "f", "parameters": {}}, {"cohere": {"function": {"parameters": {}}}}),
    ],
)
def test_a_tools_parameters_come_back_as_they_were(
    function: dict[str, Any], own: dict[str, Any] | None
) -> None:
    tools = [{"type": "function", "function": function}]
    body = {"model": "m", "messages": [{"role": "user", "content": "a"}], "tools": tools}
    request = wire.load_request(body)
    assert [tool.native for tool in request.tools] == [own]
    assert wire.dump_request(request) == body
