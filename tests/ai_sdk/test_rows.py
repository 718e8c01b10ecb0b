"""Rows of Mastra's storage (V2): read as what they say, written again as they were."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings

from dragoman import formats
from dragoman.codec.json_values import if_object
from dragoman.codec.serving import Problem
from dragoman.errors import HistoryError
from dragoman.message import (
    DataPart,
    FinishReason,
    LinkPart,
    MarkPart,
    Message,
    Origin,
    Role,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from support import mastra_rows as rows
from support.conversations import conversations

V2 = formats.get("mastra_v2")
UI = formats.get("ai_sdk_ui")


def exact(conversation: list[Any]) -> list[Message]:
    """The messages, which are stored, read and written again as they came."""
    messages = V2.load_messages(copy.deepcopy(conversation))
    stored = [Message.from_json(message.to_json()) for message in messages]
    assert stored == messages
    assert V2.dump_messages(stored) == conversation
    return messages


def test_a_conversation_comes_back_exactly() -> None:
    conversation = rows.conversation()
    for each in [conversation, *[[row] for row in conversation]]:
        exact(each)
        assert formats.detect(each) == "mastra_v2"
    losses: list[Any] = []
    V2.dump_messages(V2.load_messages(conversation), losses=losses)
    assert losses == []


def test_what_a_row_says() -> None:
    messages = exact(rows.conversation())
    assert [message.role for message in messages] == [
        "system",
        "user",
        "model",
        "user",
        "model",
        "model",
        "user",
    ]
    user, first, results, second, third = messages[1:6]
    assert user.metadata == {"tags": ["a"]}
    assert user.created_at == datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)
    assert isinstance(user.content[1], DataPart) and user.content[1].name == "a.png"
    assert isinstance(user.content[2], LinkPart) and user.content[2].mime_type == "application/pdf"
    assert {message.turn for message in (first, results, second)} == {"a1"}
    assert first.id == "a1" and first.thinking == "Hm. So" and first.origin == Origin("anthropic")
    assert [call.id for call in first.tool_calls] == ["c1", "c2", "c3"]
    assert [(each.id, each.is_error, each.denied) for each in results.tool_results] == [
        ("c1", False, False), ("c2", True, False), ("c3", True, True)
    ]  # fmt: skip
    assert second.text == "21." and [call.state for call in second.tool_calls] == [
        "complete",
        "complete",
        "cut",
    ]
    assert {piece.kind for piece in second.content if isinstance(piece, MarkPart)} == {
        "step-start", "source", "source-document", "data-chart", "error"
    }  # fmt: skip
    assert third.text == "Found." and third.tool_calls == () and third.origin == Origin("anthropic")


def test_thinking_that_anthropic_signed_goes_back_to_anthropic() -> None:
    messages = exact(rows.conversation())
    sent = formats.get("anthropic").dump_messages(messages, target=Origin("anthropic"))["messages"]
    blocks = [
        block
        for message in sent
        for block in message["content"]
        if "thinking" in if_object(block).get("type", "")
    ]
    assert blocks[0] == {"type": "thinking", "thinking": "Hm. ", "signature": "c2ln"}
    assert {"type": "redacted_thinking", "data": "cmVk"} in blocks


def test_a_row_becomes_a_ui_message_and_one_becomes_a_row() -> None:
    shown = UI.dump_messages(V2.load_messages(rows.conversation()))
    types = [part["type"] for part in shown[2]["parts"]]
    assert types[:4] == ["step-start", "reasoning", "reasoning", "reasoning"]
    assert "source-url" in types and "source-document" in types and "error" not in types
    assert {
        "type": "source-url",
        "sourceId": "s",
        "url": "https://example.com",
        "title": "T",
    } in shown[2]["parts"]
    assert [message["role"] for message in shown] == [
        "system",
        "user",
        "assistant",
        "assistant",
        "user",
    ]
    assert not any("threadId" in message for message in shown)
    back = V2.dump_messages(UI.load_messages(shown))
    source = next(part for part in back[2]["content"]["parts"] if part["type"] == "source")
    assert source["source"] == {
        "sourceType": "url",
        "id": "s",
        "url": "https://example.com",
        "title": "T",
    }
    assert [message["id"] for message in back] == ["s1", "u1", "a1", "a2", "x1"]


@pytest.mark.parametrize("state", ["partial-call", "call", "result", "output-error", "output-denied", "approval-requested", "approval-responded"])  # fmt: skip
def test_states_of_calls(state: str) -> None:
    """M-16"""
    more = {"errorText": "gone"} if state == "output-error" else {}
    if state.startswith("approval") or state == "output-denied":
        more["approval"] = {
            "id": "ap",
            **({} if state == "approval-requested" else {"approved": state != "output-denied"}),
        }
    conversation = [rows.row("a1", "assistant", rows.part("c1", state, **more))]
    messages = exact(conversation)
    answered = state in ("result", "output-error", "output-denied")
    assert len(messages) == 1 + answered
    assert messages[0].tool_calls[0].state == ("cut" if state == "partial-call" else "complete")
    as_ui = UI.dump_messages(messages)
    known = {
        "partial-call": "input-streaming",
        "call": "input-available",
        "result": "output-available",
    }
    assert as_ui[0]["parts"][0]["state"] == known.get(state, state)
    assert (
        V2.dump_messages(UI.load_messages(as_ui))[0]["content"]["parts"][0]["toolInvocation"][
            "state"
        ]
        == state
    )


def test_what_only_a_field_beside_the_parts_says_is_read() -> None:
    """M-12: a text; calls, thinking and attachments as rows that were taken over from ai 4 have
    them."""
    inner = rows.part("c1")["toolInvocation"]
    files = [{"url": "https://example.com/a.png", "contentType": "image/png", "name": "a"}]
    conversation = [
        rows.row("u1", "user", {"type": "text", "text": "Look."}, experimental_attachments=files),
        rows.row("a1", "assistant", content="21.", toolInvocations=[inner], reasoning="Hm."),
    ]
    user, called, results, text = exact(conversation)
    assert user.content[1] == LinkPart(
        "https://example.com/a.png", "image/png", "a", user.content[1].native
    )
    assert called.thinking == "Hm." and called.tool_calls[0].arguments == {"city": "Rome"}
    assert results.tool_results[0].result == {"celsius": 21} and text.text == "21."
    both = [
        rows.row(
            "a1",
            "assistant",
            {"type": "step-start"},
            rows.part("c1"),
            {"type": "step-start"},
            content="21.",
        )
    ]
    assert [message.text for message in exact(both)] == ["", "", "21."]


def test_arguments_that_a_result_leaves_out_are_looked_up() -> None:
    """M-38, M-39"""
    bare = rows.part("c1", args={})
    conversation = [
        rows.row("a1", "assistant", rows.part("c1", "call")),
        rows.row("a2", "assistant", bare, toolInvocations=[bare["toolInvocation"]]),
        rows.row("a3", "assistant", rows.part("c9", args={})),
        rows.row("a4", "assistant", rows.part("c1", "call", args={})),
    ]
    calls = [call.arguments for message in exact(conversation) for call in message.tool_calls]
    assert calls == [{"city": "Rome"}, {"city": "Rome"}, {}, {}]


def test_fields_beside_the_parts_follow_them_when_a_text_is_changed() -> None:
    conversation = [
        rows.row(
            "a1",
            "assistant",
            {"type": "text", "text": "one"},
            {"type": "text", "text": "two"},
            content="two",
        )
    ]
    [message] = exact(conversation)
    changed = message.replace(content=(message.content[0], "three"))
    assert V2.dump_messages([changed])[0]["content"]["content"] == "three"


def test_dates_stay_dates() -> None:
    """M-31, M-93: to the millisecond, as JSON's text or Python's datetime."""
    for made_at in (
        datetime(2026, 3, 1, 12, tzinfo=UTC), datetime(2026, 3, 1, 12, 0, 0, 7, tzinfo=UTC), datetime(2026, 3, 1, 12),
        datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=2))),
    ):  # fmt: skip
        given_row = {**rows.row("u1", "user", {"type": "text", "text": "Hi"}), "createdAt": made_at}
        [message] = V2.load_messages([given_row])
        assert message.created_at == (made_at if made_at.tzinfo else made_at.replace(tzinfo=UTC))
        assert V2.dump_messages([message]) == [given_row]
    for text in (
        "2026-03-01T12:00:00Z",
        "2026-03-01",
        "2026-03-01T14:00:00.000+02:00",
        "yesterday",
        "",
        None,
        5,
        1e400,
        "9999999999",
    ):
        given_row = {**rows.row("u1", "user", {"type": "text", "text": "Hi"}), "createdAt": text}
        [message] = V2.load_messages([given_row])
        assert V2.dump_messages([message]) == [given_row]
    later = message.replace(created_at=datetime(2027, 1, 1, tzinfo=UTC))
    assert V2.dump_messages([later])[0]["createdAt"] == "2027-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    "data",
    [
        rows.PNG, f"data:image/png;base64,{rows.PNG}", "https://example.com/a.png", "//example.com/a.png", "gs://b/a.png", "file-abc123",
        "/uploads/a.png", "/9j/4AAQSkZJRgABAQ==", "data:text/plain,hello", "data:", "x", {"0": 137, "1": 80}, {"type": "Buffer", "data": [1, 2]},
        {"0": 300}, {"type": "Buffer", "data": ["x"]}, {}, None, 5, [],
    ],
)  # fmt: skip
def test_file_data(data: Any) -> None:
    """M-95, M-97"""
    conversation = [rows.row("u1", "user", {"type": "file", "mimeType": "image/png", "data": data})]
    [message] = exact(conversation)
    piece = message.content[0]
    if data in (rows.PNG, "/9j/4AAQSkZJRgABAQ==") or (
        isinstance(data, dict) and len(data) == 2 and data.get("data") != ["x"]
    ):
        assert isinstance(piece, DataPart)
    elif isinstance(data, str) and ":" in data and data.startswith(("https", "gs")):
        assert isinstance(piece, LinkPart) and piece.url == data
    elif not isinstance(data, str):
        assert isinstance(piece, MarkPart)


def test_bytes_are_a_file_too() -> None:
    given_row = rows.row(
        "u1", "user", {"type": "file", "mimeType": "image/png", "data": b"\x89PNG"}
    )
    [message] = V2.load_messages([given_row])
    assert message.content[0].data == b"\x89PNG"
    assert V2.dump_messages([message]) == [given_row]


def test_the_type_in_a_data_url_counts_and_none_is_the_file_type() -> None:
    """M-98"""
    inside = rows.row(
        "u1",
        "user",
        {"type": "file", "mimeType": "image/png", "data": f"data:image/webp;base64,{rows.PNG}"},
    )
    bare = rows.row("u2", "user", {"type": "file", "data": rows.PNG})
    unknown = rows.row("u3", "user", {"type": "file", "data": "AAAA"})
    kinds = [message.content[0].mime_type for message in exact([inside, bare, unknown])]
    assert kinds == ["image/webp", "image/png", "application/octet-stream"]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"role": "data"}, "role"), ({"role": None}, "role"), ({"role": []}, "role"),
        ({"content": {"format": 2, "parts": {}}}, "content"), ({"content": {"format": 2, "parts": [None]}}, "content"),
        ({"content": {"format": 2, "parts": [{"type": 1}]}}, "content"), ({"content": {"format": 2, "parts": [{"type": "text"}]}}, "content"),
        ({"content": {"format": 2, "parts": [{"type": "tool-invocation", "toolInvocation": {"toolCallId": 1, "toolName": "x"}}]}}, "content"),
        ({"content": {"format": 2, "parts": [rows.part("c", "no-such-state")]}}, "content"),
        ({"content": {"format": 2, "parts": [rows.part("c", "output-error", errorText=5)]}}, "content"),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_read_says_which_and_where(wrong: dict[str, Any], field: str) -> None:
    """M-02, M-07"""
    fine = rows.row("u1", "user", {"type": "text", "text": "Hi"})
    with pytest.raises(HistoryError, match=rf"^\[1\]\.{field}"):
        V2.load_messages([fine, {**fine, **wrong}])
    problems: list[Problem] = []
    assert len(V2.load_messages([fine, {**fine, **wrong}, fine], problems=problems)) == 2
    assert [problem.index for problem in problems] == [1]


def test_unknown_fields_come_back() -> None:
    known = rows.part("c1", mine={"a": 1}, part_mine=[1], part_state="done")
    conversation = [
        {**rows.row("a1", "assistant", known, {"type": "text", "text": "x", "mine": 1}, {"type": "mine", "a": 1}, mine=2, providerMetadata={"x": {"y": 1}}), "mine": 3, "parts": 4, "metadata": 5}
    ]  # fmt: skip
    exact(conversation)
    exact([{"role": "user", "content": {"format": 2}}])
    exact([{"id": 7, "role": "user", "content": {"format": 2, "parts": [], "metadata": None}}])
    exact(
        [
            {
                "id": "u",
                "role": "user",
                "content": {
                    "format": 2,
                    "parts": [],
                    "metadata": {"thinking": 1, "dragoman": {"x": 1}},
                },
            }
        ]
    )


@given(conversations())
@settings(max_examples=40)
def test_what_others_wrote_survives(messages: list[Message]) -> None:
    losses: list[Any] = []
    written = json.loads(json.dumps(V2.dump_messages(messages, losses=losses)))
    back = V2.load_messages(written)
    assert V2.dump_messages(back) == written
    if not losses and all(message.content for message in messages):
        assert [_facts(message) for message in back] == [_facts(message) for message in messages]


def _facts(message: Message) -> Any:
    native = [piece.native for piece in message.content if isinstance(piece, ThinkingPart)]
    return message.role, message.text, message.thinking, native, message.tool_calls, message.tool_results, message.id, message.turn, message.created_at, message.origin  # fmt: skip


def test_a_fresh_row_repeats_its_parts_as_mastra_does() -> None:
    messages = [
        Message.model(ThinkingPart("Hm."), "I look.", _call()),
        Message.user(ToolResultPart("c1", "weather", {"celsius": 21})),
        Message(Role.MODEL, ("21.",), finish_reason=FinishReason.stop),
    ]
    [written] = V2.dump_messages(messages)
    content = written["content"]
    assert content["content"] == "I look.21." and content["reasoning"] == "Hm."
    assert content["toolInvocations"] == [
        {
            "toolCallId": "c1",
            "toolName": "weather",
            "args": {"city": "Rome"},
            "state": "result",
            "result": {"celsius": 21},
        }
    ]
    assert [each["type"] for each in content["parts"]] == [
        "reasoning",
        "text",
        "tool-invocation",
        "step-start",
        "text",
    ]
    assert V2.load_messages([written])[0].native is None


def _call() -> ToolCallPart:
    return ToolCallPart("c1", "weather", {"city": "Rome"})
