"""Writes events as a response, streamed or whole, as the official client reads it.

Parts may be open side by side: each has a number on the wire, and blocks and calls are counted
apart. Only the plan has none. A block that is neither text nor thinking is sent whole when it ends.
Citations wait for the end of the message, because a client needs the text that they cite first.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from dragoman.codec.citations import CitedText
from dragoman.codec.framing import frame_server_event
from dragoman.codec.json_values import if_list, merge_wire_fields, read_extra_fields
from dragoman.codec.response_encoder import NO_OBJECTS, Objects, ResponseEncoder, frame_typed_event
from dragoman.codec.serving import SSE_PING
from dragoman.codec.wire_operations import ResponseFormat
from dragoman.errors import DragomanError
from dragoman.event import (
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
)
from dragoman.fold import arguments_text
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import (
    Content,
    FinishReason,
    Message,
    Origin,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    Usage,
)
from dragoman.request import ModelRequest
from dragoman.wires.cohere.citations import dump_citations
from dragoman.wires.cohere.content import PLAN, dump_block, is_plan
from dragoman.wires.cohere.errors import dump_error
from dragoman.wires.cohere.quirks import OWN
from dragoman.wires.cohere.tools import dump_call
from dragoman.wires.cohere.usage import dump_finish, dump_usage

__all__ = ["Encoder", "dump_response", "encoder", "envelope", "ping", "stream_type"]

stream_type = "text/event-stream"
"""The media type of a streamed response."""
ping = SSE_PING
"""Bytes that keep a stream open."""


def envelope(request: ModelRequest | None, *, id: str, now: datetime) -> Json:  # noqa: A002, ARG001 the protocol's
    """Returns the arguments of `encoder` and `dump_response` for an answer to `request`."""
    return {"id": id}


def _dump(message: Message, envelope: JsonMap) -> Json:
    """Writes a whole response of Cohere's API."""
    plan, blocks, calls = "", list[Any](), list[Json]()
    for piece in message.content:
        if is_plan(piece):
            plan += piece.text
        elif isinstance(piece, ToolCallPart):
            if piece.run_by != "provider":
                calls.append(_call(piece, _whole_text(piece)))
        elif (block := dump_block(piece)[0]) is not None:
            blocks.append(block)
    body: Json = {"role": "assistant"}
    for field, value in ((PLAN, plan), ("content", blocks), ("tool_calls", calls)):
        if value:
            body[field] = value
    if citations := dump_citations(CitedText.of(message.content)):
        body["citations"] = OWN.fields(message.native).get("citations") or citations
    own_response = read_extra_fields(OWN.response(message.native), "id", "message")
    return {
        "id": _choose_id(envelope, message.origin, message.id),
        "message": merge_wire_fields(body, OWN.fields(message.native)),
        **_dump_finish(message.finish_reason, message.usage, own_response),
    }


def _choose_id(envelope: JsonMap, origin: Origin | None, message_id: str | None) -> str:
    """Returns the id of a response: the envelope's, the provider's or the message's."""
    provider_id = origin.response_id if origin else None
    return envelope.get("id") or provider_id or message_id or "message-0"


class Encoder(ResponseEncoder):
    """Writes the events of the model's messages as Server-Sent Events."""

    DONE = frame_server_event(b"[DONE]")

    def __init__(self, envelope: JsonMap) -> None:
        """Creates the encoder. `envelope`: the Cohere response's `id`, which replaces that of the
        events."""
        super().__init__(OWN, envelope)
        # Open parts, and their number on the wire.
        self._open: dict[tuple[str, int], tuple[Content, int | None]] = {}
        # Open parts of which a delta was sent.
        self._sent: set[tuple[str, int]] = set()
        # Open parts that are sent when they end.
        self._whole: set[tuple[str, int]] = set()
        self._numbers = {"content": 0, "call": 0}
        # Message id → its citations.
        self._citations: dict[str, list[Any]] = {}
        self._cited = CitedText()

    def message_started(self, event: MessageStarted, *, first: bool) -> Objects:
        """Returns Cohere's event `message-start` for the first message."""
        self._cite(event)
        if not first:
            return NO_OBJECTS
        state = self._state
        message = {"role": "assistant", "content": (), PLAN: "", "tool_calls": (), "citations": ()}
        delta = {"message": merge_wire_fields(message, OWN.fields(event.native))}
        response_id = _choose_id(self._envelope, state.origin, state.id)
        return [_make_event("message-start", id=response_id, delta=delta)]

    def part_started(self, event: PartStarted) -> Objects:
        """Writes the start of a part into the Cohere stream. A block that is neither text nor
        thinking is sent whole at its end."""
        key, part = (event.message_id, event.index), event.part
        if is_plan(part):
            self._open[key] = (part, None)
            return NO_OBJECTS
        if not isinstance(part, (TextPart, ThinkingPart, ToolCallPart)):
            self._whole.add(key)
            return NO_OBJECTS
        if isinstance(part, ToolCallPart) and part.run_by == "provider":
            return NO_OBJECTS
        # Blocks and calls are counted apart, as clients expect.
        number = self._next_number("call" if isinstance(part, ToolCallPart) else "content")
        self._open[key] = (part, number)
        if isinstance(part, ToolCallPart):
            return [
                _make_event(
                    "tool-call-start",
                    index=number,
                    delta={"message": {"tool_calls": _call(part, "")}},
                )
            ]
        block = {
            **_block(part, ""),
            **OWN.fields(part.native),
            "type": "text" if isinstance(part, TextPart) else "thinking",
        }
        return [_make_event("content-start", index=number, delta={"message": {"content": block}})]

    def delta(self, event: PartDelta) -> Objects:
        """Returns Cohere's event for a delta of an open part."""
        key = (event.message_id, event.index)
        if (opened := self._open.get(key)) is None:
            return NO_OBJECTS
        self._sent.add(key)
        return [_dump_delta(*opened, str(event.delta))]

    def part_finished(self, event: PartFinished) -> Objects:
        """Returns Cohere's events that end a part, or those of a whole block."""
        key, part = (event.message_id, event.index), event.part
        if not is_plan(part):
            self._cited.add(part)
        if key in self._whole:
            self._whole.remove(key)
            block, _ = dump_block(part)
            if block is None:
                return NO_OBJECTS
            return self._dump_whole_block(block)
        if key not in self._open:
            return NO_OBJECTS
        opened, number = self._open.pop(key)
        end = _dump_end(opened, number)
        if key not in self._sent and (text := _whole_text(part)):
            # No delta came, so the whole text is one.
            return [_dump_delta(opened, number, text), *end]
        return end

    def message_finished(self, event: MessageFinished) -> Objects:
        self._cite(event)
        return NO_OBJECTS

    def message_dropped(self, event: MessageDropped) -> Objects:
        """Implements `ResponseEncoder.message_dropped` for Cohere. Closes what is open, since the
        format cannot take anything back."""
        dropped = event.message_id
        self._citations.pop(dropped, None)
        self._whole = {key for key in self._whole if key[0] != dropped}
        ends: list[Json] = []
        for key in list(self._open):
            if key[0] == dropped:
                ends += _dump_end(*self._open.pop(key))
        return ends

    def error(self, error: DragomanError) -> Objects:
        delta = {"finish_reason": "ERROR", "error": dump_error(error).body["message"]}
        return [_make_event("message-end", delta=delta)]

    def end(self) -> Objects:
        """Returns Cohere's citations and the event `message-end`."""
        state = self._state
        events: list[Json] = []
        all_citations = [entry for entries in self._citations.values() for entry in entries]
        all_citations = all_citations or dump_citations(self._cited)
        for number, citation in enumerate(all_citations):
            delta = {"message": {"citations": citation}}
            events.append(_make_event("citation-start", index=number, delta=delta))
            events.append(_make_event("citation-end", index=number))
        finish = _dump_finish(state.reason, state.usage, state.envelope)
        return [*events, _make_event("message-end", delta=finish)]

    def frame(self, data: JsonMap) -> bytes:
        return frame_typed_event(data)

    def _cite(self, event: MessageStarted | MessageFinished) -> None:
        """Collects the citations of a message."""
        citations = self._citations.setdefault(event.message_id, [])
        citations += if_list(OWN.fields(event.native).get("citations"))

    def _dump_whole_block(self, block: JsonMap) -> Objects:
        """Writes a Cohere block that comes in one piece."""
        number = self._next_number("content")
        delta = {"message": {"content": block}}
        start = _make_event("content-start", index=number, delta=delta)
        return [start, _make_event("content-end", index=number)]

    def _next_number(self, counter: str) -> int:
        """Returns the number of the next block, or of the next call."""
        self._numbers[counter] += 1
        return self._numbers[counter] - 1


_RESPONSES = ResponseFormat(Encoder, _dump, dump_error)
encoder, dump_response = _RESPONSES.encoder, _RESPONSES.dump_response


def _make_event(event_type: str, **fields: Any) -> Json:
    return {"type": event_type, **fields}


def _dump_delta(part: Content, number: int | None, text: str) -> Json:
    """Writes the Cohere event for more of an open part. The plan has no number."""
    if number is None:
        return {"type": "tool-plan-delta", "delta": {"message": {PLAN: text}}}
    if isinstance(part, ToolCallPart):
        message = {"tool_calls": {"function": {"arguments": text}}}
        return {"type": "tool-call-delta", "index": number, "delta": {"message": message}}
    message = {"content": _block(part, text)}
    return {"type": "content-delta", "index": number, "delta": {"message": message}}


def _dump_end(part: Content, number: int | None) -> list[Json]:
    """Writes the Cohere event for the end of a part. The plan has none."""
    if number is None:
        return []
    event_type = "tool-call-end" if isinstance(part, ToolCallPart) else "content-end"
    return [_make_event(event_type, index=number)]


def _whole_text(piece: Content) -> str:
    """Returns the text that the Cohere deltas of a part add up to."""
    if isinstance(piece, (TextPart, ThinkingPart)):
        return piece.text
    if not isinstance(piece, ToolCallPart):
        return ""
    if piece.state == "complete":
        return arguments_text(piece)
    return piece.raw or ""


def _block(part: Content, text: str) -> dict[str, str]:
    if isinstance(part, ThinkingPart):
        return {"thinking": text}
    return {"text": text}


def _call(call: ToolCallPart, text: str) -> Json:
    block = dump_call(call, call.id, call.name)
    return {**block, "function": {**block["function"], "arguments": text}}


def _dump_finish(reason: FinishReason | None, usage: Usage | None, response: JsonMap) -> Json:
    """Writes the fields that end a Cohere response. `response`: its fields beyond the message's."""
    end: Json = {"finish_reason": dump_finish(reason, response.get("finish_reason"))}
    if counts := dump_usage(usage, response.get("usage", {})):
        end["usage"] = counts
    return {**end, **read_extra_fields(response, "finish_reason", "usage")}
