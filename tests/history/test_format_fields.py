"""Rows and UI messages of Mastra and ai 4: steps without marks, ids of plain messages, fields that
nobody knows, foreign threads."""

from __future__ import annotations

import copy
import itertools
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from dragoman import formats
from dragoman.errors import HistoryError
from dragoman.history import MessageList
from dragoman.message import Message, Origin, Role, ToolCallPart, ToolResultPart

CALL = {"toolCallId": "c", "toolName": "w", "args": {}}
ANSWERED = {"type": "tool-invocation", "toolInvocation": {"state": "result", **CALL, "result": 21}}
OPEN = {"type": "tool-invocation", "toolInvocation": {"state": "call", **CALL}}
TEXT = {"type": "text", "text": "It is 21."}
THINKING = {
    "type": "reasoning",
    "reasoning": "So.",
    "details": [{"type": "text", "text": "So.", "signature": "c2ln"}],
}
FILE = {"type": "file", "mimeType": "image/png", "data": "AAAA"}
SAID = {"text": TEXT, "reasoning": THINKING, "file": FILE}


def rows(*parts: Any, **content: Any) -> list[dict[str, Any]]:
    """A question, and an answer with these parts, as Mastra stores them."""
    question = [{"type": "text", "text": "Rome?"}]
    return [
        {
            "id": "u",
            "role": "user",
            "createdAt": "2026-01-01T12:00:01.000Z",
            "content": {"format": 2, "parts": question},
        },
        {
            "id": "a",
            "role": "assistant",
            "createdAt": "2026-01-01T12:00:02.000Z",
            "content": {"format": 2, "parts": copy.deepcopy([*parts]), **content},
        },
    ]


def v4_messages(*parts: Any) -> list[dict[str, Any]]:
    """The same as useChat of ai 4 has it."""
    text = "".join(part["text"] for part in parts if part["type"] == "text")
    question = {
        "id": "u",
        "role": "user",
        "content": "Rome?",
        "parts": [{"type": "text", "text": "Rome?"}],
    }
    calls = [part["toolInvocation"] for part in parts if part["type"] == "tool-invocation"]
    answer = {
        "id": "a",
        "role": "assistant",
        "content": text,
        "parts": copy.deepcopy([*parts]),
        "toolInvocations": calls,
    }
    return [question, answer]


def roles_of(payload: Any) -> list[str]:
    return [message["role"] for message in payload]


@pytest.mark.mend("3.1")
@pytest.mark.parametrize("kind", SAID)
@pytest.mark.parametrize("make", [rows, v4_messages], ids=["V2", "v4"])
def test_m83_what_is_said_behind_an_answered_call_is_another_step(make: Any, kind: str) -> None:
    """M-83 (M-81, M-86): it was sent before the result."""
    messages = MessageList().add(make(ANSWERED, SAID[kind]), source="memory").get()
    assert [message.role for message in messages] == [Role.USER, Role.MODEL, Role.USER, Role.MODEL]
    assert messages[1].tool_calls
    assert messages[2].tool_results


@pytest.mark.mend("3.1")
def test_m83_each_step_has_its_own_thinking() -> None:
    payload = (
        MessageList()
        .add(rows(THINKING, ANSWERED, THINKING, TEXT), source="memory")
        .export("anthropic")
    )
    kinds = [
        [block["type"] for block in message["content"]]
        if isinstance(message["content"], list)
        else "text"
        for message in payload["messages"]
    ]
    assert kinds == ["text", ["thinking", "tool_use"], ["tool_result"], ["thinking", "text"]]


@pytest.mark.mend("3.1")
@pytest.mark.parametrize(
    "parts",
    [
        parts
        for size in (2, 3)
        for parts in itertools.permutations([ANSWERED, TEXT, THINKING, FILE], size)
    ],
)
def test_a_step_that_began_without_a_mark_is_written_without_one(parts: tuple[Any, ...]) -> None:
    row_format, ui_format = formats.get("mastra_v2"), formats.get("ai_sdk_ui")
    assert row_format.dump_messages(row_format.load_messages(rows(*parts))) == rows(*parts)
    if FILE not in parts:
        given = v4_messages(*parts)
        assert ui_format.dump_messages(ui_format.load_messages(given)) == given


@pytest.mark.mend("3.1")
def test_a_ui_of_a_later_version_gets_the_mark() -> None:
    """There a text behind a call without a mark is of the call's step."""
    written = MessageList().add(rows(ANSWERED, TEXT), source="memory").export("ai_sdk_ui")
    assert [part["type"] for part in written[1]["parts"]] == ["tool-w", "step-start", "text"]


@pytest.mark.mend("3.1")
def test_m83_a_call_that_waits_begins_no_step() -> None:
    messages = MessageList().add(rows(OPEN, TEXT), source="memory").get()
    assert [message.role for message in messages] == [Role.USER, Role.MODEL]


@pytest.mark.mend("3.1")
def test_the_prompt_is_the_same_before_and_after_storage_when_a_result_comes_late() -> None:
    """`update_tool` left the text of the later step before the result."""
    given = rows(OPEN, {"type": "step-start"}, TEXT)
    late = MessageList().add(given, source="memory")
    assert late.update_tool(ToolResultPart("c", "w", 21))
    stored = MessageList().add(late.export("mastra_v2"), source="memory")
    prompts = [roles_of(each.export("openai_chat")) for each in (late, stored)]
    assert prompts == [["user", "assistant", "tool", "assistant"]] * 2


@pytest.mark.mend("3.2")
@pytest.mark.parametrize(
    "wrap", [lambda messages: messages, lambda messages: {"id": "chat", "messages": messages}]
)
def test_m10_a_plain_message_keeps_its_id(wrap: Any) -> None:
    """M-10: useChat of ai 4, AG-UI and Mastra have messages of just these fields."""
    given = [
        {"id": "m1", "role": "user", "content": "frist"},
        {"id": "m2", "role": "assistant", "content": "Hi."},
    ]
    messages = MessageList().add(wrap(given))
    assert [message.id for message in messages.get()] == ["m1", "m2"]
    messages.add({"id": "m1", "role": "user", "content": "first"})
    assert [message.text for message in messages.get()] == ["first", "Hi."]
    assert [message.id for message in messages.remove(["m1"])] == ["m1"]
    for format_ in ("ai_sdk_ui", "ag_ui"):  # the formats that have it read it alike
        assert [message.id for message in MessageList().add(given, format=format_).get()] == [
            "m1",
            "m2",
        ]


@pytest.mark.mend("3.3")
@pytest.mark.parametrize("without", ["createdAt", "id", None])
@pytest.mark.parametrize("more", [{}, {"threadId": "t"}, {"threadId": "t", "resourceId": "r"}])
@pytest.mark.parametrize(
    "field",
    [
        {"annotations": [{"a": 1}]},
        {"providerMetadata": {"x": {"y": 1}}},
        {"content": "other words"},
        {"toolInvocations": [{"state": "call", "toolCallId": "d", "toolName": "w", "args": {}}]},
        {"reasoning": "other"},
        {"experimental_attachments": []},
        {"unknown": {"deep": [1]}},
        {"metadata": {"a": 1}, "unknown": 1},
    ],
    ids=lambda field: "+".join(field),
)
def test_a_row_loses_no_field_of_its_content(
    field: dict[str, Any], more: dict[str, Any], without: str | None
) -> None:
    """Fields were counted, so that metadata which is not there hid another one."""
    given = rows(TEXT, **field)
    for row in given:
        row.update(more)
        if without is not None:
            del row[without]
    row_format = formats.get("mastra_v2")
    assert row_format.dump_messages(row_format.load_messages(given)) == given


@pytest.mark.mend("1.11")
@pytest.mark.parametrize("field", ["threadId", "resourceId"])
@pytest.mark.parametrize("version", ["mastra_v1", "mastra_v2"])
@pytest.mark.parametrize("put", [False, True], ids=["add", "put"])
def test_m08_a_row_of_another_conversation_is_refused(version: str, field: str, put: bool) -> None:
    """M-08: rows of V1 were taken."""
    row: dict[str, Any] = {
        "id": "1",
        "role": "user",
        "createdAt": "2026-01-01T12:00:01.000Z",
        field: "bob",
    }
    if version == "mastra_v1":
        row |= {"type": "text", "content": "secret of bob"}
    else:
        row |= {"content": {"format": 2, "parts": [{"type": "text", "text": "secret of bob"}]}}
    messages = MessageList(thread_id="alice", resource_id="alice")
    with pytest.raises(HistoryError, match=f"wrong {field}"):
        messages.put(version, [row]) if put else messages.add(row)
    assert messages.get() == []
    row[field] = "alice"
    messages.add(row)
    assert len(messages.get()) == 1


@pytest.mark.mend("4.4")
@pytest.mark.parametrize("version", ["v4", "v5", "v6", "v7"])
def test_a_browser_gets_nothing_that_dragoman_notes_for_itself(version: str) -> None:
    origin = Origin(
        "anthropic", "https://internal.example/v1", "claude", "claude-1", "msg_1", "digest"
    )
    said = [
        Message.user("Hi.").replace(
            id="u", metadata={"mine": 1}, created_at=datetime(2026, 1, 1, tzinfo=UTC)
        ),
        Message.model("Hello.", ToolCallPart("c", "t", {})).replace(id="a", origin=origin),
        Message.user(ToolResultPart("c", "t", 1)).replace(id="r"),
    ]
    messages = MessageList(said)
    public = json.dumps(messages.to_ui_messages(version))
    for secret in ("internal.example", "digest", '"dragoman"'):
        assert secret not in public
    assert version == "v4" or '"mine"' in public
    assert "internal.example" in json.dumps(messages.to_ui_messages(version, metadata=True))
    again = MessageList().add(messages.to_ui_messages(version, metadata=True), source="memory")
    assert [message.origin for message in again.get() if message.role is Role.MODEL] == [origin]


@pytest.mark.mend("3.3")
def test_model_messages_of_ai_5_know_no_refused_call() -> None:
    said = [
        Message.user("Hi.").replace(id="u"),
        Message.model(ToolCallPart("c", "t", {})).replace(id="a"),
        Message.user(
            ToolResultPart("c", "t", {"error": "denied: too dear"}, is_error=True, denied=True)
        ),
    ]
    written = {
        version: MessageList(said).export("ai_sdk_model", version=version)[-1]["content"][0][
            "output"
        ]
        for version in ("v5", "v6")
    }
    assert written == {
        "v5": {"type": "error-text", "value": "denied: too dear"},
        "v6": {"type": "execution-denied", "reason": "too dear"},
    }


def stored_answer() -> MessageList:
    said = [
        Message.user("Hi.").replace(id="u"),
        Message.model(ToolCallPart("c", "t", {})).replace(id="a", turn="a"),
        Message.user(ToolResultPart("c", "t", {"paid": 10})).replace(id="r", turn="a"),
        Message.model("Ten.").replace(id="b", turn="a"),
    ]
    return MessageList().add(said, source="memory")


@pytest.mark.mend("1.16")
@pytest.mark.parametrize("change", ["result", "text", "none"])
def test_a_clients_copy_that_changes_what_is_stored_is_told_loudly(
    change: str, caplog: pytest.LogCaptureFixture
) -> None:
    copy_of = stored_answer().to_ui_messages(metadata=True)
    parts = copy_of[1]["parts"]
    if change == "result":
        next(part for part in parts if part["type"] == "tool-t")["output"] = {"paid": 1_000_000}
    if change == "text":
        parts.append({"type": "text", "text": "You owe me."})
    with caplog.at_level("WARNING", logger="dragoman"):
        messages = stored_answer().add(copy_of)
    assert ("a client's copy changed what is stored" in caplog.text) == (change != "none")
    assert ("use put()" in caplog.text) == (change != "none")
    del messages
    safe = stored_answer()
    safe.put("ai_sdk_ui", copy_of)
    assert [result.result for message in safe.get() for result in message.tool_results] == [
        {"paid": 10}
    ]
    assert "You owe me." not in "".join(message.text for message in safe.get())


@pytest.mark.mend("3.4")
@pytest.mark.parametrize(
    ("url", "mime_type", "data"),
    [
        ("data:text/plain,hello%20world", "text/plain", b"hello world"),
        ("data:text/plain;charset=utf-8,h%C3%A4", "text/plain", "hä".encode()),
        ("data:image/svg+xml,%3Csvg/%3E", "image/svg+xml", b"<svg/>"),
        ("data:image/png,%89PNG", "image/png", b"\x89PNG"),
        ("data:,x", "text/plain", b"x"),
    ],
)
@pytest.mark.parametrize("kind", ["UI", "v4", "V2"])
def test_m99_a_data_url_need_not_be_base64(
    url: str, mime_type: str, data: bytes, kind: str
) -> None:
    """M-99: such a URL stayed a link, which each provider refuses; it is given back as it came."""
    part: dict[str, Any] = {"type": "file", "mediaType": mime_type, "url": url}
    given: list[dict[str, Any]] = [{"id": "u", "role": "user", "parts": [part]}]
    if kind != "UI":
        part = {"type": "file", "mimeType": mime_type, "data": url}
        message = rows(part)[1] if kind == "V2" else v4_messages(part)[1]
        given = [{**message, "role": "user"}]
        given[0].pop("toolInvocations", None)
    name = "mastra_v2" if kind == "V2" else "ai_sdk_ui"
    messages = formats.get(name).load_messages(given)
    assert [(piece.mime_type, piece.data) for piece in messages[0].content] == [(mime_type, data)]
    assert formats.get(name).dump_messages(messages) == given
    sent = json.dumps(MessageList().add(given, format=name).export("anthropic"))
    assert "data:" not in sent


@pytest.mark.mend("3.3")
@pytest.mark.parametrize("state", ["approval-requested", "approval-responded"])
def test_mastras_lists_for_ai_4_may_hold_calls_that_wait_for_approval(state: str) -> None:
    """What Mastra writes for useChat of ai 4 was refused."""
    call = {
        "type": "tool-invocation",
        "toolInvocation": {"state": state, **CALL, "approval": {"id": "p"}},
    }
    given = v4_messages(TEXT, call)
    ui_format = formats.get("ai_sdk_ui")
    messages = ui_format.load_messages(given)
    assert [(call.id, call.name) for call in messages[1].tool_calls] == [("c", "w")]
    assert len(messages) == 2
    assert ui_format.dump_messages(messages) == given
    prompt = MessageList().add(given, format="ai_sdk_ui").export("openai_chat")
    assert roles_of(prompt)[:2] == ["user", "assistant"]
