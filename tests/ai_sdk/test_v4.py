"""UI messages of ai 4: parts, mirrors, attachments, messages without parts."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from dragoman import (
    DataPart,
    LinkPart,
    Message,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    formats,
    wires,
)
from dragoman.formats import ai_sdk_ui
from dragoman.message import Origin
from support.ai_sdk_samples import AI_4, TALK, invocation, ui


def written(document: list[Any]) -> list[Any]:
    loaded = ai_sdk_ui.load_messages(json.loads(json.dumps(document)))
    return ai_sdk_ui.dump_messages([Message.from_json(message.to_json()) for message in loaded])


@pytest.mark.parametrize("message", AI_4, ids=lambda message: str(message.get("id")))
def test_each_message_comes_back_as_it_was(message: dict[str, Any]) -> None:
    """M-12: UI messages keep their parts as given, step marks among them, and their attachments."""
    assert written([message]) == [message]


def test_a_conversation_comes_back_as_it_was() -> None:
    assert written(AI_4) == AI_4
    assert formats.detect(AI_4[:4]) == "ai_sdk_ui"


def test_attachments_are_files_and_times_are_times() -> None:
    """M-98, M-100: the type that a data URL tells wins; attachments are images and files."""
    (user,) = ai_sdk_ui.load_messages(AI_4[:1])
    assert user.created_at == datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)
    text, image, link = user.content
    assert text == TextPart("See")
    assert isinstance(image, DataPart)
    assert (image.mime_type, image.name) == ("image/png", "a.png")
    assert isinstance(link, LinkPart)
    assert (link.url, link.mime_type) == ("https://a.test/b", "text/plain")


def test_details_are_thinking_that_goes_back_to_who_signed_it() -> None:
    """M-14: a signature stands with its text, what is redacted by itself."""
    user, first, results, second = ai_sdk_ui.load_messages(AI_4[:2])
    assert first.origin == Origin("anthropic")
    assert [piece.text for piece in first.content if isinstance(piece, ThinkingPart)] == [
        "Hm. ",
        "",
        "So.",
    ]
    assert results.tool_results == (ToolResultPart("c1", "weather", {"degrees": 21}),)
    assert second.text == "21."
    sent = wires.get("anthropic").dump_messages([user, first, results], target=Origin("anthropic"))
    assert sent["messages"][1]["content"][:2] == [
        {"type": "thinking", "thinking": "Hm. ", "signature": "c2ln"}, {"type": "redacted_thinking", "data": "eA"},
    ]  # fmt: skip


def test_a_message_without_parts_is_read_by_its_mirrors() -> None:
    model, results = ai_sdk_ui.load_messages([AI_4[3]])
    assert [type(piece) for piece in model.content] == [ToolCallPart, ThinkingPart, TextPart]
    assert results.tool_results[0].result == 1


def test_mirrors_say_what_an_edited_message_says() -> None:
    """M-80: `content` is the joined text, `toolInvocations` are those of the parts."""
    (message,) = ai_sdk_ui.load_messages(
        [
            {
                **AI_4[1],
                "content": "odd",
                "parts": [{"type": "text", "text": "21."}],
                "toolInvocations": [],
            }
        ]
    )
    (same,) = ai_sdk_ui.dump_messages([message])
    assert (same["content"], same["toolInvocations"]) == ("odd", [])
    (edited,) = ai_sdk_ui.dump_messages([message.replace(content=(TextPart("22."),))])
    assert edited["content"] == "22."


def test_a_newer_message_is_written_for_ai_4() -> None:
    made = ai_sdk_ui.dump_messages(ai_sdk_ui.load_messages(TALK), version="v4")
    assert made[1]["content"] == "21."
    assert made[1]["toolInvocations"] == [made[1]["parts"][1]["toolInvocation"]]
    assert made[1]["toolInvocations"][0]["state"] == "result"
    assert (
        ai_sdk_ui.dump_messages(ai_sdk_ui.load_messages(made), version="v5")[1]["parts"]
        == TALK[1]["parts"]
    )


def test_new_messages_of_an_old_conversation_are_written_as_it_is() -> None:
    loaded = ai_sdk_ui.load_messages(AI_4[:2])
    made = ai_sdk_ui.dump_messages([*loaded, Message.user("More.")])
    assert made[2]["content"] == "More."
    assert ai_sdk_ui.dump_messages([*loaded, Message.user("More.")], version="v7")[2]["parts"] == [
        {"type": "text", "text": "More."}
    ]


def test_versions_are_told_apart() -> None:
    """M-03, M-05, M-06: traits of ai 4 are its own fields and parts; texts and data parts alone are
    read the same way."""
    plain = ui("a", "user", {"type": "text", "text": "x"}, {"type": "data-x", "data": 1})
    assert written([plain]) == [plain]
    for extra in (
        {"toolInvocations": []},
        {"annotations": []},
        {"experimental_attachments": []},
        {"content": "x"},
    ):
        message = {**plain, **extra}
        (loaded,) = ai_sdk_ui.load_messages([message])
        assert "content" in ai_sdk_ui.dump_messages([loaded.replace(content=(TextPart("y"),))])[0]
        assert written([message]) == [message]


def test_calls_are_numbered_by_their_step() -> None:
    """M-80: an invocation has the number of its step."""
    parts = [
        {"type": "step-start"},
        invocation("result", "c1", "f", 0, args={}, result=1),
        {"type": "step-start"},
    ]
    message = {
        **ui("a", "assistant", *parts, invocation("result", "c2", "f", 1, args={}, result=2)),
        "content": "",
    }
    message["toolInvocations"] = [
        part["toolInvocation"] for part in message["parts"] if "toolInvocation" in part
    ]
    loaded = ai_sdk_ui.load_messages([message])
    assert [piece.native for each in loaded for piece in each.content] == [None] * 5
    assert written([message]) == [message]


def test_what_was_redacted_comes_back_for_each_release() -> None:
    hidden = {
        "type": "reasoning",
        "text": "",
        "state": "done",
        "providerMetadata": {"anthropic": {"redactedData": "eA"}},
    }
    document = [ui("a", "assistant", hidden)]
    loaded = ai_sdk_ui.load_messages(document)
    assert ai_sdk_ui.dump_messages(loaded) == document
    (old,) = ai_sdk_ui.dump_messages(loaded, version="v4")
    assert old["parts"][0]["details"] == [{"type": "redacted", "data": "eA"}]
    assert (
        ai_sdk_ui.dump_messages(ai_sdk_ui.load_messages([old]), version="v7")[0]["parts"]
        == document[0]["parts"]
    )
