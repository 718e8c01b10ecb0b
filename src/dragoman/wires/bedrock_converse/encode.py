"""Writes events as a response, streamed or whole, as AWS's clients read it.

Each part is a block with an index of its own, which it gets with its first event. Texts and
reasoning begin with their first delta; calls, images and results have an event for their start.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from dragoman import json_bytes
from dragoman.codec.binary_frames import STREAM_TYPE, frame_binary_event
from dragoman.codec.json_values import if_list, if_object, pick, read_extra_fields
from dragoman.codec.response_encoder import NO_OBJECTS, Objects, ResponseEncoder
from dragoman.codec.wire_operations import ResponseFormat
from dragoman.errors import DragomanError
from dragoman.event import MessageDropped, MessageStarted, PartDelta, PartFinished, PartStarted
from dragoman.fold import arguments_text
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import (
    Content,
    Message,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.request import ModelRequest
from dragoman.wires.bedrock_converse.content import CITED, REASONING, dump_block
from dragoman.wires.bedrock_converse.errors import describe_error, dump_error
from dragoman.wires.bedrock_converse.quirks import OWN
from dragoman.wires.bedrock_converse.tools import CALL, RESULT, dump_call, dump_result
from dragoman.wires.bedrock_converse.usage import dump_finish, dump_usage

__all__ = ["Encoder", "dump_response", "encoder", "envelope", "ping", "stream_type"]

stream_type = STREAM_TYPE
"""The media type of a streamed response."""
ping = b""
"""The format has no bytes that keep a stream open."""

_AT_STOP = "additionalModelResponseFields"
_AT_START = ("toolUseId", "name", "type", "status", "format")
"""Fields of a call, a result or an image that are sent when it begins."""
_Key = tuple[str, int]


def envelope(request: ModelRequest | None, *, id: str, now: datetime) -> Json:  # noqa: A002, ARG001 the protocol's
    """Returns no fields: a Converse answer has neither an id nor a model."""
    return {}


def _dump(message: Message, envelope: JsonMap) -> Json:  # noqa: ARG001 the response has no such fields
    """Writes a whole response of the Converse API."""
    blocks = [block for piece in message.content if (block := _dump_piece(piece)) is not None]
    response = OWN.response(message.native)
    return {
        "output": {"message": {"role": "assistant", "content": blocks}},
        "stopReason": dump_finish(message.finish_reason, response.get("stopReason")),
        "usage": dump_usage(message.usage, if_object(response.get("usage"))),
        "metrics": {"latencyMs": 0},
        **read_extra_fields(response, "output", "stopReason", "usage"),
    }


class Encoder(ResponseEncoder):
    """Writes the events of the model's messages as a binary event stream."""

    def __init__(self, envelope: JsonMap) -> None:
        """Creates the Converse encoder. `envelope` is empty."""
        super().__init__(OWN, envelope)
        self._open: dict[_Key, Content] = {}
        # The index of each part of which an event was sent.
        self._numbers: dict[_Key, int] = {}
        # Open parts of which a delta was sent.
        self._sent: set[_Key] = set()
        self._next = 0

    def message_started(self, event: MessageStarted, *, first: bool) -> Objects:  # noqa: ARG002
        """Returns the event `messageStart` for the first message of a Converse stream."""
        if not first:
            return NO_OBJECTS
        return [{"messageStart": {"role": "assistant"}}]

    def part_started(self, event: PartStarted) -> Objects:
        """Begins a part of a Converse stream. Only a call has an event for that."""
        key, part = (event.message_id, event.index), event.part
        if isinstance(part, ToolCallPart):
            if part.run_by == "provider" and not OWN.is_ours(part.native):
                return NO_OBJECTS
            self._open[key] = part
            call = dump_call(part, part.id, part.name)[CALL]
            return [self._start(key, {CALL: pick(call, _AT_START)})]
        if isinstance(part, (TextPart, ThinkingPart)):
            self._open[key] = part
        return NO_OBJECTS

    def delta(self, event: PartDelta) -> Objects:
        """Returns the event for a delta of an open part of a Converse stream."""
        key = (event.message_id, event.index)
        if (part := self._open.get(key)) is None:
            return NO_OBJECTS
        self._sent.add(key)
        return [self._add(key, _dump_delta(part, str(event.delta)))]

    def part_finished(self, event: PartFinished) -> Objects:
        """Returns the events that end a part of a Converse stream, or those of one that comes
        whole."""
        key, part = (event.message_id, event.index), event.part
        begun = self._open.pop(key, None)
        if begun is None:
            # One of these is closed already, and no block is amended.
            if isinstance(part, (TextPart, ThinkingPart, ToolCallPart)):
                return NO_OBJECTS
            return self._dump_whole(key, part)
        deltas: list[Json] = []
        if key not in self._sent and (text := _read_text(part)):
            deltas.append(_dump_delta(begun, text))
        deltas += _dump_last_deltas(part)
        events = [self._add(key, delta) for delta in deltas]
        return [*events, *self._stop(key)]

    def message_dropped(self, event: MessageDropped) -> Objects:
        """Implements `ResponseEncoder.message_dropped` for Converse. Ends what is open, since the
        format cannot take anything back."""
        dropped = [key for key in self._open if key[0] == event.message_id]
        ends: list[Json] = []
        for key in dropped:
            del self._open[key]
            ends += self._stop(key)
        return ends

    def error(self, error: DragomanError) -> Objects:
        return [describe_error(error)]

    def end(self) -> Objects:
        """Returns the events `messageStop` and `metadata`, which end a Converse stream."""
        state = self._state
        response = state.envelope
        stop = {"stopReason": dump_finish(state.reason, response.get("stopReason"))}
        metadata = {
            "usage": dump_usage(state.usage, if_object(response.get("usage"))),
            "metrics": {"latencyMs": 0},
            **read_extra_fields(response, "output", "stopReason", "usage", _AT_STOP),
        }
        stop |= pick(response, (_AT_STOP,))
        return [{"messageStop": stop}, {"metadata": metadata}]

    def frame(self, data: JsonMap) -> bytes:
        event_type = next(iter(data))
        return frame_binary_event(event_type, json_bytes.encode(data[event_type]))

    def _dump_whole(self, key: _Key, part: Content) -> Objects:
        """Writes a part of a Converse stream that comes in one piece: an image, or the result of a
        tool that the provider ran. The stream has no room for others."""
        block = _dump_piece(part) or {}
        block_type = next(iter(block), "")
        if block_type == "text":
            return [self._add(key, block), *self._stop(key)]
        if block_type not in (RESULT, "image"):
            return NO_OBJECTS
        fields = if_object(block[block_type])
        delta = fields.get("content", read_extra_fields(fields, *_AT_START))
        start = self._start(key, {block_type: pick(fields, _AT_START)})
        return [start, self._add(key, {block_type: delta}), *self._stop(key)]

    def _start(self, key: _Key, start: Json) -> Json:
        return {"contentBlockStart": {"start": start, "contentBlockIndex": self._number(key)}}

    def _add(self, key: _Key, delta: Json) -> Json:
        return {"contentBlockDelta": {"delta": delta, "contentBlockIndex": self._number(key)}}

    def _stop(self, key: _Key) -> Sequence[Json]:
        """Returns the end of a Converse block, if anything of it was sent."""
        if key not in self._numbers:
            return ()
        return [{"contentBlockStop": {"contentBlockIndex": self._numbers.pop(key)}}]

    def _number(self, key: _Key) -> int:
        """Returns the index of a part's block in the Converse stream."""
        if key not in self._numbers:
            self._numbers[key] = self._next
            self._next += 1
        return self._numbers[key]


_RESPONSES = ResponseFormat(Encoder, _dump, dump_error)
encoder, dump_response = _RESPONSES.encoder, _RESPONSES.dump_response


def _dump_piece(piece: Content) -> Json | None:
    """Returns the block of a piece in a Converse response, or None if a response has none for
    it."""
    is_ours = OWN.is_ours(piece.native)
    if isinstance(piece, ToolCallPart):
        if piece.run_by == "provider" and not is_ours:
            return None
        # Nobody is to run a call whose arguments were cut.
        if piece.state != "complete":
            return None
        return dump_call(piece, piece.id, piece.name)
    if not is_ours and isinstance(piece, (ToolResultPart, ProviderPart)):
        return None
    return _dump_content(piece)


def _dump_content(piece: Content) -> Json | None:
    """Returns the block of a piece that is no call in a Converse response, or None if it says
    nothing."""
    if isinstance(piece, ToolResultPart):
        return dump_result(piece, piece.id)[0]
    if isinstance(piece, ThinkingPart) and not piece.text and not OWN.fields(piece.native):
        return None
    return dump_block(piece, cites=True)[0]


def _dump_delta(part: Content, text: str) -> Json:
    """Returns the delta of a Converse stream for more of a part's text."""
    if isinstance(part, ThinkingPart):
        return {REASONING: {"text": text}}
    if isinstance(part, ToolCallPart):
        return {CALL: {"input": text}}
    return {"text": text}


def _read_text(part: Content) -> str:
    """Returns the text that the Converse deltas of a part add up to."""
    if isinstance(part, (TextPart, ThinkingPart)):
        return part.text
    if not isinstance(part, ToolCallPart):
        return ""
    if part.state != "complete":
        return part.raw or ""
    return arguments_text(part)


def _dump_last_deltas(part: Content) -> list[Json]:
    """Returns the deltas of a Converse stream with what a part has beyond its text: what signs or
    encrypts reasoning, and the sources of a text."""
    if isinstance(part, ThinkingPart):
        return [{REASONING: {name: value}} for name, value in OWN.fields(part.native).items()]
    if not isinstance(part, TextPart):
        return []
    cited = if_object(dump_block(part, cites=True)[0].get(CITED))
    return [{"citation": citation} for citation in if_list(cited.get("citations"))]
