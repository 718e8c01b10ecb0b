"""Helpers of the anthropic wire's tests: events of a stream by hand, conversations there and
back."""

from __future__ import annotations

import json
from typing import Any

from dragoman.event import RunError
from dragoman.fold import fold
from dragoman.message import Message, Origin, ThinkingPart
from dragoman.request import ModelRequest
from dragoman.wires import anthropic as wire

START = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [],
        "stop_reason": None,
        "usage": {
            "input_tokens": 10,
            "cache_read_input_tokens": 3,
            "cache_creation_input_tokens": 4,
            "output_tokens": 1,
        },
    },
}
STOP = {"type": "message_stop"}


def sse(*events):
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


def block(index, start, *deltas, stop=True):
    events = [{"type": "content_block_start", "index": index, "content_block": start}]
    events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return [*events, {"type": "content_block_stop", "index": index}] if stop else events


def end(reason="end_turn", **usage):
    return {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": 7, **usage},
    }


def text(index, *texts):
    return block(
        index, {"type": "text", "text": ""}, *[{"type": "text_delta", "text": t} for t in texts]
    )


def call(index, *pieces, kind="tool_use", **fields):
    start = {"type": kind, "id": f"toolu_{index}", "name": "f", "input": {}, **fields}
    return block(index, start, *[{"type": "input_json_delta", "partial_json": p} for p in pieces])


def decode(*data, origin=None, new_id=None):
    decoder = wire.decoder(origin=origin, new_id=new_id)
    return [event for chunk in data for event in decoder.feed(chunk)] + decoder.close()


def message(*events):
    decoded = decode(sse(START, *events))
    assert not [event for event in decoded if isinstance(event, RunError)]
    (folded,) = fold(decoded)
    return folded


def encode(events, **envelope):
    encoder = wire.encoder(**envelope)
    return b"".join(map(encoder.feed, events)) + encoder.close()


HERE = Origin("anthropic", "https://api.anthropic.com/v1", "claude-sonnet-4-0")
SIGNED = ThinkingPart("hm", native={"anthropic": {"signature": "c2lnbmVk"}})


def dump(*messages, **where):
    return wire.dump_messages(messages, **where)["messages"]


def losses(*messages, **where):
    out = []
    wire.dump_messages(messages, losses=out, **where)
    return [(loss.message, loss.part, loss.what) for loss in out]


def there_and_back(*entries, system=None):
    payload = {**({"system": system} if system is not None else {}), "messages": list(entries)}
    messages = [Message.from_json(m.to_json()) for m in wire.load_messages(payload)]
    assert wire.dump_messages(messages) == payload
    return messages


def read_back(role, *blocks):
    """The pieces that blocks are read as, after they were seen to be written back as they came."""
    return there_and_back({"role": role, "content": list(blocks)})[-1].content


ASKED = [{"role": "user", "content": "Hi"}]
HI = (Message.user("Hi"),)


def dump_request(**fields):
    quirks = fields.pop("quirks", None)
    return wire.dump_request(
        ModelRequest(fields.pop("model", "claude-sonnet-4-0"), HI, **fields), quirks=quirks
    )


def load_request(**fields):
    """A body with these fields, read after it was seen to be written back as it came."""
    body = {"model": "claude-sonnet-4-0", "max_tokens": 99, "messages": ASKED, **fields}
    request = wire.load_request(body)
    assert wire.dump_request(request) == body
    return request


def decode_events(*events):
    return decode(sse(*events))


def encode_events(events):
    return [
        json.loads(line[6:]) for line in encode(events).splitlines() if line.startswith(b"data: ")
    ]


def start_of(**usage):
    """The start of a message with this usage."""
    message = {"id": "m", "model": "c", "content": [], "usage": {"output_tokens": 1, **usage}}
    return {"type": "message_start", "message": message}


END = [end(), STOP]
TEXT = text(0, "a")


def deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


def payload_of(*content: Any, role: str = "user") -> dict[str, Any]:
    return {"messages": [{"role": role, "content": list(content)}]}
