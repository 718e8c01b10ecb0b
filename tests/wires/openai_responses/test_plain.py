"""The short way of plain messages writes what the long way writes; what a plain conversation costs
on three wires."""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings

from dragoman import wires
from dragoman.message import Message, Origin, TextPart, ToolCallPart, ToolResultPart
from dragoman.wires.openai_responses import items
from dragoman.wires.openai_responses import messages as responses
from support.conversations import conversations
from support.histories import NEUTRAL

TARGET = Origin("openai", None, "gpt-5")
CALL = ToolCallPart("c1", "look", {"at": "it"})
TALK = [
    Message.user("Look."),
    Message.model("I look.", CALL, ToolCallPart("c2", "hear")),
    Message.user(ToolResultPart("c1", "look", {"seen": 1}), ToolResultPart("c2", "hear", "no")),
    Message.model("It is there."),
]
ODD = [
    Message.model(),
    Message.user("Look.", "And hear."),
    Message.user(CALL),
    Message.system("Be brief.", "Be kind."),
    Message.model(ToolResultPart("c1", "look", 1)),
    Message.model("I look.", CALL, "Wait."),
    Message.model(TextPart("I look.", native={"openai_responses": {"x": 1}}), CALL),
    Message.model("I look.", ToolCallPart("c3", "look", raw="{", state="cut")),
    Message.model("I look.", ToolCallPart("c3", "look", run_by="provider")),
    Message.user(ToolResultPart("c1", "look", "no", is_error=True)),
    Message.user(ToolResultPart("c1", "look", [TextPart("seen")])),
    Message.model(
        ToolCallPart("c9", "shell", native={"openai_responses": {"type": "shell_call"}}), CALL
    ),
    Message.user(ToolResultPart("c9", "shell", "done")),
    Message.model("I look.", CALL).replace(native={"openai_responses": {"x": True}}),
]


def dump(messages: list[Message], target: Origin | None, wire: str = "openai_responses") -> Any:
    losses: list[Any] = []
    return wires.get(wire).dump_messages(messages, target=target, losses=losses), losses


def check(messages: list[Message]) -> None:
    for target in (None, TARGET):
        with patch.object(responses, "_dump_plain", return_value=[]):
            long_way = dump(messages, target)
        assert dump(messages, target) == long_way


@pytest.mark.parametrize("kind", NEUTRAL)
def test_every_kind_of_conversation_is_written_as_by_the_long_way(kind: str) -> None:
    check(NEUTRAL[kind])


@pytest.mark.parametrize("number", range(len(ODD)))
def test_an_odd_message_is_written_as_by_the_long_way(number: int) -> None:
    check([*TALK, ODD[number], *TALK])
    check([*TALK, *ODD[number:], *TALK])


@settings(max_examples=50, deadline=None)
@given(messages=conversations())
def test_any_conversation_is_written_as_by_the_long_way(messages: list[Message]) -> None:
    check(messages)


def test_a_plain_conversation_takes_the_short_way() -> None:
    with patch.object(items, "_Writer", side_effect=AssertionError("the long way")):
        (written, _) = dump(TALK, TARGET)
    assert len(written["input"]) == len(TALK) + 3  # two calls and two results


@pytest.mark.parametrize(
    ("wire", "most"), [("openai_responses", 6), ("google", 10), ("anthropic", 15)]
)
def test_a_plain_message_is_written_in_few_calls(wire: str, most: int) -> None:
    messages = [
        message
        for number in range(100)
        for call in [ToolCallPart(f"call-{number}", "look", {"at": number})]
        for message in (
            Message.user("Look."),
            Message.model("I look.", call),
            Message.user(ToolResultPart(call.id, call.name, {"seen": 1})),
            Message.model("It is there."),
        )
    ]
    called: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            called[frame.f_code.co_qualname] += 1

    dump(messages, None, wire)  # what is made once
    sys.setprofile(note)
    try:
        dump(messages, None, wire)
    finally:
        sys.setprofile(None)
    assert called.total() / len(messages) <= most, called.most_common(12)
