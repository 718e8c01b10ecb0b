"""Events → a response, streamed or whole, as the official client reads it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from dragoman.codec.encoder import NO_OBJECTS, Objects, ResponseEncoder, frame_typed_event
from dragoman.codec.formats import ResponseFormat
from dragoman.codec.framing import frame_server_event
from dragoman.codec.json_values import if_list, merge_wire_fields, read_extra_fields
from dragoman.codec.serving import SSE_PING
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
    TextPart,
    ThinkingPart,
    ToolCallPart,
    Usage,
)
from dragoman.request import ModelRequest
from dragoman.wires.cohere.content import PLAN, dump_block, is_plan
from dragoman.wires.cohere.errors import dump_error
from dragoman.wires.cohere.quirks import OWN
from dragoman.wires.cohere.tools import dump_call
from dragoman.wires.cohere.usage import dump_finish, dump_usage

__all__ = ["Encoder", "dump_response", "encoder", "envelope", "ping", "stream_type"]

stream_type = "text/event-stream"
"""The media type of a streamed response."""
ping = SSE_PING
"""What keeps a stream open."""


def envelope(request: ModelRequest | None, *, id: str, now: datetime) -> Json:  # noqa: A002, ARG001 the protocol's
    """What `encoder` and `dump_response` take beside the events of an answer to `request`."""
    return {"id": id}


def _dump(message: Message, envelope: JsonMap) -> Json:
    """A whole response."""
    plan, blocks, calls = "", list[Any](), list[Json]()
    for piece in message.content:
        if is_plan(piece):
            plan += piece.text
        elif isinstance(piece, ToolCallPart):
            calls += [_call(piece, _text(piece))] if piece.run_by != "provider" else []
        elif (block := dump_block(piece)[0]) is not None:
            blocks.append(block)
    fields = {PLAN: plan, "content": blocks, "tool_calls": calls}
    origin = message.origin
    return {
        "id": envelope.get("id") or (origin and origin.response_id) or message.id or "message-0",
        "message": merge_wire_fields(
            {"role": "assistant", **{field: value for field, value in fields.items() if value}},
            OWN.fields(message.native),
        ),
        **_end(
            message.finish_reason,
            message.usage,
            read_extra_fields(OWN.response(message.native), "id", "message"),
        ),
    }


class Encoder(ResponseEncoder):
    """Events of the model's messages → Server-Sent Events. Parts may be open side by side."""

    DONE = frame_server_event(b"[DONE]")

    def __init__(self, envelope: JsonMap) -> None:
        """`envelope`: `id`, that of the response, where it is not to be the events' own."""
        super().__init__(OWN, envelope)
        # open parts and their number on the wire
        self._open: dict[tuple[str, int], tuple[Content, int | None]] = {}
        # open parts of which a delta was sent
        self._sent: set[tuple[str, int]] = set()
        # open parts that are sent at their end
        self._whole: set[tuple[str, int]] = set()
        self._numbers = {"content": 0, "call": 0}
        self._citations: dict[str, list[Any]] = {}  # of each message

    def message_started(self, event: MessageStarted, *, first: bool) -> Objects:
        self._cite(event)
        if not first:
            return NO_OBJECTS
        origin = self._state.origin
        message = {"role": "assistant", "content": (), PLAN: "", "tool_calls": (), "citations": ()}
        response_id = (
            self._envelope.get("id")
            or (origin and origin.response_id)
            or self._state.id
            or "message-0"
        )
        return [
            _event(
                "message-start",
                id=response_id,
                delta={"message": merge_wire_fields(message, OWN.fields(event.native))},
            )
        ]

    def part_started(self, event: PartStarted) -> Objects:
        """The start of a part; a block that is neither text nor thinking is sent whole at its
        end."""
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
        number = self._number("call" if isinstance(part, ToolCallPart) else "content")
        self._open[key] = (part, number)
        if isinstance(part, ToolCallPart):
            return [
                _event(
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
        return [_event("content-start", index=number, delta={"message": {"content": block}})]

    def delta(self, event: PartDelta) -> Objects:
        key = (event.message_id, event.index)
        if (opened := self._open.get(key)) is None:
            return NO_OBJECTS
        self._sent.add(key)
        return [_more(*opened, str(event.delta))]

    def part_finished(self, event: PartFinished) -> Objects:
        key, part = (event.message_id, event.index), event.part
        if key in self._whole:
            self._whole.remove(key)
            block, _ = dump_block(part)
            return NO_OBJECTS if block is None else self._block(block)
        if key not in self._open:
            return NO_OBJECTS
        opened, number = self._open.pop(key)
        unsent = (
            [_more(opened, number, text)] if key not in self._sent and (text := _text(part)) else []
        )
        return [*unsent, *_close(opened, number)]

    def message_finished(self, event: MessageFinished) -> Objects:
        self._cite(event)
        return NO_OBJECTS

    def message_dropped(self, event: MessageDropped) -> Objects:
        dropped = event.message_id
        self._citations.pop(dropped, None)
        self._whole = {key for key in self._whole if key[0] != dropped}
        return [
            end
            for key in list(self._open)
            if key[0] == dropped
            for end in _close(*self._open.pop(key))
        ]

    def error(self, error: DragomanError) -> Objects:
        delta = {"finish_reason": "ERROR", "error": dump_error(error).body["message"]}
        return [_event("message-end", delta=delta)]

    def end(self) -> Objects:
        cited = [
            (
                _event("citation-start", index=number, delta={"message": {"citations": citation}}),
                _event("citation-end", index=number),
            )
            for number, citation in enumerate(
                citation_of_message
                for citations in self._citations.values()
                for citation_of_message in citations
            )
        ]
        state = self._state
        end = _event("message-end", delta=_end(state.reason, state.usage, state.envelope))
        return [*(event for pair in cited for event in pair), end]

    def frame(self, data: JsonMap) -> bytes:
        return frame_typed_event(data)

    def _cite(self, event: MessageStarted | MessageFinished) -> None:
        self._citations.setdefault(event.message_id, []).extend(
            if_list(OWN.fields(event.native).get("citations"))
        )

    def _block(self, block: JsonMap) -> Objects:
        number = self._number("content")
        start = _event("content-start", index=number, delta={"message": {"content": block}})
        return [start, _event("content-end", index=number)]

    def _number(self, counter: str) -> int:
        """That of the next block, or of the next call."""
        self._numbers[counter] += 1
        return self._numbers[counter] - 1


_RESPONSES = ResponseFormat(Encoder, _dump, dump_error)
encoder, dump_response = _RESPONSES.encoder, _RESPONSES.dump_response


def _event(event_type: str, **fields: Any) -> Json:
    return {"type": event_type, **fields}


def _more(part: Content, number: int | None, text: str) -> Json:
    """More of an open part; the plan has no number."""
    if number is None:
        return {"type": "tool-plan-delta", "delta": {"message": {PLAN: text}}}
    if isinstance(part, ToolCallPart):
        calls = {"function": {"arguments": text}}
        return {
            "type": "tool-call-delta",
            "index": number,
            "delta": {"message": {"tool_calls": calls}},
        }
    return {
        "type": "content-delta",
        "index": number,
        "delta": {"message": {"content": _block(part, text)}},
    }


def _close(part: Content, number: int | None) -> list[Json]:
    """The end of a part; the plan has none."""
    if number is None:
        return []
    return [
        _event("tool-call-end" if isinstance(part, ToolCallPart) else "content-end", index=number)
    ]


def _text(piece: Content) -> str:
    """What the deltas of a part would have been."""
    if isinstance(piece, (TextPart, ThinkingPart)):
        return piece.text
    if isinstance(piece, ToolCallPart):
        return arguments_text(piece) if piece.state == "complete" else piece.raw or ""
    return ""


def _block(part: Content, text: str) -> dict[str, str]:
    return {"thinking": text} if isinstance(part, ThinkingPart) else {"text": text}


def _call(call: ToolCallPart, text: str) -> Json:
    block = dump_call(call, call.id, call.name)
    return {**block, "function": {**block["function"], "arguments": text}}


def _end(reason: FinishReason | None, usage: Usage | None, response: JsonMap) -> Json:
    """What ends a response. `response`: its fields beyond the message's."""
    end: Json = {"finish_reason": dump_finish(reason, response.get("finish_reason"))}
    if counts := dump_usage(usage, response.get("usage", {})):
        end["usage"] = counts
    return {**end, **read_extra_fields(response, "finish_reason", "usage")}
