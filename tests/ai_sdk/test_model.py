"""Model messages, of ai 5 and later and of ai 4."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import DataPart, FilePart, LinkPart, Message, TextPart, ToolResultPart, formats, wires
from dragoman.codec.digest import chain_neutral_digests
from dragoman.errors import HistoryError
from dragoman.formats import ai_sdk_model, ai_sdk_ui
from dragoman.message import Origin, Role
from support.ai_sdk_samples import CORE, MODEL_PARTS, MODEL_TALK, TALK


def written(document: list[Any]) -> list[Any]:
    loaded = ai_sdk_model.load_messages(json.loads(json.dumps(document)))
    return ai_sdk_model.dump_messages([Message.from_json(message.to_json()) for message in loaded])


@pytest.mark.parametrize("document", [MODEL_TALK, MODEL_PARTS, CORE], ids=["talk", "parts", "core"])
def test_what_was_written_comes_back_as_it_was(document: list[Any]) -> None:
    assert written(document) == document
    for message in document:
        assert written([message]) == [message]


def test_a_message_of_a_text_is_read_as_chat_completions_reads_it() -> None:
    """M-04: nothing tells whose a plain text is, so all read it alike."""
    plain = [
        {"role": "system", "content": "a"},
        {"role": "user", "content": "b"},
        {"role": "assistant", "content": "c"},
    ]
    assert ai_sdk_model.load_messages(plain) == wires.get("openai_chat").load_messages(plain)
    assert formats.detect(plain) == "openai_chat"
    assert formats.detect(MODEL_TALK) == formats.detect(CORE) == "ai_sdk_model"


def test_calls_results_and_who_signed() -> None:
    """M-15: a result is the value of its output."""
    system, user, model, results, done = ai_sdk_model.load_messages(MODEL_TALK)
    assert [system.role, user.role, done.role] == [Role.SYSTEM, Role.USER, Role.MODEL]
    assert model.origin == Origin("anthropic")
    assert model.thinking == "Hm."
    assert results.tool_results == (ToolResultPart("c1", "weather", {"degrees": 21}),)
    sent = wires.get("anthropic").dump_messages([user, model, results], target=Origin("anthropic"))
    assert sent["messages"][1]["content"][0] == {
        "type": "thinking",
        "thinking": "Hm.",
        "signature": "c2ln",
    }


def test_files_are_read_in_every_form() -> None:
    """M-95, M-96: base64, data URLs, bytes as JSON has them, URLs and ids of providers are told
    apart, and a URL is never base64."""
    (user, *_) = ai_sdk_model.load_messages(MODEL_PARTS)
    kinds = [type(piece) for piece in user.content]
    assert kinds == [
        TextPart, DataPart, LinkPart, DataPart, DataPart, LinkPart, DataPart, DataPart, FilePart, FilePart,
    ]  # fmt: skip
    assert [piece.data for piece in user.content if isinstance(piece, DataPart)][3:] == [
        b"\1\2",
        b"\1\2",
    ]
    image = user.content[1]
    assert isinstance(image, DataPart)
    assert image.mime_type == "image/png", "M-98: the default of images"
    jpeg = {"role": "user", "content": [{"type": "image", "image": "/9j/AAAA"}]}
    (read,) = ai_sdk_model.load_messages([jpeg])
    assert isinstance(read.content[0], DataPart)


def test_outcomes_of_tools() -> None:
    (*_, tool) = ai_sdk_model.load_messages(MODEL_PARTS[:4])
    text, _, error, failed, denied, content = tool.tool_results
    assert (text.result, error.is_error, failed.result) == ("a", True, {"a": 1})
    assert denied.denied
    assert [type(part) for part in content.result] == [TextPart, DataPart, DataPart, LinkPart]


def test_a_turn_is_a_model_message_a_tool_message_and_another() -> None:
    """M-83: call, result, text are three messages."""
    made = ai_sdk_model.dump_messages(ai_sdk_ui.load_messages(TALK))
    assert [message["role"] for message in made] == ["user", "assistant", "tool", "assistant"]
    assert made[2]["content"] == [
        {"type": "tool-result", "toolCallId": "c1", "toolName": "weather", "output": {"type": "json", "value": {"degrees": 21}}}
    ]  # fmt: skip
    back = ai_sdk_model.load_messages(made)
    assert chain_neutral_digests(back) == chain_neutral_digests(ai_sdk_ui.load_messages(TALK))
    assert [message.id for message in back] == ["u1", "a1", "a1:1", "a1:2"]


def test_each_version_has_its_own_names() -> None:
    messages = ai_sdk_model.load_messages(MODEL_TALK)
    core = ai_sdk_model.dump_messages(messages, version="v4")
    assert core[2]["content"][0] == {"type": "reasoning", "text": "Hm.", "signature": "c2ln"}
    assert core[2]["content"][1]["args"] == {"city": "Rome"}
    assert core[3]["content"][0]["result"] == {"degrees": 21}
    picture = [Message.user(ToolResultPart("c", "f", (DataPart(b"\0", "image/png"),)))]
    kinds = [
        ai_sdk_model.dump_messages(picture, version=version)[0]["content"][0]["output"]["value"][0][
            "type"
        ]
        for version in ("v5", "v6")
    ]
    assert kinds == ["media", "image-data"]


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ({}, "a list of objects"),
        ([{"role": "robot", "content": []}], "[0].role must be one of"),
        ([{"role": "assistant", "content": 1}], "[0]"),
        ([{"role": "tool", "content": "x"}], "[0].content must be a string, a list of results"),
        ([{"role": "user", "content": [1]}], "[0].content[0] must be an object with a type"),
        ([{"role": "user", "content": [{"type": "file", "data": 1, "mediaType": "a/b"}]}], "[0].content[0].data must be base64"),
        ([{"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c", "toolName": "f", "output": 1}]}], "[0].content[0].output.type"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named_with_its_place(payload: Any, words: str) -> None:
    """M-02, M-07: by index and field; the rest is kept."""
    with pytest.raises(HistoryError) as caught:
        ai_sdk_model.load_messages(payload)
    assert words in caught.value.message
    if isinstance(payload, list):
        problems: list[Any] = []
        kept = ai_sdk_model.load_messages(
            [*payload, {"role": "user", "content": "kept"}], problems=problems
        )
        assert [message.text for message in kept] == ["kept"]
        assert [problem.index for problem in problems] == [0]
