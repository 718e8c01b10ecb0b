"""Messages: their JSON, what is said and what is hidden, and `metadata["thinking"]`."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given

from dragoman import message as module
from dragoman.codec.digest import chain_signature_digests
from dragoman.errors import HistoryError
from dragoman.message import (
    DataPart,
    FilePart,
    FinishReason,
    LinkPart,
    Message,
    Origin,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from support import strategies as some


@given(some.messages)
def test_json_gives_every_message_back(message: Message):
    stored = message.to_json()
    again = Message.from_json(stored)
    assert again == message
    assert again.to_json() == stored == Message.from_json(stored.decode()).to_json()
    assert [type(piece) for piece in again.content] == [type(piece) for piece in message.content]


@given(some.messages)
def test_thinking_in_metadata_is_derived_and_never_stored(message: Message):
    """D-146: `metadata["thinking"]` is there exactly when there is thinking to read."""
    assert message.metadata.get("thinking") == message.thinking
    assert ("thinking" in message.metadata) == (message.thinking is not None)
    assert "thinking" not in message.own_metadata
    assert "thinking" not in msgspec.json.decode(message.to_json()).get("metadata", {})
    assert {
        **message.own_metadata,
        **({"thinking": message.thinking} if message.thinking else {}),
    } == message.metadata


def test_thinking_in_metadata_follows_the_content():
    message = Message.model(ThinkingPart("a"), "said", ThinkingPart(""), ThinkingPart("b")).replace(
        metadata={"k": 1}
    )
    assert message.metadata == {"k": 1, "thinking": "ab"}
    assert message.text == "said"
    assert message.replace(content=(ThinkingPart("c"),)).metadata == {"k": 1, "thinking": "c"}
    assert message.replace(content="said").metadata == {"k": 1}
    assert Message(Role.MODEL, metadata={"thinking": "of nobody"}).metadata == {}
    assert message.metadata == {"k": 1, "thinking": "ab"}, "the message itself is as it was"


@given(some.messages)
def test_replace_changes_what_it_is_told_and_nothing_else(message: Message):
    assert message.replace() == message
    changed = message.replace(id="other")
    assert changed.id == "other"
    assert changed.replace(id=message.id) == message


@given(some.messages)
def test_parts_are_what_was_said(message: Message):
    hidden = [piece for piece in message.content if piece not in message.parts]
    assert all(
        isinstance(piece, (ThinkingPart, ProviderPart))
        or getattr(piece, "run_by", "") == "provider"
        for piece in hidden
    )
    said = [piece for piece in message.parts if isinstance(piece, (ToolCallPart, ToolResultPart))]
    assert [piece for piece in said if isinstance(piece, ToolCallPart)] == list(message.tool_calls)
    assert [piece for piece in said if isinstance(piece, ToolResultPart)] == list(
        message.tool_results
    )
    assert (
        "".join(piece.text for piece in message.parts if isinstance(piece, TextPart))
        == message.text
    )


def test_what_the_provider_ran_is_hidden():
    call = ToolCallPart("1", "search", run_by="provider")
    result = ToolResultPart("1", "search", [], run_by="provider")
    mine, theirs = ToolCallPart("2", "f"), ToolCallPart("3", "g", run_by="client")
    message = Message.model(
        ThinkingPart("t"), call, result, ProviderPart("x"), mine, theirs, "text"
    )
    assert message.parts == (mine, theirs, TextPart("text"))
    assert message.tool_calls == (mine, theirs)
    assert message.tool_results == ()


def test_content_is_taken_as_it_comes():
    assert Message(Role.USER, "hi").content == (TextPart("hi"),)
    assert Message("user", ["a", LinkPart("u")]) == Message.user("a", LinkPart("u"))
    assert Message(Role.USER, ("a",)) == Message.user("a")
    assert Message.system("s").role is Role.SYSTEM
    assert Message.model().content == ()
    assert Message("model").role is Role.MODEL
    with pytest.raises(ValueError, match="nobody"):
        Message("nobody")


def test_an_empty_text_cannot_be_made():
    """Decision 14."""
    with pytest.raises(ValueError, match="never empty"):
        TextPart("")
    with pytest.raises(ValueError, match="never empty"):
        Message.user("")


@pytest.mark.parametrize(
    "bad", [b"", b"{", b"[]", b'{"v":1}', b'{"v":3,"role":"user"}', b'{"v":1,"role":"x"}']
)
def test_what_is_no_stored_message_says_so(bad: bytes):
    with pytest.raises(HistoryError, match=r"not a stored message.*to_json"):
        Message.from_json(bad)


def test_odd_json_is_a_history_error_too():
    for bad in (
        b'{"v":1,"role":"user","content":[{"type":"text","text":""}]}',
        '{"v":1,"role":"\ud800"}',
    ):
        with pytest.raises(HistoryError):
            Message.from_json(bad)
    deep = b'{"v":1,"role":"user","metadata":' + b'{"a":' * 100_000
    with pytest.raises(HistoryError):
        Message.from_json(deep)


def test_the_stored_form_is_versioned_and_says_only_what_is_set():
    message = Message(
        Role.MODEL,
        "hi",
        id="m",
        created_at=datetime(2026, 1, 2, tzinfo=UTC),
        usage=Usage(input_tokens=1),
    )
    assert msgspec.json.decode(message.to_json()) == {
        "v": 2,
        "role": "model",
        "content": [{"type": "text", "text": "hi"}],
        "id": "m",
        "created_at": "2026-01-02T00:00:00Z",
        "usage": {"input_tokens": 1},
    }


def test_decision_27_an_older_stored_form_is_read_with_notes_and_fields_apart():
    old = {
        "v": 1,
        "role": "model",
        "content": [
            {"type": "text", "text": "a", "native": {"mistral": {"signature": "s", "spelling": {"items": [1]}}}},
            {"type": "tool_result", "id": "c", "name": "f", "is_content": True, "result": [
                {"type": "link", "url": "u", "native": {"openai_responses": {"item": {}, "spelling": {"output": "list"}}}}
            ]},
        ],
        "native": {"openai_chat": {"refusal": None, "response": {"id": "r"}}, "x": {"spelling": 1}},
    }  # fmt: skip
    message = Message.from_json(msgspec.json.encode(old))
    text, result = message.content
    assert text.native == {
        "mistral": {"signature": "s"},
        "mistral:notes": {"spelling": {"items": [1]}},
    }
    assert isinstance(result, ToolResultPart)
    assert result.result[0].native == {
        "openai_responses:notes": {"item": {}, "spelling": {"output": "list"}}
    }
    assert message.native == {
        "openai_chat": {"refusal": None}, "openai_chat:notes": {"response": {"id": "r"}}, "x:notes": {"spelling": 1}
    }  # fmt: skip
    assert Message.from_json(message.to_json()) == message


def test_a_piece_of_a_kind_that_is_not_known_is_kept_and_written_again():
    later = {
        "v": 2,
        "role": "user",
        "content": [{"type": "hologram", "data": [1]}, {"type": "text", "text": "a"}],
    }
    message = Message.from_json(msgspec.json.encode(later))
    assert message.content[0] == ProviderPart(
        "hologram", {"dragoman": {"type": "hologram", "data": [1]}}
    )
    assert message.text == "a"
    assert msgspec.json.decode(message.to_json()) == later


@pytest.mark.parametrize(
    "native",
    [{"dragoman": []}, {"dragoman": {"type": "text"}}, {"dragoman": {"type": "x"}, "google": {}}],
)
def test_a_block_that_only_looks_like_a_piece_of_a_later_release_is_stored_as_it_is(
    native: dict[str, Any],
):
    message = Message.user(
        ProviderPart("x", native), ProviderPart("text", {"dragoman": {"type": "text"}})
    )
    assert Message.from_json(message.to_json()) == message


@pytest.mark.parametrize("text", ["\ud800", {"a": "\udfff"}])
def test_half_a_character_cannot_be_stored_and_says_so(text: object):
    message = (
        Message.user(text)
        if isinstance(text, str)
        else Message.user(ToolResultPart("c", "f", text))
    )
    with pytest.raises(HistoryError, match="cannot be stored as JSON"):
        message.to_json()
    assert chain_signature_digests([message], "w") != chain_signature_digests(
        [Message.user("?")], "w"
    )


PARTS = (TextPart("t"), DataPart(b"\x00\xff", "image/png"), LinkPart("u"), FilePart("f"))


def test_a_result_of_parts_is_told_from_a_json_value():
    content = ToolResultPart("1", "f", list(PARTS))
    assert content.result == PARTS
    assert content.is_content
    for value in ([], [1], [{"type": "text", "text": "x"}], "text", None, {"a": 1}, [[]]):
        result = ToolResultPart("1", "f", value)
        assert result.result == value
        assert not result.is_content
    assert ToolResultPart("1", "f", (1, 2)).result == [1, 2], "JSON has no tuples"
    assert ToolResultPart("1", "f", ()).result == []
    mixed = ToolResultPart("1", "f", [TextPart("x"), 1])
    assert not mixed.is_content


def test_a_result_can_be_replaced_by_one_of_the_other_kind():
    content = ToolResultPart("1", "f", PARTS)
    for value in ("text", [1], [], None, {"a": []}, [{"type": "nothing"}]):
        changed = msgspec.structs.replace(content, result=value)
        assert changed == ToolResultPart("1", "f", value)
        assert msgspec.structs.replace(changed, result=PARTS) == content


def test_usage_adds_what_is_told():
    """D-10: the sum is offered separately. `None` is not zero."""
    one = Usage(input_tokens=1, output_tokens=2, cache_read_tokens=0)
    two = Usage(input_tokens=10, reasoning_tokens=5)
    assert one + two == Usage(
        input_tokens=11, output_tokens=2, cache_read_tokens=0, reasoning_tokens=5
    )
    assert sum([one, two], Usage()) == one + two
    assert Usage() + Usage() == Usage()


def test_values_cannot_be_changed():
    for value in (Message.user("x"), TextPart("x"), Usage(), Origin("p"), *PARTS):
        field = value.__struct_fields__[0]
        with pytest.raises(AttributeError):
            setattr(value, field, None)


SNIFFED = [
    (b"\x89PNG....", "image/png"),
    (b"\xff\xd8\xff..", "image/jpeg"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-1.7", "application/pdf"),
    (b"ID3..", "audio/mpeg"),
    (b"OggS..", "audio/ogg"),
    (b"PK\x03\x04", "application/zip"),
    (b"RIFF1234WEBP", "image/webp"),
    (b"RIFF1234WAVE", "audio/wav"),
    (b"RIFF1234AVI ", "application/octet-stream"),
    (b"", "application/octet-stream"),
]


def test_a_file_is_read_with_its_type(tmp_path):
    for number, (data, mime_type) in enumerate(SNIFFED):
        path = tmp_path / f"file{number}"
        path.write_bytes(data)
        assert DataPart.from_file(path) == DataPart(data, mime_type, path.name)
    path = tmp_path / "notes.txt"
    path.write_bytes(b"%PDF")
    assert DataPart.from_file(str(path)).mime_type == "text/plain", "the name is asked first"
    assert DataPart.from_file(path, "text/markdown").mime_type == "text/markdown"
    with pytest.raises(FileNotFoundError):
        DataPart.from_file(tmp_path / "absent")


def test_every_public_name_is_there_and_explains_itself():
    for name in module.__all__:
        value = getattr(module, name)
        assert not inspect.isclass(value) or value.__doc__, name
    assert {reason.value for reason in FinishReason} == {reason.name for reason in FinishReason}
