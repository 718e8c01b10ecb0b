"""What the anthropic wire keeps of a stream beside its text: further deltas, usage of the start, and what a retraction leaves."""

from __future__ import annotations

import json
from typing import Any

from dragoman.event import MessageDropped, MessageStarted, OpenText, PartDelta, PartFinished, PartStarted
from dragoman.fold import fold, unfold
from dragoman.message import Message, Role, TextPart, Usage
from dragoman.wires import anthropic as wire
from dragoman.wires.anthropic import decode as decoding

TIER = {
    "input_tokens": 3,
    "cache_read_input_tokens": 9,
    "cache_creation": {"ephemeral_5m_input_tokens": 0},
    "service_tier": "standard",
}


def sse(*events: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def decode(*events: Any) -> list[Any]:
    decoder = wire.decoder()
    return [*decoder.feed(sse(*events)), *decoder.close()]


def encode(events: Any) -> list[Any]:
    encoder = wire.encoder()
    written = b"".join(map(encoder.feed, events)) + encoder.close()
    return [json.loads(line[6:]) for line in written.splitlines() if line.startswith(b"data: ")]


def start(**usage: Any) -> dict[str, Any]:
    return {
        "type": "message_start",
        "message": {"id": "m", "model": "c", "content": [], "usage": {"output_tokens": 1, **usage}},
    }


def block(start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": 0, "content_block": start},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
    ]


END = [
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 7},
    },
    {"type": "message_stop"},
]
TEXT = block({"type": "text", "text": ""}, {"type": "text_delta", "text": "a"})


def test_usage_of_the_start_is_written_where_it_came():
    first, *_, last, _ = encode(decode(start(**TIER), *TEXT, *END))
    assert first["message"]["usage"] == {"output_tokens": 1, **TIER}
    assert last["usage"] == {"input_tokens": 3, "output_tokens": 7, "cache_read_input_tokens": 9}


def test_usage_of_a_stored_message_goes_out_once():
    events = decode(start(**TIER), *TEXT, *END)
    (message,) = fold(events)
    whole = wire.dump_response(events)
    assert whole["usage"] == {**TIER, "output_tokens": 7}
    assert message == fold(wire.load_response(whole))[0]
    first, *_, last, _ = encode(unfold([Message.from_json(message.to_json())]))
    assert first["message"]["usage"]["service_tier"] == "standard" and "service_tier" not in last["usage"]
    assert last["usage"]["input_tokens"] == 3


def test_further_fields_of_a_delta_are_kept_and_never_sent_back():
    thought = block(
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "", "estimated_tokens": 50},
        {"type": "thinking_delta", "thinking": "hm", "estimated_tokens": 80},
        {"type": "signature_delta", "signature": "s1"},
        {"type": "signature_delta", "signature": "s2"},
    )
    events = decode(start(), *thought, *END)
    (message,) = fold(events)
    assert message.thinking == "hm"
    assert wire.dump_messages([message])["messages"][0]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "s1s2"}
    ]
    told = [event["delta"] for event in encode(unfold([message])) if event["type"] == "content_block_delta"]
    assert told == [
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "thinking_delta", "thinking": "", "estimated_tokens": 80},
        {"type": "signature_delta", "signature": "s1s2"},
    ]
    assert fold(decode(*encode(unfold([message]))))[0].content == message.content


def test_a_stream_cut_in_a_block_keeps_its_further_deltas():
    cited = {"type": "citations_delta", "citation": {"title": "t"}}
    events = decode(start(), *block({"type": "text", "text": "a"}, cited, cited)[:-1])
    assert events[-1].error.partial.content == (TextPart("a", {"anthropic": {"citations": [{"title": "t"}] * 2}}),)


def test_further_deltas_cost_linear_time():
    """Each is looked at once, and what they grow to is copied once."""

    class Counted(list):
        copied = 0

        def __iter__(self):
            for entry in list.__iter__(self):
                Counted.copied += 1
                yield entry

    def cost(size: int) -> int:
        Counted.copied = 0
        grown = decoding.grown({"citations": Counted()}, [{"citations": Counted([n])} for n in range(size)])
        assert grown == {"citations": list(range(size))}
        return Counted.copied

    assert cost(2000) == 2 * cost(1000) == 2000


def opened(name: str, index: int, text: str) -> list[Any]:
    return [PartStarted(name, index, OpenText()), PartDelta(name, index, text)]


def test_what_is_retracted_ends_and_what_waited_of_it_is_never_told():
    void = [
        MessageStarted("a", Role.MODEL),
        *opened("a", 0, "half an answ"),
        *opened("a", 1, "waits"),
        PartFinished("a", 1, TextPart("waits")),
        MessageDropped("a"),
    ]
    whole = unfold([Message.model("whole").replace(id="b", usage=Usage(input_tokens=1, output_tokens=2))])
    told = encode([*void, *whole])
    assert [event["type"] for event in told] == [
        "message_start", "content_block_start", "content_block_delta", "content_block_stop",
        "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop",
    ]  # fmt: skip
    assert "waits" not in json.dumps(told)
    assert wire.dump_response([*void, *whole])["content"] == [{"type": "text", "text": "whole"}]
