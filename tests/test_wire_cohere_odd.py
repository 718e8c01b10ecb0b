"""The cohere wire on JSON that is not what it should be: what leaves is a value or an error of ours, and can be dumped everywhere."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from dragoman import wires
from dragoman.errors import DecodeError, HistoryError, InvalidRequestError
from dragoman.event import RunError
from dragoman.fold import fold, unfold
from dragoman.message import FilePart, Message, Origin, ToolResultPart
from dragoman.wires import cohere as wire
from dragoman.wires import embeddings

HERE = Origin("cohere", None, "command-a")


def deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


def decode(*events: Any) -> list[Any]:
    decoder = wire.decoder()
    data = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    return [*decoder.feed(data), *decoder.close()]


START = {"type": "message-start", "id": "r", "delta": {"message": {"role": "assistant"}}}
OPENED = {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": "a"}}}}


@pytest.mark.parametrize("index", [{}, [0], None, 1.5, "x"])
@pytest.mark.parametrize(
    "kind", ["content-end", "content-delta", "tool-call-start", "tool-call-delta", "tool-call-end"]
)
def test_d6_an_index_of_any_kind_makes_no_decoder_raise(kind: str, index: Any):
    message = {
        "content": {"type": "text", "text": "b"},
        "tool_calls": {"id": "c", "function": {"name": "f", "arguments": "{}"}},
    }
    end = {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}}
    events = decode(START, OPENED, {"type": kind, "index": index, "delta": {"message": message}}, end)
    assert type(events[-1]).__name__ in ("RunError", "MessageFinished")


def test_the_end_of_a_block_without_a_number_ends_the_first():
    events = decode(START, OPENED, {"type": "content-end"})
    assert [type(event).__name__ for event in events[:4]] == [
        "MessageStarted",
        "PartStarted",
        "PartDelta",
        "PartFinished",
    ]


def test_depth_is_bounded_at_every_door():
    decoder = wire.decoder()
    events = decoder.feed(b'data: {"type":"content-start","a":' + b"[" * 2000 + b"]" * 2000 + b"}\n\n")
    assert isinstance(events[-1], RunError) and isinstance(events[-1].error, DecodeError)
    (event,) = wire.load_response({"message": {"content": deep(2000)}})
    assert isinstance(event, RunError) and isinstance(event.error, DecodeError) and "deep" in event.error.message
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
        {"role": "assistant", "content": [{"type": "text", "text": "a", "spelling": 1, "response": 2}]},
        {"role": "assistant", "tool_plan": 5, "tool_calls": [{"id": 5}]},
        {
            "role": "assistant",
            "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {"x": "\ud800"}}, "spelling": "x"}],
        },
        {"role": "user", "content": [{"type": "image_url", "image_url": "x"}, {"type": ["text"]}, {}]},
        {"role": "tool", "tool_call_id": ["a"], "content": {"a": "\ud800"}},
        {"role": "tool", "tool_call_id": "a", "content": [1, {"type": "document", "document": [{}]}]},
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


@pytest.mark.parametrize("own", ["x", 5, {"citations": 5}, {"citations": "ab", "id": 5, "message": 5, "type": 0}])
@pytest.mark.parametrize(
    "notes",
    [
        "x",
        {"spelling": 5},
        {"spelling": {"type": {}, "content": "document"}, "response": {"usage": [5], "id": 1, "message": 2}},
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


def test_a_file_of_a_provider_is_no_image_whatever_a_note_says():
    part = FilePart("f", native={"cohere:notes": {"spelling": {"type": "image_url"}}})
    assert wire.dump_messages([Message.user(part)]) == [{"role": "user", "content": "[media: file]"}]


def test_half_a_pair_of_surrogates_is_told_as_json():
    (result,) = wire.dump_messages([Message.user(ToolResultPart("a", "f", {"x": "\ud800"}))])
    assert json.loads(result["content"]) == {"x": "\ud800"}
    with pytest.raises(DecodeError):
        own = embeddings("cohere")
        assert own is not None
        own.load_response({"embeddings": {"float": [["\ud800"]]}})


@pytest.mark.parametrize("body", [0, None, [], {"texts": 5}])
def test_what_is_no_embeddings_request_is_refused(body: Any):
    own = embeddings("cohere")
    assert own is not None
    with pytest.raises(InvalidRequestError):
        own.load_request(body)


def test_a_purpose_that_nests_too_deep_is_refused():
    own = embeddings("cohere")
    assert own is not None
    with pytest.raises(InvalidRequestError, match="deep"):
        own.load_request({"texts": ["a"], "input_type": deep(5000)})
    assert own.load_request({"texts": ["a"], "input_type": ["search_query"]}).purpose is None


@pytest.mark.parametrize("type_", [{}, {"type": "function"}, {"type": "absent"}, {"type": None}, {"type": "custom"}])
@pytest.mark.parametrize(
    "arguments", [{}, *({"arguments": given} for given in ("absent", "", None, "{}", " {}", "[]", 5))]
)
def test_decision_27_calls_come_back_as_they_were_whatever_they_hold(type_: dict[str, Any], arguments: dict[str, Any]):
    call = {"id": "c", **type_, "function": {"name": "f", **arguments}}
    message = {"role": "assistant", "tool_calls": [call]}
    messages = wire.load_messages([message])
    assert wire.dump_messages(messages) == [message]
    (part,) = messages[0].tool_calls
    edited = messages[0].replace(
        content=(msgspec.structs.replace(part, arguments={"x": 1}, state="complete", raw=None),)
    )
    assert wire.dump_messages([edited])[0]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"x":1}'}


def test_flags_are_no_counts():
    answer = {"message": {"content": []}, "finish_reason": "COMPLETE", "usage": {"tokens": {"input_tokens": True}}}
    assert fold(wire.load_response(answer))[0].usage is None
