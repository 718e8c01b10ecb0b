"""The short way of plain messages writes what the long way writes."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings

from dragoman import wires
from dragoman.message import NOTES, Message, Origin, TextPart, ToolCallPart, ToolResultPart
from dragoman.wires.chat import messages as chat_messages
from support.conversations import conversations
from support.histories import NEUTRAL

FAMILY = ("openai_chat", "mistral")
TARGETS = {
    "openai_chat": Origin("openai", None, "gpt-5"),
    "mistral": Origin("mistral", None, "mistral-large"),
}
CALL = ToolCallPart("c1", "look", {"at": "it"})
TALK = [
    Message.system("Be brief."),
    Message.user("Look."),
    Message.model("I look.", CALL, ToolCallPart("c2", "hear")),
    Message.user(ToolResultPart("c1", "look", {"seen": 1}), ToolResultPart("c2", "hear", "no")),
    Message.model("It is there."),
]
ODD = [
    Message.model("I look.", CALL, "Wait."),
    Message.model("I look.", "Wait.", CALL),
    Message.model(TextPart("I look.", native={"openai_chat": {"x": 1}}), CALL),
    Message.model(" ", CALL),
    Message.model("I look.", ToolCallPart("c3", "look", raw="{", state="cut")),
    Message.model("I look.", ToolCallPart("c3", "look", run_by="provider")),
    Message.model("I look.", CALL).replace(native={"mistral": {"prefix": True}}),
    Message.user("I look.").replace(native={"openai_chat": {"name": "ann"}}),
    *[
        message.replace(native={f"{name}{NOTES}": notes})
        for message in (Message.user("Look."), Message.model("I look.", CALL))
        for name in FAMILY
        for notes in ({"form": {"role": "developer", "content": "list"}}, {"response": {"x": 1}})
    ],
]


def dump(name: str, messages: list[Message], target: Origin | None) -> tuple[Any, Any]:
    losses: list[Any] = []
    return wires.get(name).dump_messages(messages, target=target, losses=losses), losses


def check(name: str, messages: list[Message]) -> None:
    for target in (None, TARGETS[name]):
        with patch.object(chat_messages, "_dump_plain", return_value=None):
            long_way = dump(name, messages, target)
        assert dump(name, messages, target) == long_way


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("kind", NEUTRAL)
def test_every_kind_of_conversation_is_written_as_by_the_long_way(name: str, kind: str) -> None:
    check(name, NEUTRAL[kind])


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("message", ODD)
def test_an_odd_message_is_written_as_by_the_long_way(name: str, message: Message) -> None:
    check(name, [*TALK, message, *TALK])


@settings(max_examples=30, deadline=None)
@given(messages=conversations())
def test_any_conversation_is_written_as_by_the_long_way(messages: list[Message]) -> None:
    for name in FAMILY:
        check(name, messages)


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("native", [None, {"response": {"service_tier": "default"}}])
def test_a_plain_conversation_takes_the_short_way(name: str, native: Any) -> None:
    """Also one of streamed answers, which note what stood around them."""
    noted = {f"{name}{NOTES}": native} if native else None
    talk = [message.replace(native=noted) for message in TALK]
    with patch.object(chat_messages, "_dump_answer", side_effect=AssertionError("the long way")):
        written, _ = dump(name, talk, TARGETS[name])
    assert len(written) == len(TALK) + 1  # two results
