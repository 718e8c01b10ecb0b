"""The short way of plain turns writes what the long way writes, and what is not shown is not
made."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import formats
from dragoman.content import Citation
from dragoman.formats import ai_sdk_ui
from dragoman.message import (
    MarkPart,
    Message,
    Origin,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.wires.ai_sdk_messages import conversation, plain_turns
from support.conversations import conversations
from support.histories import NEUTRAL

UI = formats.get("ai_sdk_ui")
CALL, HEAR = ToolCallPart("c1", "look", {"at": "it"}), ToolCallPart("c2", "hear")
SEEN, HEARD = ToolResultPart("c1", "look", {"seen": 1}), ToolResultPart("c2", "hear", "no")
STEP = MarkPart("step-start")
TURNS: list[list[Message]] = [
    [Message.model("I look.", CALL, HEAR), Message.user(SEEN, HEARD), Message.model("There.")],
    [Message.model(CALL), Message.user(SEEN), Message.model(HEAR), Message.user(HEARD)],
    [Message.model(CALL), Message.user(SEEN), Message.model(STEP, "There.", STEP)],
    [Message.model(CALL, HEAR), Message.user(HEARD, SEEN), Message.model("There.")],
    [Message.model(CALL, HEAR), Message.user(SEEN), Message.user(HEARD), Message.model("There.")],
    [Message.model(CALL, CALL), Message.user(SEEN, SEEN), Message.model("There.")],
    [Message.model(CALL), Message.user(SEEN, "More?"), Message.model("There.")],
    [Message.model(CALL), Message.model("There.")],
    [Message.model(CALL, SEEN), Message.model("There.")],
    [Message.model(ThinkingPart("Hm."), CALL), Message.user(SEEN), Message.model("There.")],
    [Message.model(TextPart("Hm.", citations=(Citation("https://a.b"),))), Message.user(STEP, "I")],
    [
        Message.model(CALL),
        Message.user(ToolResultPart("c1", "look", "no", is_error=True)),
        Message.model("There."),
    ],
    [
        Message.model(CALL),
        Message.user(ToolResultPart("c1", "see", [TextPart("There")])),
        Message.model(),
        Message.model("There."),
    ],
    [Message.user(SEEN)],
    [Message.system("Be brief."), Message.user(), Message.model()],
]


def named(messages: list[Message], seed: int) -> list[Message]:
    """The messages with ids, turns and what an agent notes, more or less of it."""
    out: list[Message] = []
    turn = ""
    for number, message in enumerate(messages):
        answers = all(isinstance(piece, ToolResultPart) for piece in message.content)
        turn = turn if out and (answers or seed % 2) else f"m{number}"
        inner = number - int(turn[1:])
        id_ = f"{turn}:{inner}" if inner and seed % 3 else f"m{number}"
        message = message.replace(id=id_, turn=turn if seed % 5 else None)
        if seed % 7 == 1:
            made = datetime(2026, 3, 1, tzinfo=UTC)
            message = message.replace(
                created_at=made, usage=Usage(input_tokens=1), origin=Origin("openai")
            )
        out.append(message)
    return out


def check(messages: list[Message], version: str | None = None) -> None:
    losses: list[Any] = []
    lost: list[Any] = []
    written = UI.dump_messages(messages, losses=losses, version=version)
    shown = ai_sdk_ui.dump_shown(messages, version=version)  # pyright: ignore[reportArgumentType]
    with patch.object(conversation, "_dump_plain", return_value=None):
        assert UI.dump_messages(messages, losses=lost, version=version) == written
        long_way = ai_sdk_ui.dump_shown(messages, version=version, metadata=True)  # pyright: ignore[reportArgumentType]
    assert losses == lost
    assert shown == [ai_sdk_ui._without_own_metadata(one) for one in long_way]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("number", range(len(TURNS)))
def test_a_turn_is_written_as_by_the_long_way(number: int, seed: int) -> None:
    messages = [Message.user("Look."), *TURNS[number], Message.user("Thanks.")]
    for version in (None, "v4", "v5", "v7"):
        check(named(messages, seed), version)
    check(messages)


@pytest.mark.parametrize("kind", NEUTRAL)
def test_every_kind_of_conversation_is_written_as_by_the_long_way(kind: str) -> None:
    for seed in range(8):
        check(named(NEUTRAL[kind], seed))


@settings(max_examples=60, deadline=None)
@given(messages=conversations(), seed=st.integers(0, 34))
def test_any_conversation_is_written_as_by_the_long_way(messages: list[Message], seed: int) -> None:
    check(messages)
    check(named(messages, seed))


def test_a_plain_turn_takes_the_short_way_and_makes_no_more_than_is_shown() -> None:
    messages = named([Message.user("Look."), *TURNS[0]], 1)
    with (
        patch.object(conversation, "dump_group", side_effect=AssertionError("the long way")),
        patch.object(plain_turns, "extras_of", wraps=plain_turns.extras_of) as carried,
    ):
        assert len(ai_sdk_ui.dump_shown(messages)) == 2
        assert carried.call_count == 0
        assert len(UI.dump_messages(messages)) == 2
        assert carried.call_count == 2


TEXT, OPEN = {"type": "text", "text": "There.", "state": "done"}, {"type": "step-start"}
TOOL = {
    "type": "tool-look",
    "toolCallId": "c1",
    "state": "output-available",
    "input": {"at": "it"},
    "output": {"seen": 1},
}
CONTENT = {"type": "content", "value": [{"type": "text", "text": "seen"}]}
READ: list[list[Any]] = [
    [],
    [TEXT],
    [OPEN, TEXT],
    [OPEN, TOOL, OPEN, TEXT],
    [OPEN, TOOL, TOOL, TEXT, OPEN],
    [TOOL, OPEN, OPEN, TEXT],
    [TOOL, OPEN, TOOL, OPEN],
    [{**TOOL, "output": CONTENT}, TEXT],
    [{**TOOL, "state": "output-error", "errorText": "no"}, TEXT],
    [{**TOOL, "type": "tool-invocation"}, {**TOOL, "type": "tool-"}],
    [{**TOOL, "extra": 1}, TEXT, {"type": "text", "text": "There."}],
    [{"type": "reasoning", "text": "Hm.", "state": "done"}, TEXT],
    [TEXT, {"type": "file", "url": "https://a.b/c.png", "mediaType": "image/png"}],
]


@pytest.mark.parametrize("number", range(len(READ)))
@pytest.mark.parametrize("role", ["assistant", "user"])
def test_a_turn_is_read_as_by_the_long_way(number: int, role: str) -> None:
    listed = [
        {"id": "u", "role": "user", "parts": [{"type": "text", "text": "Look."}]},
        *[{"id": f"a{at}", "role": role, "parts": parts} for at, parts in enumerate(READ)],
        {"id": "a", "role": role, "parts": READ[number]},
        {"id": "a:1", "role": role, "parts": READ[number]},
    ]
    for payload in (listed, listed[:1] + listed[-2:], listed[-1:], listed[1:]):
        read = UI.load_messages(payload)
        with patch.object(conversation, "load_plain_turn", return_value=None):
            assert UI.load_messages(payload) == read


def test_a_plain_turn_is_read_the_short_way() -> None:
    entry = {"id": "a", "role": "assistant", "parts": READ[3]}
    with patch.object(conversation, "_load_entry", side_effect=AssertionError("the long way")):
        assert len(UI.load_messages([entry])) == 3
