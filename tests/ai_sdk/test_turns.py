"""What a user says while the model answers is a message within the turn; marks and messages that
say nothing are not lost in silence."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from dragoman import Message, ToolCallPart, ToolResultPart, formats, wires
from dragoman.codec.marks import INTERRUPT
from dragoman.formats import ai_sdk_ui
from dragoman.history import MessageList
from dragoman.loss import Loss, Lost
from dragoman.message import OURS, LinkPart, MarkPart, Role, TextPart
from support.ai_sdk_samples import text, tool, ui

STEP = {"type": "step-start"}
V2 = formats.get("mastra_v2")


def steer(id_: str, *parts: Any, **more: Any) -> dict[str, Any]:
    return {"type": "steering-message", "id": id_, "parts": [*parts], **more}


FILE = {"type": "file", "mediaType": "image/png", "url": "https://a.test/b.png"}
TALK = [
    ui("u", "user", text("How warm?", None)),
    ui(
        "a",
        "assistant",
        STEP,
        tool("c", "f", 1),
        steer("s", text("In Rome.", None), FILE, mine=1),
        STEP,
        text("21."),
    ),
]


def written(document: list[Any], **options: Any) -> list[Any]:
    loaded = ai_sdk_ui.load_messages(json.loads(json.dumps(document)))
    return ai_sdk_ui.dump_messages(
        [Message.from_json(message.to_json()) for message in loaded], **options
    )


def test_it_is_a_message_of_the_users_within_the_turn() -> None:
    loaded = ai_sdk_ui.load_messages(TALK)
    assert [message.role for message in loaded] == ["user", "model", "user", "user", "model"]
    said = loaded[3]
    assert (said.id, said.turn, said.content[0]) == ("s", "a", TextPart("In Rome."))
    assert isinstance(said.content[1], LinkPart)
    assert written(TALK) == TALK == written(TALK, version="v7")
    sent = wires.get("openai_chat").dump_messages(loaded)
    assert [one["role"] for one in sent] == ["user", "assistant", "tool", "user", "assistant"]


PARTS = [
    STEP,
    tool("c", "f", 1),
    steer("s", text("x", None)),
    steer("t", text("y", None)),
    text("z"),
]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_it_comes_back_wherever_it_stands(size: int) -> None:
    for parts in itertools.product(PARTS, repeat=size):
        document = [ui("u", "user", text("Hi.", None)), ui("a", "assistant", *parts)]
        assert written(document) == document


def test_what_has_no_such_part_has_a_message_of_the_users() -> None:
    loaded = ai_sdk_ui.load_messages(TALK)
    for version in ("v4", "v5", "v6"):
        losses: list[Loss] = []
        made = ai_sdk_ui.dump_messages(loaded, version=version, losses=losses)
        assert losses == []
        assert [one["role"] for one in made] == ["user", "assistant", "user", "assistant"]
        assert [one.text for one in ai_sdk_ui.load_messages(made)] == [
            "How warm?",
            "",
            "",
            "In Rome.",
            "21.",
        ]
    back = V2.load_messages(json.loads(json.dumps(V2.dump_messages(loaded))))
    assert [(one.role, one.id, one.turn, one.text) for one in back] == [
        (one.role, one.id, one.turn, one.text) for one in loaded
    ]


def test_a_list_holds_it() -> None:
    held = MessageList()
    held.add(TALK, "memory")
    assert [one["parts"] for one in held.to_ui_messages("v7")] == [one["parts"] for one in TALK]


def test_one_that_is_none_stays_a_mark() -> None:
    for odd in (
        steer("s"),
        steer("s", STEP),
        {"type": "steering-message"},
        steer("s", 5),
        {**steer("s"), "parts": 7},
    ):
        document = [ui("a", "assistant", odd, text("x"))]
        assert [message.role for message in ai_sdk_ui.load_messages(document)] == ["model"]
        assert written(document) == document


@pytest.mark.parametrize("format_", [ai_sdk_ui, V2], ids=["ui", "v2"])
def test_what_a_run_waits_for_is_a_loss(format_: Any) -> None:
    mark = MarkPart(INTERRUPT, {OURS: {"call": "d"}})
    called = Message.model(ToolCallPart("c", "f"), ToolCallPart("d", "f"))
    for content, place in (
        ((ToolResultPart("c", "f", 1), mark), 1),
        ((mark,), 0),
        ((mark, "And?"), 0),
    ):
        losses: list[Loss] = []
        format_.dump_messages(
            [Message.user("Hi."), called, Message(Role.USER, content)], losses=losses
        )
        assert [(loss.message, loss.part, loss.what) for loss in losses] == [(2, place, Lost.field)]


def test_a_message_that_says_nothing_has_a_part() -> None:
    messages = [Message(role, (), id=role.value) for role in (Role.USER, Role.MODEL)]
    made = ai_sdk_ui.dump_messages(messages)
    assert [one["parts"] for one in made] == [[{"type": "text", "text": ""}], [STEP]]
    assert ai_sdk_ui.load_messages(json.loads(json.dumps(made))) == messages
    odd = [
        ui("a", "assistant", STEP, metadata={"dragoman": {"empty": True, "mine": 1}}),
        ui("b", "assistant"),
    ]
    assert written(odd) == odd
    assert [one["parts"] for one in written([ui("b", "assistant"), ui("c", "user")], version="v7")] == [
        [], [{"type": "text", "text": ""}],
    ]  # fmt: skip
    assert written([ui("b", "assistant")], version="v5")[0]["parts"] == [STEP]


def test_a_step_beside_it_is_no_mark_of_a_message() -> None:
    document = [
        ui("a", "assistant", tool("c", "f", 1), STEP, steer("s", text("x", None)), STEP, text("z"))
    ]
    loaded = ai_sdk_ui.load_messages(document)
    assert not [
        piece for message in loaded for piece in message.content if isinstance(piece, MarkPart)
    ]
    assert written(document) == document
