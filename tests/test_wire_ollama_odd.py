"""The ollama wire on JSON that is not what it should be: what leaves is a value or an error of ours, and can be dumped everywhere."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from dragoman import wires
from dragoman.errors import DecodeError, HistoryError
from dragoman.event import RunError
from dragoman.fold import fold, unfold
from dragoman.message import Message, Origin, ProviderPart, ToolCallPart, ToolResultPart
from dragoman.wires import embeddings
from dragoman.wires import ollama as wire
from dragoman.wires.ollama.content import Fields
from dragoman.wires.ollama.messages import outgoing

HERE = Origin("ollama", None, "qwen3")


def deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


def decode(*lines: bytes) -> list[Any]:
    decoder = wire.decoder()
    return [*decoder.feed(b"".join(line + b"\n" for line in lines)), *decoder.close()]


def test_depth_is_bounded_at_every_door():
    nested = b'{"message":{"content":"a"},"a":' + b"[" * 2000 + b"]" * 2000 + b"}"
    for lines in ([nested], [b'{"message":{"content":"a"}}', nested], [b"{", nested, b"}"]):
        events = decode(*lines)
        assert isinstance(events[-1], RunError) and isinstance(events[-1].error, DecodeError)
    (event,) = wire.load_response({"message": {"content": "a"}, "done": True, "a": deep(2000)})
    assert isinstance(event, RunError) and isinstance(event.error, DecodeError) and "deep" in event.error.message
    for load, given in (
        (wire.load_messages, [{"role": "user", "content": "a", "b": deep(2000)}]),
        (wire.load_request, {"messages": [], "b": deep(2000)}),
        (wire.load_request, {"prompt": "a", "context": deep(2000)}),
    ):
        with pytest.raises(HistoryError, match="deep"):
            load(given)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "a", "response": "x", "spelling": "y"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "f", "arguments": "x"}, "response": 1}],
        },
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"x": "\ud800"}}}]},
        {"role": "assistant", "content": "a", "tool_calls": [{"function": {"name": ["f"]}}], "thinking": 5},
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
        other.dump_messages(messages, target=HERE, losses=[])
        encoder = other.encoder()
        b"".join(map(encoder.feed, unfold([m.replace(role="model") for m in messages]))) + encoder.close()


@pytest.mark.parametrize(
    "odd",
    [
        {"tools": [{"type": 5, "function": {}}]},
        {"tools": [{"type": "", "a": 1}]},
        {"options": {"stop": [0], "temperature": True}},
        {"think": {}},
        {"format": ["json"]},
        {"stream": "x"},
        {"model": 5},
    ],
)
def test_odd_fields_of_a_request_come_back_as_they_were(odd: dict[str, Any]):
    body = {"model": "m", "messages": [{"role": "user", "content": "a"}], **odd}
    assert wire.dump_request(wire.load_request(body)) == body


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
    for target in (None, HERE):
        wire.dump_messages([message, message.replace(role="user")], target=target)
    whole = wire.dump_response(unfold([message]), model="m")
    assert whole["model"] == "m" and whole["done"] is True and whole["message"]["role"] == "assistant"
    encoder = wire.encoder()
    last = json.loads((b"".join(map(encoder.feed, unfold([message]))) + encoder.close()).splitlines()[-1])
    assert last["done"] is True and last["message"]["role"] == "assistant"


def test_an_image_that_is_no_text_is_lost():
    losses: list[Any] = []
    part = ProviderPart("image", {"ollama": {"data": 5}})
    assert wire.dump_messages([Message.user("a", part)], losses=losses) == [{"role": "user", "content": "a"}]
    assert [loss.what for loss in losses] == ["provider"]


def test_half_a_pair_of_surrogates_is_told_as_json():
    (result,) = wire.dump_messages([Message.user(ToolResultPart("a", "f", {"x": "\ud800"}))])
    assert json.loads(result["content"]) == {"x": "\ud800"}
    own = embeddings("ollama")
    assert own is not None
    with pytest.raises(DecodeError):
        own.load_response({"embeddings": [["\ud800"]]})


@pytest.mark.parametrize(
    "arguments", [{}, *({"arguments": given} for given in ("absent", "", None, "{}", {}, "[]", 5))]
)
def test_decision_27_calls_come_back_as_they_were_whatever_they_hold(arguments: dict[str, Any]):
    message = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", **arguments}}]}
    messages = wire.load_messages([message])
    assert wire.dump_messages(messages) == [message]
    (part,) = messages[0].tool_calls
    edited = messages[0].replace(
        content=(msgspec.structs.replace(part, arguments={"x": 1}, state="complete", raw=None),)
    )
    assert wire.dump_messages([edited])[0]["tool_calls"][0]["function"] == {"name": "f", "arguments": {"x": 1}}


def test_flags_are_no_counts():
    answer = {"message": {"content": "a"}, "done": True, "prompt_eval_count": True, "eval_count": False}
    assert fold(wire.load_response(answer))[0].usage is None


def test_a_message_of_many_pieces_costs_linear_time():
    """Pieces are collected in one list a field, not copied with each that comes."""
    fields = Fields(outgoing((), None, None, None), 0)
    fields.add(0, "tool_calls", 0)
    first = fields.dump("absent")["tool_calls"]
    for n in range(1, 50):
        fields.add(n, "tool_calls", n)
    assert fields.dump("absent")["tool_calls"] is first and len(first) == 50
    calls = [ToolCallPart(f"c{n}", "f") for n in range(50)]
    assert len(wire.dump_messages([Message.model(*calls)])[0]["tool_calls"]) == 50


def test_results_find_their_calls_in_any_order_and_each_call_once():
    calls = [{"id": f"c{n}", "function": {"name": f"f{n % 2}", "arguments": {}}} for n in range(4)]
    results = [{"role": "tool", "content": "x", **told} for told in (
        {"tool_call_id": "c2"}, {"tool_name": "f0"}, {"tool_name": "f0"}, {}, {"tool_name": "f1"}, {"tool_call_id": "c3"},
    )]  # fmt: skip
    _, answered = wire.load_messages([{"role": "assistant", "content": "", "tool_calls": calls}, *results])
    assert [part.id for part in answered.tool_results] == ["c2", "c0", "call-0", "c1", "c3", "c3"]
