"""A usual message is not read back while it is written, and its AG-UI messages are the same as if
it had been."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings

from dragoman.content import Citation
from dragoman.message import (
    FinishReason,
    Message,
    Origin,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.wires import ag_ui
from dragoman.wires.ag_ui import messages_dump, tools
from support.conversations import conversations
from support.histories import NEUTRAL

CALL = ToolCallPart("c1", "look", {"at": "it", "far": 1.0})
RESULT = ToolResultPart("c1", "look", {"seen": 1})
TALK = [
    Message.system("Be brief."),
    Message.user("Look.").replace(id="u1", created_at=datetime(2026, 3, 1, tzinfo=UTC)),
    Message.model("I look.", CALL).replace(
        id="a1",
        turn="a1",
        origin=Origin("openai", None, "gpt-5"),
        usage=Usage(input_tokens=1, output_tokens=2),
        finish_reason=FinishReason.tool_calls,
        metadata={"shown": True},
    ),
    Message.user(RESULT).replace(id="a1:1", turn="a1", metadata={"shown": True}),
    Message.model("It is there.").replace(turn="a1", metadata={"ag-ui": 1, "dragoman": "x"}),
]
ODD = [
    Message.user(TextPart("Look.", citations=(Citation(url="https://host.test"),))),
    Message.user(TextPart("Look.", native={"openai_chat": {"x": 1}})),
    Message.user("Look.").replace(native={"ag_ui": {"name": "Ann"}}),
    Message.user("Look.").replace(id=""),
    Message.user("Look.", RESULT, "Again."),
    Message.user(RESULT, RESULT, ToolResultPart("c2", "hear", "no", is_error=True)),
    Message.user(CALL),
    Message.user(),
    Message.model("I look.", CALL, CALL, ToolCallPart("c2", "look", raw="{", state="cut")),
    Message.model("I look.", CALL, "Wait."),
    Message.model(CALL, "I look."),
    Message.model(ToolResultPart("c1", "look", "it", run_by="provider")),
    Message.system("Be brief.", "Be long."),
    *[
        Message.model(call)
        for call in (
            ToolCallPart("", "look", {"at": 2**70}),
            ToolCallPart("c8", "look", {"at": 2**70, "far": 1e400}),
            ToolCallPart("c8", "look", {"at": "\ud800", "of": ("a", "\u00e9\x1f")}),
            ToolCallPart("c8", "look", {"at": 1}, raw='{"at": 1}'),
            ToolCallPart("c8", "look", {"at": 1}, run_by="client"),
            ToolCallPart("c8", "look", native={"ag_ui": {"x": 1}}),
        )
    ],
    *[
        Message.user(result)
        for result in (
            ToolResultPart("c1", "hear", "no"),
            ToolResultPart("c1", "look", "no", denied=True),
            ToolResultPart("c1", "look", 2**70),
            ToolResultPart("c1", "look", [{"at": "\u00e9"}, 1.0, None]),
            ToolResultPart("c1", "look", "\ud800"),
            ToolResultPart("c1", "look", [TextPart("seen")]),
            ToolResultPart("c1", "look", None, run_by="client"),
        )
    ],
]


def dump_reading_back(messages: list[Message]) -> Any:
    with (
        patch.object(messages_dump, "_is_usual", return_value=False),
        patch.object(tools, "_is_plain_call", return_value=False),
        patch.object(tools, "_is_plain", return_value=False),
    ):
        return ag_ui.dump_messages(messages)


@pytest.mark.parametrize("kind", NEUTRAL)
def test_a_conversation_is_written_as_if_it_had_been_read_back(kind: str) -> None:
    assert ag_ui.dump_messages(NEUTRAL[kind]) == dump_reading_back(NEUTRAL[kind])


@pytest.mark.parametrize("message", [*TALK, *ODD])
def test_a_message_is_written_as_if_it_had_been_read_back(message: Message) -> None:
    for messages in ([message], [message, message], [*TALK, message, *TALK]):
        assert ag_ui.dump_messages(messages) == dump_reading_back(messages)


@settings(max_examples=30, deadline=None)
@given(messages=conversations())
def test_any_message_is_written_as_if_it_had_been_read_back(messages: list[Message]) -> None:
    assert ag_ui.dump_messages(messages) == dump_reading_back(messages)


def test_a_usual_message_is_not_read_back() -> None:
    read = AssertionError("it was read")
    with (
        patch.object(messages_dump, "load_group", side_effect=read),
        patch.object(tools, "load_call", side_effect=read),
        patch.object(tools, "load_result", side_effect=read),
    ):
        written = ag_ui.dump_messages(TALK)
    assert ag_ui.load_messages(written) == TALK


def test_a_result_with_half_a_character_is_carried() -> None:
    message = Message.user(ToolResultPart("c1", "look", {"at": "\ud800"})).replace(id="m")
    written = ag_ui.dump_messages([message])
    with patch.object(tools, "_is_plain", return_value=False):
        assert ag_ui.dump_messages([message]) == written
