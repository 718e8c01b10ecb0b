"""The cohere wire: the conversation (decisions 2, 4, 12 and 27)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import errors, wires
from dragoman.codec.serving import Problem
from dragoman.errors import DecodeError, HistoryError
from dragoman.event import RunError
from dragoman.fold import unfold
from dragoman.loss import Loss
from dragoman.message import (
    DataPart,
    LinkPart,
    MarkPart,
    Message,
    Origin,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.request import ModelRequest, ToolSpec
from dragoman.wires import cohere as wire
from support.cohere import HERE, PLAN, deep
from support.histories import NEUTRAL


def test_the_usual_spelling():
    messages = [
        Message.system("be brief"),
        Message.user("what is it?", DataPart(b"png", "image/png"), LinkPart("https://x/y.png")),
        Message.model(ThinkingPart("I look", PLAN), ToolCallPart("a1", "look", {"x": 1})),
        Message.user(ToolResultPart("a1", "look", {"seen": True}), "so?"),
        Message.model("a cat"),
    ]
    assert wire.dump_messages(messages) == [
        {"role": "system", "content": "be brief"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "what is it?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}},
                {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
            ],
        },
        {
            "role": "assistant",
            "tool_plan": "I look",
            "tool_calls": [
                {
                    "id": "a1",
                    "type": "function",
                    "function": {"name": "look", "arguments": '{"x":1}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "a1", "content": '{"seen":true}'},
        {"role": "user", "content": "so?"},
        {"role": "assistant", "content": "a cat"},
    ]
    assert wire.load_messages(wire.dump_messages(messages)[:3]) == messages[:3]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user"},
        {"role": "user", "content": None},
        {"role": "user", "content": [{"type": "text", "text": "x"}]},
        {
            "role": "user",
            "content": [
                {"type": "document", "document": {"data": "x", "id": "1"}},
                {"type": "own"},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "image_url",
                    "image_url": {"url": "data:image/png;base64,!", "detail": "low"},
                }
            ],
        },
        {"role": "assistant", "content": None, "tool_plan": "", "tool_calls": []},
        {"role": "assistant", "content": "x", "citations": [{"start": 0, "end": 1, "text": "x"}]},
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "h"}, {"type": "text", "text": ""}],
        },
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f"}}]},
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": ""}}
            ],
        },
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{"}}
            ],
        },
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": "null"}}
            ],
        },
        {"role": "assistant", "tool_calls": [{"id": "1", "name": "f", "args": {}}]},
        {"role": "tool", "tool_call_id": "1"},
        {"role": "tool", "content": None},
        {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "x"}]},
        {
            "role": "tool",
            "tool_call_id": "1",
            "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}],
        },
        {
            "role": "tool",
            "tool_call_id": "1",
            "content": [{"type": "document", "document": {"data": {"a": 1}}}],
        },
        {
            "role": "tool",
            "tool_call_id": "1",
            "content": [{"type": "document", "document": {"data": "x", "id": "d"}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": []},
    ],
)
def test_odd_spellings_come_back_as_they_were(message):
    loaded = [Message.from_json(m.to_json()) for m in wire.load_messages([message])]
    assert wire.dump_messages(loaded) == [message]


def test_decision_4_thinking_plans_and_citations_go_back_to_their_origin_only():
    payload = [
        {
            "role": "assistant",
            "tool_plan": "so",
            "content": [{"type": "thinking", "thinking": "h"}, {"type": "text", "text": "x"}],
            "citations": [{"start": 0}],
        }
    ]
    messages = wire.load_messages(payload, origin=HERE)
    assert messages[0].thinking == "soh"
    assert wire.dump_messages(messages, target=HERE) == payload
    losses = []
    other = Origin("other")
    assert wire.dump_messages(messages, target=other, losses=losses) == [
        {"role": "assistant", "content": "x"}
    ]
    found = [(loss.part, loss.what, loss.which) for loss in losses]
    assert found == [(0, "thinking", ""), (1, "thinking", ""), (None, "field", "citations")]
    assert (
        wire.dump_messages(messages, target=other, quirks=wire.Quirks(reads=("cohere",))) == payload
    )


def test_decision_2_what_the_format_holds_in_another_order_is_a_loss():
    losses = []
    message = Message.model("first", ThinkingPart("late", PLAN), ToolCallPart("1", "f"), "after")
    (dumped,) = wire.dump_messages([message], losses=losses)
    assert dumped["tool_plan"] == "late" and [block["text"] for block in dumped["content"]] == [
        "first",
        "after",
    ]
    assert [(loss.part, loss.what) for loss in losses] == [(1, "order"), (3, "order")]
    losses = []
    media = ToolResultPart("1", "f", (TextPart("t"), DataPart(b"x", "image/png")), is_error=True)
    wire.dump_messages([Message.user("first", media)], losses=losses)
    assert [(loss.part, loss.what) for loss in losses] == [
        (1, "is_error"),
        (1, "media"),
        (1, "order"),
    ]


MARK = MarkPart("step", {"ui": {"n": 1}})


def test_marks_are_passed_over():
    plain = [
        Message.system("s"),
        Message.user("a"),
        Message.model(ThinkingPart("so", PLAN), "x", ToolCallPart("my call", "f")).replace(
            origin=HERE
        ),
        Message.user(ToolResultPart("my call", "f", "y")),
        Message.model(),
        Message.user("b", ToolResultPart("other", "f", "z")),
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
        [Message.user("a"), Message.model(MARK, "x", MARK, ThinkingPart())], losses=losses
    )
    assert [(loss.message, loss.part, loss.what) for loss in losses] == [(1, 3, "thinking")]


def test_decision_12_ids_and_names_are_made_fit_per_request():
    model = Message.model(ToolCallPart("a b", "my tool", {}))
    messages = [model, Message.user(ToolResultPart("a b", "my tool", "x")), model]
    request = ModelRequest("m", tuple(messages), (ToolSpec("my tool"),))
    body = wire.dump_request(request, target=HERE)
    first, result, again = body["messages"]
    name = body["tools"][0]["function"]["name"]
    assert name == first["tool_calls"][0]["function"]["name"] != "my tool"
    assert first["tool_calls"][0]["id"] == result["tool_call_id"] != again["tool_calls"][0]["id"]
    assert " " not in name + result["tool_call_id"]


@pytest.mark.parametrize(
    "payload",
    [
        "x",
        [1],
        [{"role": "robot", "content": ""}],
        [{"role": "user", "content": [1]}],
        [{"role": "user", "content": 1}],
    ],
)
def test_what_is_no_conversation_is_refused(payload):
    with pytest.raises(errors.HistoryError):
        wire.load_messages(payload)


def test_depth_is_bounded_at_every_door():
    decoder = wire.decoder()
    events = decoder.feed(
        b'data: {"type":"content-start","a":' + b"[" * 2000 + b"]" * 2000 + b"}\n\n"
    )
    assert isinstance(events[-1], RunError) and isinstance(events[-1].error, DecodeError)
    (event,) = wire.load_response({"message": {"content": deep(2000)}})
    assert (
        isinstance(event, RunError)
        and isinstance(event.error, DecodeError)
        and "deep" in event.error.message
    )
    for load, given in (
        (wire.load_messages, [{"role": "user", "content": "a", "b": deep(2000)}]),
        (wire.load_request, {"messages": [], "b": deep(2000)}),
    ):
        with pytest.raises(HistoryError, match="deep"):
            load(given)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "a", "response": "x", "spelling": "y"},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "a", "spelling": 1, "response": 2}],
        },
        {"role": "assistant", "tool_plan": 5, "tool_calls": [{"id": 5}]},
        {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": "a",
                    "function": {"name": "f", "arguments": {"x": "\ud800"}},
                    "spelling": "x",
                }
            ],
        },
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": "x"}, {"type": ["text"]}, {}],
        },
        {"role": "tool", "tool_call_id": ["a"], "content": {"a": "\ud800"}},
        {
            "role": "tool",
            "tool_call_id": "a",
            "content": [1, {"type": "document", "document": [{}]}],
        },
    ],
)
def test_decision_27_odd_messages_come_back_as_they_were(message: dict[str, Any]):
    messages = wire.load_messages([message])
    assert wire.dump_messages(messages) == [message]
    for name in ("anthropic", "cohere", "ollama"):
        other = wires.get(name)
        other.dump_messages(messages, target=HERE, losses=[])
        encoder = other.encoder()
        (
            b"".join(map(encoder.feed, unfold([m.replace(role="model") for m in messages])))
            + encoder.close()
        )


@pytest.mark.parametrize(
    "own", ["x", 5, {"citations": 5}, {"citations": "ab", "id": 5, "message": 5, "type": 0}]
)
@pytest.mark.parametrize(
    "notes",
    [
        "x",
        {"spelling": 5},
        {
            "spelling": {"type": {}, "content": "document"},
            "response": {"usage": [5], "id": 1, "message": 2},
        },
    ],
)
@pytest.mark.parametrize(
    "piece",
    [
        {"type": "text", "text": "a"},
        {"type": "file", "id": "f"},
        {"type": "thinking", "text": "a"},
        {"type": "tool_call", "id": "a", "name": "f"},
        {"type": "tool_result", "id": "a", "name": "f", "result": {"a": 1}},
        {"type": "provider", "kind": "document"},
    ],
)
def test_d8_a_stored_native_of_any_shape_can_be_dumped(piece: dict[str, Any], notes: Any, own: Any):
    native = {"cohere": own, "cohere:notes": notes}
    stored = {"v": 2, "role": "model", "content": [{**piece, "native": native}], "native": native}
    message = Message.from_json(json.dumps(stored))
    for target in (None, HERE):
        wire.dump_messages([message, message.replace(role="user")], target=target)
    whole = wire.dump_response(unfold([message]), id="r")
    assert whole["id"] == "r" and whole["message"]["role"] == "assistant"
    encoder = wire.encoder()
    written = b"".join(map(encoder.feed, unfold([message]))) + encoder.close()
    assert b"message-end" in written


@pytest.mark.parametrize("text", ["a", " a\n", " ", "\ud800"])
def test_plain_messages_are_written_like_any_other(text: str):
    origin = Origin("other", prefix="x")
    plain = [
        Message.system(text),
        Message.user(text),
        Message.model(text).replace(origin=origin),
        Message.system(text),
    ]
    noted = [message.replace(native={"ui": {"n": 1}}) for message in plain]
    for target in (None, HERE):
        losses = {name: list[Loss]() for name in ("plain", "noted")}
        written = wire.dump_messages(plain, target=target, losses=losses["plain"])
        assert wire.dump_messages(noted, target=target, losses=losses["noted"]) == written
        assert losses["plain"] == losses["noted"] == []


@pytest.mark.parametrize("text", ["a", " a\n", " ", "", "\ud800"])
@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_plain_entries_are_read_like_any_other(role: str, text: str):
    entry = {"role": role, "content": text}
    (plain,) = wire.load_messages([entry], origin=HERE)
    (more,) = wire.load_messages([{**entry, "x": 1}], origin=HERE)
    own = {key: value for key, value in (more.native or {}).items() if key != "cohere"}
    assert plain == more.replace(native=own or None)


def test_what_cannot_be_read_is_noted_by_its_place_and_the_rest_is_read():
    entries = [
        {"role": "user", "content": "a"},
        "b",
        {"role": "robot", "content": "c"},
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "d"},
        {"role": "tool", "tool_call_id": "2", "content": deep(2000)},
        {"role": ["tool"]},
        {"role": "tool", "tool_call_id": "1", "content": "e"},
        {"role": "user", "content": 5},
    ]
    problems = list[Problem]()
    messages = wire.load_messages(entries, origin=HERE, problems=problems)
    readable = [entries[place] for place in (0, 3, 4, 7)]
    assert messages == wire.load_messages(readable, origin=HERE)
    assert [len(message.content) for message in messages] == [1, 1, 2]
    assert [(problem.index, problem.field) for problem in problems] == [
        (1, None), (2, "role"), (5, "content"), (6, "role"), (8, "content"),
    ]  # fmt: skip
    assert (
        problems[1].error
        == "a Cohere chat has no role 'robot'; it has system, user, assistant and tool"
    )
    again = list[Problem]()
    assert wire.load_request({"messages": entries}, origin=HERE, problems=again).messages == tuple(
        messages
    )
    assert again == problems


@pytest.mark.parametrize("load", [wire.load_messages, wire.load_request])
@pytest.mark.parametrize("payload", [{}, {"messages": "x"}, None])
def test_what_is_no_conversation_is_refused_though_problems_are_noted(load: Any, payload: Any):
    with pytest.raises(HistoryError):
        load(payload, problems=[])
    with pytest.raises(HistoryError):
        wire.load_request({"messages": [], "x": deep(2000)}, problems=[])


CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("message", "votes"),
    [
        ({"role": "user", "content": "hi"}, 1),
        ({"role": "system", "content": "hi"}, 1),
        ({"role": "user", "content": [{"type": "text", "text": "hi"}]}, 1),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x"}}]},
            1,
        ),
        ({"role": "assistant", "tool_calls": [CALL]}, 1),
        ({"role": "assistant", "content": None, "tool_calls": [CALL]}, 1),
        ({"role": "assistant", "content": "x", "tool_calls": None}, 1),
        ({"role": "tool", "tool_call_id": "1", "content": "x"}, 1),
        ({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}, 2),
        ({"role": "assistant", "tool_plan": "so"}, 3),
        (
            {
                "role": "assistant",
                "content": "x",
                "citations": [{"start": 0, "end": 1, "text": "x", "sources": []}],
            },
            3,
        ),
        (
            {
                "role": "tool",
                "tool_call_id": "1",
                "content": [{"type": "document", "document": {"data": "x"}}],
            },
            3,
        ),
        (
            {
                "role": "user",
                "content": [{"type": "new"}, {"type": "document", "document": {"data": "x"}}],
            },
            3,
        ),
        ({"role": "user", "content": [{"type": "new"}, {"type": "text", "text": "hi"}]}, 0),
        (
            {
                "role": "user",
                "content": [{"type": "document", "source": {"type": "url", "url": "https://x"}}],
            },
            0,
        ),
        (
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}],
            },
            0,
        ),
        ({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}, 0),
        ({"role": "assistant", "tool_calls": [{"name": "f", "args": {}}]}, 0),
        ({"role": "assistant", "tool_calls": "x"}, 0),
        ({"role": "user", "content": "x", "tool_call_id": "1"}, 0),
        ({"role": "user", "tool_calls": [CALL]}, 0),
        ({"role": "tool", "content": "x"}, 0),
        ({"role": "user", "content": "x", "images": []}, 0),
        ({"role": ["user"], "content": "x"}, 0),
        ({"role": "user", "content": [{"type": ["text"]}, 5]}, 0),
        ({"role": "assistant"}, 0),
        ({"role": "user", "parts": [{"text": "hi"}]}, 0),
        ({}, 0),
        ([], 0),
        ("hi", 0),
        (None, 0),
    ],
)
def test_how_surely_a_message_is_of_this_format(message: Any, votes: int):
    assert wire.votes(message) == votes


def test_all_that_is_written_could_be_of_this_format():
    entries = [
        entry for talk in NEUTRAL.values() for entry in wire.dump_messages(talk, target=HERE)
    ]
    assert {wire.votes(entry) for entry in entries} == {1}
