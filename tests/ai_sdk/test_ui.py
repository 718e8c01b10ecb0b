"""The format ai_sdk_ui: UI messages come back as they were, and a turn is the messages within
it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import Message, TextPart, ThinkingPart, ToolCallPart, ToolResultPart, formats, wires
from dragoman.errors import HistoryError
from dragoman.formats import ai_sdk_ui
from dragoman.message import Origin, Role
from support.ai_sdk_samples import EVERY_PART, TALK, text, tool, ui


def stored(messages: list[Message]) -> list[Message]:
    return [Message.from_json(message.to_json()) for message in messages]


def written(document: list[Any]) -> list[Any]:
    return ai_sdk_ui.dump_messages(
        stored(ai_sdk_ui.load_messages(json.loads(json.dumps(document))))
    )


@pytest.mark.parametrize("document", [TALK, EVERY_PART], ids=["talk", "every part"])
def test_what_was_written_comes_back_as_it_was(document: list[Any]) -> None:
    assert written(document) == document
    for message in document:
        assert written([message]) == [message]


def test_a_turn_is_the_models_messages_and_the_results_between_them() -> None:
    user, first, results, second = ai_sdk_ui.load_messages(TALK)
    assert [user.role, first.role, results.role, second.role] == [
        Role.USER,
        Role.MODEL,
        Role.USER,
        Role.MODEL,
    ]
    assert [user.id, first.id, results.id, second.id] == ["u1", "a1", "a1:1", "a1:2"]
    assert {first.turn, results.turn, second.turn} == {"a1"}
    assert first.tool_calls == (ToolCallPart("c1", "weather", {"city": "Rome"}),)
    assert results.tool_results == (ToolResultPart("c1", "weather", {"degrees": 21}),)
    assert second.content == (TextPart("21."),)


def test_a_turn_returns_as_exactly_the_messages_that_it_was() -> None:
    messages = [
        Message.user("How warm?"),
        Message(
            Role.MODEL,
            (ToolCallPart("c", "f", {"a": 1}),),
            id="m1",
            origin=Origin("xai", model="m"),
        ),
        Message(Role.USER, (ToolResultPart("c", "f", "21"),)),
        Message(Role.MODEL, ("21.",), id="m2", turn="m1"),
        Message(Role.MODEL, ("And a second answer.",), id="x", turn="x"),
        Message(Role.MODEL, (ToolCallPart("d", "f"),), id="x:1"),
        Message(Role.USER, (ToolResultPart("d", "f", [1], True), TextPart("Go on."))),
    ]
    assert (
        ai_sdk_ui.load_messages(json.loads(json.dumps(ai_sdk_ui.dump_messages(messages))))
        == messages
    )


def test_without_a_step_mark_a_text_behind_a_call_is_of_the_same_message() -> None:
    (model, results) = ai_sdk_ui.load_messages(
        [ui("a", "assistant", tool("c", "f", 1), text("So."))]
    )
    assert [type(piece) for piece in model.content] == [ToolCallPart, TextPart]
    assert results.tool_results[0].result == 1


def test_thinking_that_anthropic_signed_goes_back_to_anthropic() -> None:
    signed = {
        "type": "reasoning",
        "text": "Hm.",
        "state": "done",
        "providerMetadata": {"anthropic": {"signature": "c2ln"}},
    }
    redacted = {
        "type": "reasoning",
        "text": "",
        "state": "done",
        "providerMetadata": {"anthropic": {"redactedData": "eA"}},
    }
    loaded = ai_sdk_ui.load_messages(
        [ui("u", "user", text("Hi.", None)), ui("a", "assistant", signed, redacted, text("Ho."))]
    )
    assert loaded[1].origin == Origin("anthropic")
    assert loaded[1].content[0] == ThinkingPart("Hm.", {"anthropic": {"signature": "c2ln"}})
    sent = wires.get("anthropic").dump_messages(loaded, target=Origin("anthropic"))
    assert sent["messages"][1]["content"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "eA"},
        {"type": "text", "text": "Ho."},
    ]


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ({}, "a list of objects"),
        ([1], "[0] must be an object"),
        ([{"role": "robot", "parts": []}], "[0].role must be one of"),
        ([{"role": "user", "parts": {}}], "[0].parts must be a list"),
        ([{"role": "user", "parts": [{"text": 1}]}], "[0].parts[0] must be an object with a type"),
        ([{"role": "user", "parts": [{"type": "text", "text": 1}]}], "[0].parts[0].text must be a string"),
        ([{"role": "assistant", "parts": [{"type": "tool-f", "toolCallId": "c", "state": "odd"}]}], "[0].parts[0].state must be one of"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named_with_its_place(payload: Any, words: str) -> None:
    with pytest.raises(HistoryError) as caught:
        ai_sdk_ui.load_messages(payload)
    assert words in caught.value.message


def test_it_is_detected() -> None:
    assert formats.detect(TALK) == "ai_sdk_ui"
    assert (
        formats.detect({"id": "chat", "messages": TALK, "trigger": "submit-message"}) == "ai_sdk_ui"
    )
