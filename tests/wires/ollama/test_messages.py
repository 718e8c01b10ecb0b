"""The conversation of Ollama's wire."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman import wires
from dragoman.codec.serving import Problem
from dragoman.errors import DecodeError, HistoryError
from dragoman.fold import unfold
from dragoman.loss import Loss
from dragoman.message import (
    MarkPart,
    Message,
    Origin,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires import embeddings
from dragoman.wires import ollama as wire

HERE = Origin("ollama", "http://localhost:11434", "qwen3")


def test_decision_4_thinking_goes_back_to_its_origin_and_to_nobody_else():
    (message,) = wire.load_messages(
        [{"role": "assistant", "content": "hi", "thinking": "hm"}], origin=HERE
    )
    assert message.thinking == "hm" and message.content == (ThinkingPart("hm"), TextPart("hi"))
    assert wire.dump_messages([message], target=HERE) == [
        {"role": "assistant", "content": "hi", "thinking": "hm"}
    ]
    losses = []
    other = Origin("other", model="m")
    assert wire.dump_messages([message], target=other, losses=losses) == [
        {"role": "assistant", "content": "hi"}
    ]
    assert [(loss.message, loss.part, loss.what) for loss in losses] == [(0, 0, "thinking")]
    kin = wire.Quirks(reads=("ollama",))
    assert wire.dump_messages([message], target=other, quirks=kin)[0]["thinking"] == "hm"


def test_decision_2_what_the_format_holds_in_another_order_is_a_loss():
    losses = []
    message = Message.model(ToolCallPart("1", "f"), "after", ThinkingPart("late"))
    (dumped,) = wire.dump_messages([message], losses=losses)
    assert list(dumped) == ["role", "content", "thinking", "tool_calls"]
    assert [(loss.part, loss.what) for loss in losses] == [(1, "order"), (2, "order")]
    losses = []
    wire.dump_messages(
        [Message.user("first", ToolResultPart("1", "f", "x", is_error=True))], losses=losses
    )
    assert [(loss.part, loss.what) for loss in losses] == [(1, "is_error"), (1, "order")]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": None},
        {"role": "user"},
        {"role": "user", "content": "", "images": ["no base64!"]},
        {"role": "user", "content": "x", "images": "odd"},
        {"role": "assistant", "content": "", "thinking": "", "tool_calls": []},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "f", "arguments": '{"a": 1}'}}],
        },
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "", "type": "function", "function": {"name": "f"}}],
        },
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "f", "arguments": "{cut"}}],
        },
        {"role": "tool", "content": "x"},
        {"role": "tool", "content": None, "tool_name": None, "own": 1},
        {"role": "tool", "tool_name": "f", "tool_call_id": "1"},
        {"role": "system", "content": "be brief", "name": "n"},
    ],
)
def test_odd_spellings_come_back_as_they_were(message):
    loaded = [Message.from_json(m.to_json()) for m in wire.load_messages([message])]
    assert wire.dump_messages(loaded) == [message]


@pytest.mark.parametrize(
    "payload", ["x", [1], [{"role": "robot", "content": ""}], [{"role": "user", "content": [1]}]]
)
def test_what_is_no_conversation_is_refused(payload):
    with pytest.raises(HistoryError):
        wire.load_messages(payload)


ANYWHERE = Origin("ollama", None, "qwen3")


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "a", "response": "x", "spelling": "y"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "f", "arguments": "x"}, "response": 1}],
        },
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "f", "arguments": {"x": "\ud800"}}}],
        },
        {
            "role": "assistant",
            "content": "a",
            "tool_calls": [{"function": {"name": ["f"]}}],
            "thinking": 5,
        },
        {"role": "user", "content": "a", "images": ["\ud800"]},
        {"role": "user", "content": "a", "images": [5]},
        {"role": "tool", "content": "a", "tool_name": ["f"], "tool_call_id": {}},
    ],
)
def test_decision_27_odd_messages_come_back_as_they_were(message: dict[str, Any]):
    messages = wire.load_messages([message])
    assert wire.dump_messages(messages) == [message]
    for name in ("anthropic", "cohere", "ollama"):
        other = wires.get(name)
        other.dump_messages(messages, target=ANYWHERE, losses=[])
        encoder = other.encoder()
        (
            b"".join(map(encoder.feed, unfold([m.replace(role="model") for m in messages])))
            + encoder.close()
        )


@pytest.mark.parametrize("own", ["x", 5, {"id": {}, "message": 5, "role": 0, "data": 5}])
@pytest.mark.parametrize(
    "notes",
    [
        "x",
        {"spelling": 5},
        {
            "spelling": {"arguments": 5, "content": {}, "id": []},
            "response": {"model": 1, "message": 2, "done": 3, "created_at": []},
        },
    ],
)
@pytest.mark.parametrize(
    "piece",
    [
        {"type": "text", "text": "a"},
        {"type": "tool_call", "id": "a", "name": "f"},
        {"type": "tool_result", "id": "a", "name": "f", "result": {"a": 1}},
        {"type": "provider", "kind": "image"},
    ],
)
def test_d8_a_stored_native_of_any_shape_can_be_dumped(piece: dict[str, Any], notes: Any, own: Any):
    native = {"ollama": own, "ollama:notes": notes}
    stored = {"v": 2, "role": "model", "content": [{**piece, "native": native}], "native": native}
    message = Message.from_json(json.dumps(stored))
    for target in (None, ANYWHERE):
        wire.dump_messages([message, message.replace(role="user")], target=target)
    whole = wire.dump_response(unfold([message]), model="m")
    assert (
        whole["model"] == "m" and whole["done"] is True and whole["message"]["role"] == "assistant"
    )
    encoder = wire.encoder()
    last = json.loads(
        (b"".join(map(encoder.feed, unfold([message]))) + encoder.close()).splitlines()[-1]
    )
    assert last["done"] is True and last["message"]["role"] == "assistant"


def test_half_a_pair_of_surrogates_is_told_as_json():
    (result,) = wire.dump_messages([Message.user(ToolResultPart("a", "f", {"x": "\ud800"}))])
    assert json.loads(result["content"]) == {"x": "\ud800"}
    own = embeddings("ollama")
    assert own is not None
    with pytest.raises(DecodeError):
        own.load_response({"embeddings": [["\ud800"]]})


MARK = MarkPart("step", {"ui": {"n": 1}})


def test_marks_are_passed_over():
    plain = [
        Message.system("s"),
        Message.user("a"),
        Message.model(ThinkingPart("hm"), "x", ToolCallPart("c", "f")).replace(origin=HERE),
        Message.user(ToolResultPart("c", "f", "y")),
        Message.model(),
        Message.user("b", "c", ToolResultPart("d", "f", "z")),
    ]
    marked = [message.replace(content=(MARK, *message.content, MARK)) for message in plain]
    for target in (None, HERE):
        without, among = list[Loss](), list[Loss]()
        written = wire.dump_messages(plain, target=target, losses=without)
        assert wire.dump_messages(marked, target=target, losses=among) == written
        assert [(loss.message, loss.what) for loss in among] == [
            (loss.message, loss.what) for loss in without
        ]


def test_a_loss_behind_a_mark_names_its_place():
    losses = list[Loss]()
    wire.dump_messages(
        [Message.user("a"), Message.user(MARK, "x", MARK, ThinkingPart("hm"))], losses=losses
    )
    assert [(loss.message, loss.part, loss.what) for loss in losses] == [(1, 3, "thinking")]


@pytest.mark.parametrize(
    ("message", "sure"),
    [
        ({"role": "user", "content": "hi"}, 1),
        ({"role": "system", "content": "hi", "more": 1}, 1),
        ({"role": "assistant", "content": None}, 1),
        ({"role": "assistant", "content": "", "images": [], "thinking": "", "tool_calls": []}, 1),
        ({"role": "user", "content": "hi", "images": ["iVBOR"]}, 3),
        ({"role": "user", "content": "hi", "images": [{"url": "x"}]}, 1),
        ({"role": "assistant", "content": "hi", "thinking": "hm"}, 3),
        (
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"function": {"name": "f", "arguments": {}}}],
            },
            3,
        ),
        (
            {
                "role": "assistant",
                "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}],
            },
            0,
        ),
        ({"role": "tool", "content": "x", "tool_name": "f"}, 3),
        ({"role": "tool", "content": "x"}, 2),
        ({"role": "tool", "content": "x", "tool_call_id": "1"}, 1),
        ({"role": "user", "content": [{"type": "text", "text": "hi"}]}, 0),
        ({"role": "user", "parts": [{"text": "hi"}]}, 0),
        ({"type": "message", "role": "user", "content": "hi"}, 0),
        ({"role": "developer", "content": "hi"}, 0),
        ({"content": "hi"}, 0),
        *[
            (odd, 0)
            for odd in (
                None,
                5,
                "user",
                [],
                {},
                [{"role": "user"}],
                {"role": ["user"]},
                {"role": {}},
            )
        ],
    ],
)
def test_how_surely_a_message_is_of_this_format(message, sure):
    assert wire.votes(message) == sure


def test_what_cannot_be_read_is_noted_and_the_rest_is_read():
    payload = [
        {"role": "user", "content": "a"},
        5,
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "f", "arguments": {}}}],
        },
        {"role": "narrator", "content": "b"},
        {"role": "tool", "content": "x", "tool_name": "f"},
        {"role": "tool", "content": [], "tool_name": "f"},
        {"role": "tool", "content": "y", "tool_name": "f"},
        {"role": "user", "content": 5},
        {"role": "user", "content": "deep", "more": json.loads("[" * 200 + "]" * 200)},
    ]
    expected = wire.load_messages([payload[place] for place in (0, 2, 4, 6)], origin=HERE)
    problems = list[Problem]()
    assert wire.load_messages(payload, origin=HERE, problems=problems) == expected
    assert [(each.index, each.field) for each in problems] == [
        (1, None),
        (3, "role"),
        (5, "content"),
        (7, "content"),
        (8, None),
    ]
    assert "narrator" in problems[1].error
    noted = list[Problem]()
    request = wire.load_request({"model": "m", "messages": payload}, origin=HERE, problems=noted)
    assert (request.messages, noted) == (tuple(expected), problems)
    with pytest.raises(HistoryError):
        wire.load_messages(payload)
    with pytest.raises(HistoryError):
        wire.load_messages({}, problems=[])


def test_plain_texts_are_messages_of_nothing_else():
    talk = [
        {"role": role, "content": f"of {role}"}
        for role in ("system", "user", "tool", "assistant", "tool", "user")
    ]
    result = ToolResultPart(
        "call-0",
        "",
        "of tool",
        native={"ollama": {"id": None}, "ollama:notes": {"spelling": {"tool_name": "absent"}}},
    )
    messages = [
        Message.system("of system"),
        Message.user("of user"),
        Message.user(result),
        Message.model("of assistant").replace(origin=HERE),
        Message.user(replace(result, id="call-1")),
        Message.user("of user"),
    ]
    assert wire.load_messages(talk, origin=HERE) == messages
    losses = list[Loss]()
    assert wire.dump_messages(messages, losses=losses) == talk
    assert not losses
