"""What the cohere wire keeps of a stream beside its text: log probabilities, further fields, and what a retraction leaves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.event import MessageDropped, MessageFinished, MessageStarted, OpenText, PartDelta, PartStarted
from dragoman.fold import fold, unfold
from dragoman.message import Message, Role, ToolCallPart, Usage
from dragoman.wires import cohere as wire
from dragoman.wires.cohere.quirks import OWN


def decode(data: bytes) -> list[Any]:
    decoder = wire.decoder()
    return [*decoder.feed(data), *decoder.close()]


def stream(*events: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def encode(events: Any) -> list[Any]:
    encoder = wire.encoder()
    written = b"".join(map(encoder.feed, events)) + encoder.close()
    return [json.loads(line[6:]) for line in written.splitlines() if line.startswith(b"data: {")]


START = {
    "type": "message-start",
    "id": "r",
    "delta": {"message": {"role": "assistant", "content": [], "annotations": [1]}},
}


def piece(text: str, **beside: Any) -> dict[str, Any]:
    return {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": text}}}, **beside}


END = {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}}


def test_log_probabilities_beside_the_deltas_are_kept_in_order():
    pieces = [piece(str(n), logprobs={"text": str(n), "logprobs": [-n]}) for n in range(4)]
    (message,) = fold(decode(stream(START, *pieces, END)))
    assert message.text == "0123"
    assert [entry["text"] for entry in OWN.response(message.native)["logprobs"]] == list("0123")
    again = fold(decode(stream(*encode(unfold([message])))))[0]
    assert OWN.response(again.native)["logprobs"] == OWN.response(message.native)["logprobs"]
    assert wire.dump_response(unfold([message]))["logprobs"] == OWN.response(message.native)["logprobs"]


def test_log_probabilities_cost_linear_time(monkeypatch: pytest.MonkeyPatch):
    """The list of those so far is not copied with each that comes: it stays the same list."""
    decoder = wire.decoder()
    decoder.feed(stream(START, piece("a", logprobs={"n": 0})))
    (so_far,) = [value for value in vars(decoder).values() if isinstance(value, dict) and "logprobs" in value]
    first = so_far["logprobs"]
    decoder.feed(stream(*(piece("a", logprobs={"n": n}) for n in range(1, 50))))
    assert so_far["logprobs"] is first and len(first) == 50


def test_further_fields_of_a_message_go_out_live_and_from_storage():
    events = decode(stream(START, piece("a"), END))
    (message,) = fold(events)
    for told in (encode(events), encode(unfold([Message.from_json(message.to_json())]))):
        assert told[0]["delta"]["message"]["annotations"] == [1]
        assert fold(decode(stream(*told)))[0].native == message.native


def test_what_is_retracted_ends_and_leaves_no_citations():
    void = [
        MessageStarted("a", Role.MODEL),
        PartStarted("a", 0, OpenText()),
        PartDelta("a", 0, "half an answ"),
        PartStarted("a", 1, ToolCallPart("c", "f")),
        PartDelta("a", 1, '{"x'),
        MessageFinished(
            "a", usage=Usage(input_tokens=1, output_tokens=1), native={"cohere": {"citations": [{"n": 1}]}}
        ),
        MessageDropped("a"),
    ]
    whole = unfold([Message.model("whole").replace(id="b")])
    told = encode([*void, *whole])
    assert [(event["type"], event.get("index")) for event in told] == [
        ("message-start", None), ("content-start", 0), ("content-delta", 0), ("tool-call-start", 0), ("tool-call-delta", 0),
        ("content-end", 0), ("tool-call-end", 0), ("content-start", 1), ("content-delta", 1), ("content-end", 1),
        ("message-end", None),
    ]  # fmt: skip
    assert wire.dump_response([*void, *whole])["message"] == {
        "role": "assistant",
        "content": [{"type": "text", "text": "whole"}],
    }
