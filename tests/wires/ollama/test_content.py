"""Texts, images and what no field holds, in messages of Ollama's wire (D-132, decision 2)."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.message import (
    DataPart,
    LinkPart,
    Message,
    ProviderPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires import ollama as wire
from dragoman.wires.ollama.content import Fields
from dragoman.wires.ollama.messages import prepare_conversation
from support.ollama import PNG


def test_d132_images_are_base64_and_a_result_names_its_tool():
    messages = [
        Message.user(DataPart(PNG, "image/png"), "what is it?"),
        Message.model(ToolCallPart("a1", "look", {"x": 1})),
        Message.user(ToolResultPart("a1", "look", {"seen": True})),
    ]
    assert wire.dump_messages(messages) == [
        {"role": "user", "content": "what is it?", "images": ["iVBORw0KGgowMDAw"]},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "a1", "function": {"name": "look", "arguments": {"x": 1}}}],
        },
        {"role": "tool", "content": '{"seen":true}', "tool_name": "look", "tool_call_id": "a1"},
    ]
    (loaded,) = wire.load_messages(wire.dump_messages(messages)[:1])
    assert loaded.content == messages[0].content


@pytest.mark.parametrize(
    ("piece", "what", "which", "text"),
    [
        (
            LinkPart("http://x/y.png"),
            "link",
            "image/png http://x/y.png",
            "\n[media: image/png] http://x/y.png\n",
        ),
        (
            DataPart(b"%PDF", "application/pdf"),
            "data",
            "application/pdf",
            "\n[media: application/pdf]\n",
        ),
        (ProviderPart("odd", {"other": {}}), "provider", "", ""),
    ],
)
def test_what_the_format_cannot_hold_is_a_loss(piece, what, which, text):
    losses = []
    assert wire.dump_messages([Message.user("a", piece)], losses=losses) == [
        {"role": "user", "content": "a" + text}
    ]
    joined = [(0, None, "texts", "")] if text else []
    assert [(loss.message, loss.part, loss.what, loss.which) for loss in losses] == [
        (0, 1, what, which),
        *joined,
    ]


def test_images_of_results_go_along():
    result = ToolResultPart("1", "f", (DataPart(PNG, "image/png"), TextPart("a png")))
    payload = wire.dump_messages([Message.user(result)])
    assert payload[0]["images"] and payload[0]["content"] == "a png"
    assert wire.load_messages(payload)[0].tool_results[0].result == result.result


def test_an_image_that_is_no_text_is_lost():
    losses: list[Any] = []
    part = ProviderPart("image", {"ollama": {"data": 5}})
    assert wire.dump_messages([Message.user("a", part)], losses=losses) == [
        {"role": "user", "content": "a"}
    ]
    assert [loss.what for loss in losses] == ["provider"]


def test_a_message_of_many_pieces_costs_linear_time():
    """Pieces are collected in one list a field, not copied with each that comes."""
    fields = Fields(prepare_conversation((), None, None, None), 0)
    fields.add(0, "tool_calls", 0)
    first = fields.dump("absent")["tool_calls"]
    for n in range(1, 50):
        fields.add(n, "tool_calls", n)
    assert fields.dump("absent")["tool_calls"] is first and len(first) == 50
    calls = [ToolCallPart(f"c{n}", "f") for n in range(50)]
    assert len(wire.dump_messages([Message.model(*calls)])[0]["tool_calls"]) == 50
