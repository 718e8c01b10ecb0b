"""The anthropic wire on JSON that is not what it should be: what leaves is a value or an error of ours, and can be dumped everywhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import wires
from dragoman.errors import DecodeError, DragomanError, HistoryError
from dragoman.event import RunError
from dragoman.fold import fold, unfold
from dragoman.message import Message, Origin, ProviderPart, ToolResultPart
from dragoman.wires import anthropic as wire

HERE = Origin("anthropic", None, "claude-opus-4-6")


def deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


def said(*content: Any, role: str = "user") -> dict[str, Any]:
    return {"messages": [{"role": role, "content": list(content)}]}


def sse(*events: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def decode(data: bytes) -> list[Any]:
    decoder = wire.decoder()
    return [*decoder.feed(data), *decoder.close()]


@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize(
    "block",
    [
        {"text": "hi"},
        {},
        {"type": None},
        {"type": ["text"]},
        {"type": "text", "text": 0},
        {"type": "text"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "\ud800"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "\ud800"}},
        {"type": "tool_result", "tool_use_id": "a", "content": {"spelling": "\ud800"}},
        {"type": "tool_use", "id": ["a"], "name": "f", "input": {}, "spelling": "x", "response": 1},
    ],
)
def test_decision_27_odd_blocks_come_back_as_they_were(block: dict[str, Any], role: str):
    payload = said({"type": "text", "text": "a"}, block, role=role)
    messages = wire.load_messages(payload)
    assert wire.dump_messages(messages)["messages"] == payload["messages"]
    for name in wires.names():
        other = wires.get(name)
        other.dump_messages(messages, target=HERE, losses=[])
        encoder = other.encoder()
        b"".join(map(encoder.feed, unfold([m.replace(role="model") for m in messages]))) + encoder.close()


@pytest.mark.parametrize(
    ("role", "block"),
    [
        ("user", {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "image"}, 1]}),
        ("assistant", {"type": "tool_use", "id": "a", "name": "f", "input": "\ud800", "spelling": "x", "response": 1}),
    ],
)
def test_decision_27_odd_calls_and_results_come_back_as_they_were(role: str, block: dict[str, Any]):
    payload = said(block, role=role)
    assert wire.dump_messages(wire.load_messages(payload)) == payload


@pytest.mark.parametrize(
    "odd",
    [
        {"model": {"a": 1}},
        {"output_config": "x"},
        {"output_config": "x", "thinking": {"type": "adaptive"}},
        {"context_management": [1]},
        {"context_management": {"edits": "x"}},
        {"max_tokens": True},
        {"stop_sequences": [0]},
        {"thinking": {"type": "enabled", "budget_tokens": True}},
        {"tool_choice": {"type": ["tool"]}},
        {"cache_control": [1]},
        {"tools": [{"name": "f", "input_schema": {"type": ["x"]}, "spelling": "x"}]},
    ],
)
def test_odd_fields_of_a_request_come_back_as_they_were(odd: dict[str, Any]):
    body = {"model": "claude-opus-4-6", "max_tokens": 5, **said({"type": "text", "text": "a"}), **odd}
    body["messages"] = [{"role": "user", "content": "a"}]
    request = wire.load_request(body)
    assert wire.dump_request(request) | {"tool_choice": 0} == body | {"tool_choice": 0}
    assert wire.dump_http(request).body["model" if "model" not in odd else "max_tokens"]


@pytest.mark.parametrize("load", [wire.load_messages, wire.load_request])
@pytest.mark.parametrize("payload", [said(deep(2000)), {**said("x"), "a": deep(2000)}, [], None, 5])
def test_what_is_no_conversation_or_nests_too_deep_is_refused(load: Any, payload: Any):
    with pytest.raises(HistoryError):
        load(payload)


@pytest.mark.parametrize(
    "piece",
    [
        b'{"a":' + b"[" * 2000 + b"]" * 2000 + b"}",
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"},"a":'
        + b"[" * 2000
        + b"]" * 2000
        + b"}",
    ],
)
def test_d6_depth_is_bounded_in_a_stream(piece: bytes):
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    events = decode(sse({"type": "message_start", "message": {}}, start) + b"data: " + piece + b"\n\n")
    assert isinstance(events[-1], RunError) and isinstance(events[-1].error, DecodeError)


def test_depth_is_bounded_in_a_whole_answer():
    (event,) = wire.load_response({"type": "message", "content": deep(2000)})
    assert isinstance(event, RunError) and isinstance(event.error, DecodeError) and "deep" in event.error.message


def test_half_a_pair_of_surrogates_passes_through_a_whole_answer():
    answer = {"type": "message", "id": "\ud800", "content": [{"type": "text", "text": "a"}], "stop_reason": "end_turn"}
    (message,) = fold(wire.load_response(answer)) or [None]
    assert message is None or message.text == "a"


@pytest.mark.parametrize(
    "own", ["x", 5, [], {"type": 5}, {"citations": 5}, {"citations": "ab", "signature": 5}, {"content": 5}]
)
@pytest.mark.parametrize(
    "notes", ["x", {"spelling": 5}, {"spelling": {"content": {}}, "response": {"usage": 5, "delta": 1, "type": 0}}]
)
@pytest.mark.parametrize(
    "piece",
    [
        {"type": "text", "text": "a"},
        {"type": "thinking", "text": "a"},
        {"type": "tool_call", "id": "a", "name": "f"},
        {"type": "tool_call", "id": "a", "name": "f", "run_by": "provider"},
        {"type": "tool_result", "id": "a", "name": "f", "result": 1, "run_by": "provider"},
        {"type": "provider", "kind": "compaction"},
        {"type": "data", "data": "YQ==", "mime_type": "image/png"},
    ],
)
def test_d8_a_stored_native_of_any_shape_can_be_dumped(piece: dict[str, Any], notes: Any, own: Any):
    native = {"anthropic": own, "anthropic:notes": notes}
    stored = {"v": 2, "role": "model", "content": [{**piece, "native": native}, piece], "native": native}
    message = Message.from_json(json.dumps(stored))
    for target in (None, HERE):
        wire.dump_messages([Message.user("a"), message], target=target)
    wire.dump_response(unfold([message]))
    encoder = wire.encoder()
    written = b"".join(map(encoder.feed, unfold([message]))) + encoder.close()
    assert b"message_stop" in written


def test_notes_without_fields_are_another_providers_block():
    part = ProviderPart("compaction", {"anthropic:notes": {"spelling": {"a": 1}}})
    result = ToolResultPart("a", "f", 1, run_by="provider", native={"anthropic:notes": {"spelling": {"a": 1}}})
    losses: list[Any] = []
    assert wire.dump_messages([Message.model(part, result)], losses=losses) == {"messages": []}
    assert [loss.why for loss in losses][:2] == ["it is another provider's"] * 2


@pytest.mark.parametrize("file_id", ["", "file_1"])
def test_a_file_that_the_provider_holds_stays_one_in_a_response(file_id: str):
    block = {"type": "container_upload", "file_id": file_id, "caller": "x"}
    events = wire.load_response({"type": "message", "content": [block, {"type": "text", "text": "a"}]})
    assert wire.dump_response(events)["content"] == [block, {"type": "text", "text": "a"}]
    encoder = wire.encoder()
    streamed = b"".join(map(encoder.feed, events)) + encoder.close()
    assert wire.dump_response(decode(streamed))["content"] == [block, {"type": "text", "text": "a"}]


def test_a_conversation_that_cannot_be_read_is_a_bad_request():
    status, body = wire.dump_error(HistoryError("no messages"))
    assert (status, body["error"]["type"]) == (400, "invalid_request_error")
    assert wire.dump_error(DragomanError("x"))[0] == 500
