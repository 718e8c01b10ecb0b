"""Helpers of the cohere wire's tests: events of a stream by hand."""

from __future__ import annotations

import json
from typing import Any

from dragoman.message import Origin
from dragoman.wires import cohere as wire

HERE = Origin("cohere", "https://api.cohere.com/v2", "command-a-03-2025")
PLAN = {"cohere:notes": {"spelling": {"field": "tool_plan"}}}


def stream(*events: Any) -> bytes:
    written = [
        event if isinstance(event, bytes) else json.dumps(event).encode() for event in events
    ]
    return b"".join(b"data: " + event + b"\n\n" for event in written)


def decode(data: bytes, new_id: Any = None) -> list[Any]:
    decoder = wire.decoder(new_id=new_id)
    return [*decoder.feed(data), *decoder.close()]


START = {
    "type": "message-start",
    "id": "r1",
    "delta": {"message": {"role": "assistant", "content": []}},
}


def content(index, kind="content-delta", **block):
    return {"type": kind, "index": index, "delta": {"message": {"content": block}}}


def call(index, kind="tool-call-delta", **fields):
    return {"type": kind, "index": index, "delta": {"message": {"tool_calls": fields}}}


def opened(index, name="f", arguments="", call_id="c1"):
    function = {"name": name, "arguments": arguments}
    return call(index, "tool-call-start", id=call_id, type="function", function=function)


def end(reason="COMPLETE", **delta):
    return {"type": "message-end", "delta": {"finish_reason": reason, **delta}}


def encode(events: Any) -> list[Any]:
    encoder = wire.encoder()
    written = b"".join(map(encoder.feed, events)) + encoder.close()
    return [json.loads(line[6:]) for line in written.splitlines() if line.startswith(b"data: {")]


ANNOTATED = {
    "type": "message-start",
    "id": "r",
    "delta": {"message": {"role": "assistant", "content": [], "annotations": [1]}},
}


def piece(text: str, **beside: Any) -> dict[str, Any]:
    return {
        "type": "content-delta",
        "index": 0,
        "delta": {"message": {"content": {"text": text}}},
        **beside,
    }


END = {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}}


def deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value
