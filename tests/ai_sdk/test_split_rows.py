"""Rows of Mastra's first versions (V1): read as what they say, written again as they were."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings

from dragoman import formats
from dragoman.codec.serving import Problem
from dragoman.errors import HistoryError
from dragoman.message import (
    LinkPart,
    Message,
    Origin,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from support import mastra_rows
from support.conversations import conversations

V1, V2 = formats.get("mastra_v1"), formats.get("mastra_v2")
AT = "2026-03-01T12:00:00.250Z"


def row(id_: str, role: str, type_: str, content: Any, **more: Any) -> dict[str, Any]:
    placed = {"threadId": "thread-1", "resourceId": "user-1"}
    return {
        "id": id_,
        "role": role,
        "type": type_,
        "createdAt": AT,
        "content": content,
        **placed,
        **more,
    }


def call(id_: str) -> dict[str, Any]:
    return {"type": "tool-call", "toolCallId": id_, "toolName": "weather", "args": {"city": "Rome"}}


def result(id_: str, value: Any = 21) -> dict[str, Any]:
    return {"type": "tool-result", "toolCallId": id_, "toolName": "weather", "result": value}


CONVERSATION = [
    row("s", "system", "text", "Be brief."),
    row("u", "user", "text", [{"type": "text", "text": "Look."}, {"type": "file", "data": "https://example.com/a.pdf", "mimeType": "application/pdf"}]),
    row("a", "assistant", "text", [{"type": "reasoning", "text": "Hm.", "signature": "c2ln"}, {"type": "redacted-reasoning", "data": "cmVk"}, {"type": "text", "text": "I look."}]),
    row("a__split-1", "assistant", "tool-call", [call("c1"), call("c2")], toolCallIds=["c1", "c2"]),
    row("a__split-2", "tool", "tool-result", [result("c1"), result("c2", {"error": "gone"})]),
    row("a__split-3", "assistant", "text", "21."),
    row("e", "assistant", "text", []),
    row("x", "signal", "text", "Built."),
]  # fmt: skip


def exact(conversation: list[Any]) -> list[Message]:
    messages = V1.load_messages(copy.deepcopy(conversation))
    stored = [Message.from_json(message.to_json()) for message in messages]
    assert stored == messages
    assert V1.dump_messages(stored) == conversation
    return messages


def test_a_conversation_comes_back_exactly() -> None:
    for each in [CONVERSATION, *[[one] for one in CONVERSATION]]:
        exact(each)
        assert formats.detect(each) == "mastra_v1"


def test_what_rows_say() -> None:
    messages = exact(CONVERSATION)
    assert [message.role for message in messages] == [
        "system",
        "user",
        "model",
        "model",
        "user",
        "model",
        "model",
        "user",
    ]
    assert messages[1].content[1] == LinkPart("https://example.com/a.pdf", "application/pdf")
    assert [message.id for message in messages] == [each["id"] for each in CONVERSATION]
    assert messages[2].origin == Origin("anthropic") and messages[2].thinking == "Hm."
    assert [each.id for each in messages[3].tool_calls] == ["c1", "c2"]
    assert [each.result for each in messages[4].tool_results] == [21, {"error": "gone"}]
    assert {message.created_at for message in messages} == {
        datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)
    }
    sent = formats.get("anthropic").dump_messages(messages, target=Origin("anthropic"))["messages"]
    assert {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"} in sent[1]["content"]


def test_a_message_is_split_where_texts_and_calls_meet_and_is_one_again() -> None:
    """M-92: ids after the first get `__split-N`, never twice; calls that wait have no result."""
    messages = [
        Message.user("Hi").replace(id="u"),
        Message.model(
            ThinkingPart("Hm."), "I look.", ToolCallPart("c1", "f"), ToolCallPart("c2", "f"), "And"
        ).replace(id="a"),
        Message.user(ToolResultPart("c1", "f", 1)).replace(id="a__split-1"),
        Message.model("Done.").replace(id="b"),
    ]
    rows = json.loads(json.dumps(V1.dump_messages(messages)))
    assert [(each["id"], each["role"], each["type"]) for each in rows] == [
        ("u", "user", "text"), ("a", "assistant", "text"), ("a__split-2", "assistant", "tool-call"), ("a__split-3", "assistant", "text"),
        ("a__split-1", "tool", "tool-result"), ("b", "assistant", "text"),
    ]  # fmt: skip
    assert [each["content"] for each in rows][3] == "And"
    back = V1.load_messages(rows)
    assert [(each.id, each.content) for each in back] == [
        (each.id, each.content) for each in messages
    ]
    assert V1.dump_messages(back) == rows


def test_a_row_keeps_its_thread_in_the_other_form() -> None:
    messages = V1.load_messages(CONVERSATION)
    assert {(each["threadId"], each["resourceId"]) for each in V2.dump_messages(messages)} == {
        ("thread-1", "user-1")
    }
    as_v2 = mastra_rows.conversation()
    rows = V1.dump_messages(V2.load_messages(as_v2))
    assert {(each["threadId"], each["resourceId"]) for each in rows} == {("thread-1", "user-1")}
    assert len({each["id"] for each in rows}) == len(rows)
    added = [*messages, Message.user("More")]
    assert V1.dump_messages(added)[-1]["threadId"] == "thread-1"


@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "data"}, {"role": []}, {"content": None}, {"content": {}}, {"role": "tool", "content": "x"}, {"content": [None]},
        {"content": [{"type": "tool-call", "toolCallId": 1}]},
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_read_says_which(wrong: dict[str, Any]) -> None:
    """M-02, M-07"""
    with pytest.raises(HistoryError, match=r"^\[1\]\."):
        V1.load_messages([CONVERSATION[0], {**CONVERSATION[1], **wrong}])
    problems: list[Problem] = []
    assert (
        len(
            V1.load_messages(
                [CONVERSATION[0], {**CONVERSATION[1], **wrong}, CONVERSATION[2]], problems=problems
            )
        )
        == 2
    )
    assert [problem.index for problem in problems] == [1]


def test_rows_of_any_shape_come_back() -> None:
    exact([{"role": "user", "content": "Hi"}])
    exact(
        [
            {
                **CONVERSATION[1],
                "id": 7,
                "createdAt": "yesterday",
                "type": "mine",
                "mine": {"a": 1},
                "threadId": None,
            }
        ]
    )
    exact(
        [
            {
                **CONVERSATION[1],
                "createdAt": 5,
                "providerOptions": {"dragoman": {"row": {"x": 1}}, "anthropic": {"a": 1}},
            }
        ]
    )
    exact(
        [
            {
                **CONVERSATION[5],
                "providerOptions": {"dragoman": {"row": {"goes_on": True, "id": "z"}}},
            }
        ]
    )
    exact(
        [
            {**CONVERSATION[5], "providerOptions": {"dragoman": {"row": {}}}},
            {**CONVERSATION[5], "providerOptions": 5},
        ]
    )
    later = {
        **CONVERSATION[5],
        "createdAt": "2026-03-01T12:00:09.000Z",
        "providerOptions": {"dragoman": {"row": {"goes_on": True}}},
    }
    exact([CONVERSATION[5], later])
    naive = {**CONVERSATION[0], "createdAt": datetime(2026, 3, 1, 12)}
    assert V1.dump_messages(V1.load_messages([naive])) == [naive]


@given(conversations())
@settings(max_examples=40)
def test_what_others_wrote_survives(messages: list[Message]) -> None:
    losses: list[Any] = []
    written = json.loads(json.dumps(V1.dump_messages(messages, losses=losses)))
    back = V1.load_messages(written)
    assert V1.dump_messages(back) == written
    if not losses:
        assert [_facts(message) for message in back] == [_facts(message) for message in messages]


def _facts(message: Message) -> Any:
    native = [piece.native for piece in message.content if isinstance(piece, ThinkingPart)]
    texts = [piece.text for piece in message.content if isinstance(piece, TextPart)]
    return message.role, texts, message.thinking, native, message.tool_calls, message.tool_results, message.id, message.turn, message.created_at, message.origin, message.usage  # fmt: skip
