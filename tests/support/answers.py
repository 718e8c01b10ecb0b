"""Providers' answers, as their own wires write them: a player's exchanges, streamed and whole."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from dragoman import Message, ToolCallPart, Usage, providers, unfold, wires
from dragoman.message import FinishReason
from dragoman.request import ModelRequest
from dragoman.transport import Exchange
from support.model import pieces

PROVIDERS = ("openai", "anthropic", "google", "openai-responses")
USED = Usage(input_tokens=3, output_tokens=2, total_tokens=5)
TIME = datetime(2027, 1, 15, 8, tzinfo=UTC)


def said(*content: object, usage: Usage = USED) -> Message:
    """A model's message, as it stands in an answer."""
    message = Message.model(*content)
    reason = FinishReason.tool_calls if message.tool_calls else FinishReason.stop
    return message.replace(id="m", finish_reason=reason, usage=usage)


def call(name: str, id: str = "call_1", **arguments: object) -> ToolCallPart:
    """A tool call."""
    return ToolCallPart(id, name, arguments)


def answer(provider: str, message: Message, *, stream: bool = True) -> Exchange:
    """A provider's answer that says a message."""
    wire = wires.get(providers.get(provider).wire)
    request = ModelRequest("model-1", stream=stream)
    envelope = wire.envelope(request, id="1", now=TIME)
    events = unfold([message])
    if not stream:
        body = json.dumps(wire.dump_response(events, **envelope)).encode()
        return Exchange(headers={"content-type": "application/json"}, body=body)
    encoder = wire.encoder(**envelope)
    body = b"".join([encoder.feed(event) for event in pieces(events, 5)]) + encoder.close()
    return Exchange(headers={"content-type": "text/event-stream"}, body=body, chunks=400)
