"""Events → a response, streamed or whole, as the official clients read it.

`Encoder` writes events as Server-Sent Events, and `_dump` writes a whole message. Parts may be
open at the same time, but the wire has one open block: `_turn` names the part that may write, and
`_waiting` keeps the events of the others until `_next` gives them their turn.

A block begins with the first delta of its part, in an empty form. If the part comes whole, it
begins at its end, and `_begin_late` writes what deltas would have held. Whole blocks are made by
the same `dump_blocks` that requests use.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from dragoman import json_bytes
from dragoman.codec.json_values import if_object, merge_wire_fields, read_extra_fields
from dragoman.codec.outgoing_conversation import prepare_outgoing
from dragoman.codec.response_encoder import NO_OBJECTS, Objects, ResponseEncoder, frame_typed_event
from dragoman.codec.response_state import name_model
from dragoman.codec.wire_operations import ResponseFormat
from dragoman.errors import DragomanError
from dragoman.event import MessageDropped, MessageStarted, PartDelta, PartFinished, PartStarted
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    Message,
    Origin,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from dragoman.request import ModelRequest
from dragoman.wires.anthropic.citations import dump_citations
from dragoman.wires.anthropic.content import OutgoingBlocks, dump_blocks
from dragoman.wires.anthropic.errors import dump_error
from dragoman.wires.anthropic.quirks import NAME, OWN, Quirks
from dragoman.wires.anthropic.tools import CALLS
from dragoman.wires.anthropic.usage import dump_finish, dump_usage

__all__ = ["Encoder", "dump_response", "encoder", "envelope", "ping", "stream_type"]

stream_type = "text/event-stream"
"""The media type of a streamed response."""
ping = frame_typed_event({"type": "ping"})
"""The event that keeps a stream open."""

_STREAMED = ("text", "thinking", *CALLS)
_IN_DELTA = ("container", "stop_details", "stop_sequence")
_INVALID = "INVALID_JSON"
_Key = tuple[str, int]
"""A part: its message and index."""


def envelope(request: ModelRequest | None, *, id: str, now: datetime) -> Json:  # noqa: A002, ARG001 the protocol's
    """Returns what `encoder` and `dump_response` take beside the events of an Anthropic answer to
    `request`."""
    head: Json = {"id": f"msg_{id}"}
    if request and request.model:
        head["model"] = request.model
    return head


def _dump(message: Message, envelope: JsonMap) -> Json:
    """Returns a whole response of Anthropic's API."""
    response = dict(OWN.response(message.native))
    answer = {
        **_head(envelope, message.origin, message.id),
        "content": _blocks(message.content),
        "stop_reason": dump_finish(message.finish_reason, response.pop("stop_reason", None)),
        "stop_sequence": response.pop("stop_sequence", None),
        "usage": dump_usage(message.usage, response.pop("usage", {})),
    }
    return merge_wire_fields(answer, response)


class Encoder(ResponseEncoder):
    """Events of the model's messages → Server-Sent Events. Several messages become the blocks of
    one.

    The wire knows one open block at a time: what comes of other parts meanwhile waits for its turn.
    """

    def __init__(self, envelope: JsonMap) -> None:
        """Starts an Anthropic response. `envelope`: its `id` and `model`, where they replace those
        of the events."""
        super().__init__(OWN, envelope)
        # Parts that are open, as they began.
        self._parts: dict[_Key, Content] = {}
        self._turn: _Key | None = None
        self._waiting: dict[_Key, list[PartDelta | PartFinished]] = {}
        # What the start held of it beyond counts that are not known yet.
        self._usage: dict[str, Any] = {}
        self._block = -1
        self._open = False
        """True while a block is open."""

    def message_started(self, event: MessageStarted, *, first: bool) -> Objects:  # noqa: ARG002 the state has read it
        """Returns the event `message_start` for the first message of Anthropic's stream."""
        if not first:
            return NO_OBJECTS
        state = self._state
        self._usage = if_object(state.envelope.get("usage"))
        message = {
            **_head(self._envelope, state.origin, state.id),
            "content": (),
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0, **self._usage},
        }
        return [{"type": "message_start", "message": message}]

    def part_started(self, event: PartStarted) -> Objects:
        self._parts[event.message_id, event.index] = event.part
        return NO_OBJECTS

    def delta(self, event: PartDelta) -> Objects:
        """Returns the event `content_block_delta` for a delta, and begins its Anthropic block if
        needed."""
        key = (event.message_id, event.index)
        if self._waits(key, event) or (part := self._parts.get(key)) is None:
            return NO_OBJECTS
        delta = _delta(part, str(event.delta))
        # It comes whole at its end.
        if delta is None:
            return NO_OBJECTS
        if self._open:
            return [self._more(delta)]
        return [self._begin(_opening(part)), self._more(delta)]

    def part_finished(self, event: PartFinished) -> Objects:
        """Returns the events that end an Anthropic block, and those of blocks that waited for
        it."""
        key = (event.message_id, event.index)
        if self._waits(key, event):
            return NO_OBJECTS
        # It is closed already, and no block is amended.
        if self._parts.pop(key, None) is None:
            self._turn = None
            return self._next()
        return [*self._finish(event.part), *self._next()]

    def message_dropped(self, event: MessageDropped) -> Objects:
        """Returns the Anthropic objects that end the open block of a retracted message. What waits
        of that message is never sent."""
        dropped = event.message_id
        self._parts = {key: part for key, part in self._parts.items() if key[0] != dropped}
        self._waiting = {key: events for key, events in self._waiting.items() if key[0] != dropped}
        if self._turn is None or self._turn[0] != dropped:
            return NO_OBJECTS
        return [*self._close(), *self._next()]

    def error(self, error: DragomanError) -> Objects:
        return [dump_error(error).body]

    def end(self) -> Objects:
        """Returns the events `message_delta` and `message_stop` that end the Anthropic stream."""
        state = self._state
        response = dict(state.envelope)
        delta = {
            "stop_reason": dump_finish(state.reason, response.pop("stop_reason", None)),
            "stop_sequence": None,
            **{key: response.pop(key) for key in _IN_DELTA if key in response},
        }
        # The start of the response has told these.
        begun = self._usage.items()
        other = {
            key: value
            for key, value in if_object(response.pop("usage", {})).items()
            if (key, value) not in begun
        }
        end = merge_wire_fields(
            {"type": "message_delta", "delta": delta, "usage": dump_usage(state.usage, other)},
            response,
        )
        return [*self._close_all(), end, {"type": "message_stop"}]

    def frame(self, data: JsonMap) -> bytes:
        return frame_typed_event(data)

    def _waits(self, key: _Key, event: PartDelta | PartFinished) -> bool:
        """True if another part has its turn in the Anthropic stream, whose blocks come one after
        the other, and then keeps the event. Otherwise the turn is this part's."""
        if self._turn is not None and self._turn != key:
            self._waiting.setdefault(key, []).append(event)
            return True
        self._turn = key
        return False

    def _finish(self, part: Content) -> list[JsonMap]:
        """Returns the end of a part: what its deltas did not hold, and the end of its Anthropic
        block."""
        out: list[JsonMap] = []
        if not self._open:
            blocks = _blocks((part,))
            # Nothing that a client gets.
            if not blocks:
                self._turn = None
                return out
            out += self._begin_late(part, blocks[0])
        wire_fields = OWN.fields(part.native)
        if (beside := if_object(OWN.notes(part.native).get("delta"))) and (
            last := _delta(part, "")
        ) is not None:
            out.append(self._more(merge_wire_fields(last, beside)))
        if isinstance(part, ThinkingPart) and "signature" in wire_fields:
            out.append(
                self._more({"type": "signature_delta", "signature": wire_fields["signature"]})
            )
        if isinstance(part, TextPart):
            out += [
                self._more({"type": "citations_delta", "citation": citation})
                for citation in dump_citations(part)
            ]
        return [*out, *self._close()]

    def _begin_late(self, part: Content, block: Json) -> list[JsonMap]:
        """Returns the begin of an Anthropic block for a part without deltas, and what they would
        have held."""
        # A response holds no media, but for files that the provider has.
        if isinstance(part, (DataPart, LinkPart, FilePart)) and block["type"] == "text":
            part = TextPart(block["text"])
        if (
            not isinstance(part, (TextPart, ThinkingPart, ToolCallPart))
            or block.get("type") not in _STREAMED
        ):
            return [self._begin(block)]
        # A block that streams begins empty: whoever shows it as it comes listens to deltas alone.
        begun: list[JsonMap] = [self._begin(_opening(part))]
        if text := _text(part):
            begun.append(self._more(_delta(part, text) or {}))
        return begun

    def _next(self) -> list[JsonMap]:
        """Returns the Anthropic events of the parts that waited, as far as their turn has come."""
        out: list[JsonMap] = []
        while self._waiting and self._turn is None:
            for event in self._waiting.pop(next(iter(self._waiting))):
                if isinstance(event, PartDelta):
                    out += self.delta(event)
                else:
                    out += self.part_finished(event)
        return out

    def _close_all(self) -> list[JsonMap]:
        """Ends the Anthropic block of the part that has its turn, and those that wait for theirs,
        though nobody closed them."""
        # Each part that gets its turn may be one more that nobody closed.
        out = [*self._close(), *self._next()]
        while self._turn is not None:
            out += [*self._close(), *self._next()]
        return out

    def _begin(self, block: JsonMap) -> Json:
        self._block += 1
        self._open = True
        return {"type": "content_block_start", "index": self._block, "content_block": block}

    def _more(self, delta: JsonMap) -> Json:
        return {"type": "content_block_delta", "index": self._block, "delta": delta}

    def _close(self) -> Objects:
        """Returns the event that closes the open Anthropic block, if there is one."""
        self._turn = None
        was_open, self._open = self._open, False
        if was_open:
            return [{"type": "content_block_stop", "index": self._block}]
        return NO_OBJECTS


_RESPONSES = ResponseFormat(Encoder, _dump, dump_error)
encoder, dump_response = _RESPONSES.encoder, _RESPONSES.dump_response


def _head(envelope: JsonMap, origin: Origin | None, message_id: str | None) -> Json:
    """Returns the fields with which an Anthropic message begins."""
    return {
        "id": envelope.get("id") or (origin and origin.response_id) or message_id or "message-0",
        "type": "message",
        "role": "assistant",
        "model": envelope.get("model") or name_model(origin),
    }


def _blocks(content: tuple[Content, ...]) -> list[Json]:
    """Returns the Anthropic blocks of a response. Arguments that are no JSON stand in an object, as
    the API asks of clients, so that nobody runs a call with an empty one."""
    message = Message(Role.MODEL, tuple(map(_wrap_invalid_call, content)))
    return dump_blocks(
        prepare_outgoing(
            OutgoingBlocks, [message], None, Quirks(), None, ids={}, names={}, answer=True
        ),
        0,
    )


def _wrap_invalid_call(piece: Content) -> Content:
    """Returns the piece, with its arguments in an object if they are no JSON, since Anthropic's
    `input` is one."""
    if not isinstance(piece, ToolCallPart) or piece.state != "invalid":
        return piece
    arguments = {_INVALID: piece.raw or ""}
    return ToolCallPart(piece.id, piece.name, arguments, run_by=piece.run_by, native=piece.native)


def _delta(part: Content, text: str) -> Json | None:
    """Returns an Anthropic `content_block_delta` of a part, or None if the part comes whole or not
    at all (a call that another provider ran)."""
    if isinstance(part, TextPart):
        return {"type": "text_delta", "text": text}
    if isinstance(part, ThinkingPart):
        return {"type": "thinking_delta", "thinking": text}
    if not isinstance(part, ToolCallPart) or (
        part.run_by == "provider" and NAME not in (part.native or ())
    ):
        return None
    return {"type": "input_json_delta", "partial_json": text}


def _text(part: Content) -> str:
    """Returns the text that the Anthropic deltas of a part would have had."""
    if isinstance(part, (TextPart, ThinkingPart)):
        return part.text
    if not isinstance(part, ToolCallPart):
        return ""
    if part.raw is not None:
        return part.raw
    # A call without arguments needs no delta: its block begins with `{}`.
    if not part.arguments:
        return ""
    return json_bytes.encode(part.arguments).decode()


def _opening(part: Content) -> Json:
    """Returns the Anthropic block of a text, thinking or call as it begins: without what deltas
    hold."""
    block_fields = read_extra_fields(OWN.fields(part.native), "citations", "signature")
    if isinstance(part, ToolCallPart):
        return {"type": "tool_use", **block_fields, "id": part.id, "name": part.name, "input": {}}
    if isinstance(part, ThinkingPart):
        if OWN.form(part.native).get("signature") == "absent":
            signature = {}
        else:
            signature = {"signature": ""}
        return {"type": "thinking", **block_fields, "thinking": "", **signature}
    return {"type": "text", **block_fields, "text": ""}
