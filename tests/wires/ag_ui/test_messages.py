"""Messages of AG-UI: those of others are read as they are, ours come back as they were."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import Message as Theirs
from pydantic import TypeAdapter

from dragoman import formats
from dragoman.codec.serving import Problem
from dragoman.errors import HistoryError
from dragoman.message import (
    DataPart,
    FilePart,
    LinkPart,
    MarkPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires import ag_ui
from support.carriage import PROBE

FOREIGN: list[dict[str, Any]] = [
    {"id": "s", "role": "system", "content": "Be brief."},
    {"id": "d", "role": "developer", "content": "Be kind.", "name": "dev"},
    {"id": "u", "role": "user", "content": "Weather?", "name": "Ann", "metadata": {"lang": "en"}},
    {"id": "t", "role": "reasoning", "content": "hm", "encryptedValue": "c2lnbmVk+/=="},
    {
        "id": "a",
        "role": "assistant",
        "content": "I look.",
        "toolCalls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "weather", "arguments": '{"city": "Rome"}'},
            },
            {
                "id": "c2",
                "type": "function",
                "function": {"name": "time", "arguments": "{"},
                "encryptedValue": "e",
            },
        ],
    },
    {"id": "r1", "role": "tool", "toolCallId": "c1", "content": "sun"},
    {"id": "r2", "role": "tool", "toolCallId": "c2", "content": "", "error": "broken"},
    {"id": "p", "role": "activity", "activityType": "PLAN", "content": {"steps": [1]}},
    {"id": "b", "role": "assistant", "content": "Sun."},
]


def test_all_roles_of_others_are_read() -> None:
    system, developer, user, answer, results, last = ag_ui.load_messages(FOREIGN)
    assert (system.role, developer.role, system.text, developer.text) == (Role.SYSTEM, Role.SYSTEM, "Be brief.", "Be kind.")  # fmt: skip
    assert (user.id, user.text, user.metadata) == ("u", "Weather?", {"lang": "en"})
    thinking, text, call, broken = answer.content
    assert answer.id == "a" and isinstance(thinking, ThinkingPart)
    assert thinking.native == {"ag_ui": {"id": "t", "encryptedValue": "c2lnbmVk+/=="}}
    assert text == TextPart("I look.")
    assert isinstance(call, ToolCallPart) and call.arguments == {"city": "Rome"}
    assert isinstance(broken, ToolCallPart) and (broken.state, broken.raw) == ("invalid", "{")
    first, second, mark = results.content
    assert results.id == "r1" and results.role is Role.USER
    assert isinstance(first, ToolResultPart) and (first.name, first.result, first.is_error) == (
        "weather",
        "sun",
        False,
    )
    assert isinstance(second, ToolResultPart) and (second.result, second.is_error) == (
        "broken",
        True,
    )
    assert isinstance(mark, MarkPart) and mark.kind == "activity"
    assert last.text == "Sun."


def test_what_others_sent_says_the_same_when_it_is_sent_back() -> None:
    once = ag_ui.load_messages(FOREIGN)
    back = ag_ui.dump_messages(once)
    assert ag_ui.load_messages(back) == once
    assert [entry["role"] for entry in back] == [entry["role"] for entry in FOREIGN]
    for before, after in zip(FOREIGN, back, strict=True):
        for field in before.keys() - {"id", "metadata", "toolCalls", "content"}:
            assert after[field] == before[field], field


def test_what_is_written_is_of_the_protocol() -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(Theirs)
    for entry in ag_ui.dump_messages([*PROBE, *ag_ui.load_messages(FOREIGN)]):
        adapter.validate_python(entry)


def test_parts_of_a_user() -> None:
    content: list[dict[str, Any]] = [
        {"type": "text", "text": "Look:"},
        {"type": "image", "source": {"type": "data", "value": "AAAA", "mimeType": "image/png"}, "metadata": {"filename": "a.png", "detail": "low"}},
        {"type": "document", "source": {"type": "url", "value": "https://a.test/b.pdf"}},
        {"type": "video", "source": {"type": "file", "value": "f1", "provider": "google"}},
        {"type": "binary", "mimeType": "audio/wav", "data": "AAAA"},
        {"type": "binary", "mimeType": "image/png", "url": "https://a.test/c.png"},
    ]  # fmt: skip
    (message,) = ag_ui.load_messages([{"id": "u", "role": "user", "content": content}])
    text, data, link, file, sound, picture = message.content
    assert text == TextPart("Look:")
    assert isinstance(data, DataPart) and (data.data, data.name) == (b"\0\0\0", "a.png")
    assert isinstance(link, LinkPart) and link.mime_type is None
    assert isinstance(file, FilePart) and file.id == "f1"
    assert sound == DataPart(b"\0\0\0", "audio/wav")
    assert picture == LinkPart("https://a.test/c.png", "image/png")
    (back,) = ag_ui.dump_messages([message])
    assert back["content"][:4] == content[:4]
    assert [part["type"] for part in back["content"][4:]] == ["audio", "image"]


def test_what_a_run_within_a_tool_said_is_no_part_of_the_conversation() -> None:
    inner = {"id": "i", "role": "assistant", "content": "Inner.", "subagentRunId": "s"}
    assert [each.id for each in ag_ui.load_messages([FOREIGN[2], inner])] == ["u"]


WRONG: list[Any] = [None, [], {}, {"role": []}, {"role": {}}, {"role": "nobody"}, {"role": "user", "content": 1}, {"role": "user", "content": [1]},
     {"role": "user", "content": [{"type": []}]}, {"role": "assistant", "toolCalls": [{"function": 1}]},
     {"role": "tool", "content": [{"type": "x"}]}]  # fmt: skip


@pytest.mark.parametrize("entry", WRONG)
def test_what_cannot_be_read_is_refused_or_left_out(entry: Any) -> None:
    problems: list[Problem] = []
    good = {"id": "u", "role": "user", "content": "Hi."}
    with pytest.raises(HistoryError):
        ag_ui.load_messages([entry])
    assert [each.text for each in ag_ui.load_messages([entry, good], problems=problems)] == ["Hi."]
    assert [each.index for each in problems] == [0]


@pytest.mark.parametrize("held", ["", "{", "[]", "null", '{"message": 1}', '{"message": {"role": 5}}', '{"more": [[0, 1]]}', '{"at": -1, "of": []}', '{"part": {"text": ""}}'])  # fmt: skip
def test_extras_that_nobody_wrote_change_nothing(held: str) -> None:
    entry = {"id": "u", "role": "user", "content": "Hi.", "metadata": {"dragoman": held}}
    (message,) = ag_ui.load_messages([entry])
    assert (message.role, message.text) == (Role.USER, "Hi.")


def test_a_body_of_the_protocol_is_detected() -> None:
    body = {"threadId": "t", "runId": "r", "messages": FOREIGN[2:3], "tools": [], "context": []}
    assert formats.detect(body) == "ag_ui"
    assert formats.detect(FOREIGN) == "ag_ui"
