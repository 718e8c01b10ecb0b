"""Events → a response, streamed or whole, as the official clients read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dragoman import json_bytes
from dragoman.codec.framing import event_bytes
from dragoman.codec.json_values import if_list, if_object, merged
from dragoman.codec.response import ResponseState, model_of, whole_message
from dragoman.errors import DragomanError
from dragoman.event import (
    Event,
    MessageDropped,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
)
from dragoman.loss import Loss
from dragoman.message import Content, DataPart, FilePart, LinkPart, Role, TextPart, ThinkingPart, ToolCallPart
from dragoman.wires.anthropic.blocks import CALLS
from dragoman.wires.anthropic.errors import dump_error
from dragoman.wires.anthropic.outcome import dump_stop, dump_usage
from dragoman.wires.anthropic.pieces import Writer
from dragoman.wires.anthropic.quirks import NAME, OWN, Quirks

__all__ = ["Encoder", "dump_response", "encoder"]

_json = json_bytes.encode
_STREAMED = ("text", "thinking", *CALLS)
_IN_DELTA = ("container", "stop_details", "stop_sequence")


def encoder(**envelope: Any) -> Encoder:
    """An encoder of one response. `envelope`: `id` and `model`, where the events' own are not to be told."""
    return Encoder(envelope)


def dump_response(events: Iterable[Event], *, losses: list[Loss] | None = None, **envelope: Any) -> dict[str, Any]:
    """Events → a whole response; an error's body where they tell of an error."""
    message = whole_message(events, losses)
    if isinstance(message, DragomanError):
        return dump_error(message)[1]
    around, origin = dict(OWN.response(message.native)), message.origin
    answer: dict[str, Any] = {
        "id": envelope.get("id") or (origin and origin.response_id) or message.id or "message-0",
        "type": "message",
        "role": "assistant",
        "model": envelope.get("model") or model_of(origin),
        "content": _blocks(*message.content),
        "stop_reason": dump_stop(message.finish_reason, around.pop("stop_reason", None)),
        "stop_sequence": around.pop("stop_sequence", None),
        "usage": dump_usage(message.usage, around.pop("usage", {})),
    }
    return merged(answer, around)


class Encoder:
    """Events of the model's messages → Server-Sent Events. Several messages become the blocks of one.

    The wire knows one open block at a time: what is told of other parts meanwhile waits for its turn.
    """

    def __init__(self, envelope: Mapping[str, Any]) -> None:
        self._envelope = envelope
        self._answer = ResponseState(OWN.response)
        self._parts: dict[tuple[str, int], Content] = {}  # parts that are open, as they began
        self._turn: tuple[str, int] | None = None
        self._waiting: dict[tuple[str, int], list[PartDelta | PartFinished]] = {}
        self._usage: dict[str, Any] = {}  # what the start told of it beyond counts that are not known yet
        self._block = -1
        self._open = False  # a block is
        self._over = False

    def feed(self, event: Event) -> bytes:
        """One event → the bytes that tell of it (`b""`: none, or not yet)."""
        first = not self._answer.started
        if self._over or not self._answer.takes(event):
            return b""
        if isinstance(event, (PartDelta, PartFinished)):
            return self._part(event)
        if isinstance(event, PartStarted):
            self._parts[event.message_id, event.index] = event.part
        elif isinstance(event, MessageStarted):
            return self._start() if first else b""
        elif isinstance(event, MessageDropped):
            return self._drop(event.message_id)
        elif isinstance(event, RunError):
            self._over = True
            return event_bytes(_json(dump_error(event.error)[1]), "error")
        elif isinstance(event, RunFinished):
            return self.close()
        return b""

    def close(self) -> bytes:
        """The end of the events → the end of the response."""
        answer = self._answer
        if self._over or not answer.started:
            return b""
        self._over = True
        around = dict(answer.envelope)
        delta = {
            "stop_reason": dump_stop(answer.reason, around.pop("stop_reason", None)),
            "stop_sequence": None,
            **{key: around.pop(key) for key in _IN_DELTA if key in around},
        }
        begun = self._usage.items()
        other = {key: value for key, value in if_object(around.pop("usage", {})).items() if (key, value) not in begun}
        end = merged({"type": "message_delta", "delta": delta, "usage": dump_usage(answer.usage, other)}, around)
        return self._end_all() + event_bytes(_json(end), "message_delta") + _event("message_stop")

    def _start(self) -> bytes:
        origin = self._answer.origin
        self._usage = if_object(self._answer.envelope.get("usage"))
        message = {
            "id": self._envelope.get("id") or (origin and origin.response_id) or self._answer.id or "message-0",
            "type": "message",
            "role": "assistant",
            "model": self._envelope.get("model") or model_of(origin),
            "content": (),
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0, **self._usage},
        }
        return _event("message_start", message=message)

    def _part(self, event: PartDelta | PartFinished) -> bytes:
        """A delta or the end of a part: written now, where no other part has its turn."""
        key = (event.message_id, event.index)
        if self._turn is not None and self._turn != key:
            self._waiting.setdefault(key, []).append(event)
            return b""
        self._turn = key
        if isinstance(event, PartFinished):
            if self._parts.pop(key, None) is None:  # it is closed already, and no block is amended
                self._turn = None
                return self._next()
            return self._finish(event.part) + self._next()
        part = self._parts.get(key)
        delta = None if part is None else _delta(part, str(event.delta))
        if part is None or delta is None:
            return b""  # told whole at its end
        return (b"" if self._open else self._begin(_opening(part))) + self._tell(delta)

    def _finish(self, part: Content) -> bytes:
        """The end of a part: what its deltas did not tell, and the end of its block."""
        out = b""
        if not self._open:
            blocks = _blocks(part)
            if not blocks:  # nothing that a client is told
                self._turn = None
                return b""
            if isinstance(part, (DataPart, LinkPart, FilePart)) and blocks[0]["type"] == "text":
                part = TextPart(blocks[0]["text"])  # a response holds no media, but for files that the provider has
            streams = isinstance(part, (TextPart, ThinkingPart, ToolCallPart)) and blocks[0].get("type") in _STREAMED
            out += self._begin(_opening(part) if streams else blocks[0])
            if streams and (text := _text(part)):
                out += self._tell(_delta(part, text) or {})
        own = OWN.fields(part.native)
        if (beside := if_object(OWN.notes(part.native).get("delta"))) and (last := _delta(part, "")) is not None:
            out += self._tell(merged(last, beside))
        if isinstance(part, ThinkingPart) and "signature" in own:
            out += self._tell({"type": "signature_delta", "signature": own["signature"]})
        if isinstance(part, TextPart):
            for citation in if_list(own.get("citations")):
                out += self._tell({"type": "citations_delta", "citation": citation})
        return out + self._end()

    def _next(self) -> bytes:
        """The parts that waited, as far as their turn has come."""
        out = b""
        while self._waiting and self._turn is None:
            for waiting in self._waiting.pop(next(iter(self._waiting))):
                out += self._part(waiting)
        return out

    def _drop(self, message_id: str) -> bytes:
        """A message is retracted: the block that went out of it ends, what waits of it is never told."""
        self._parts = {key: part for key, part in self._parts.items() if key[0] != message_id}
        self._waiting = {key: events for key, events in self._waiting.items() if key[0] != message_id}
        if self._turn is None or self._turn[0] != message_id:
            return b""
        return self._end() + self._next()

    def _end_all(self) -> bytes:
        """Ends the part that has its turn, and those that wait for theirs, though nobody closed them."""
        out = self._end() + self._next()
        while self._turn is not None:
            out += self._end() + self._next()
        return out

    def _begin(self, block: Mapping[str, Any]) -> bytes:
        self._block += 1
        self._open = True
        return _event("content_block_start", index=self._block, content_block=block)

    def _tell(self, delta: Mapping[str, Any]) -> bytes:
        return _event("content_block_delta", index=self._block, delta=delta)

    def _end(self) -> bytes:
        self._turn = None
        was_open, self._open = self._open, False
        return _event("content_block_stop", index=self._block) if was_open else b""


def _blocks(*content: Content) -> list[dict[str, Any]]:
    return Writer(Quirks(), [], role=Role.MODEL, answer=True).blocks(content)


def _delta(part: Content, text: str) -> dict[str, Any] | None:
    """More of a part; `None` for one that is told whole, or not at all, as a call that another provider ran."""
    if isinstance(part, TextPart):
        return {"type": "text_delta", "text": text}
    if isinstance(part, ThinkingPart):
        return {"type": "thinking_delta", "thinking": text}
    if not isinstance(part, ToolCallPart) or (part.run_by == "provider" and NAME not in (part.native or ())):
        return None
    return {"type": "input_json_delta", "partial_json": text}


def _text(part: Content) -> str:
    """What the deltas of a part would have been."""
    if isinstance(part, (TextPart, ThinkingPart)):
        return part.text
    if isinstance(part, ToolCallPart) and part.raw is None:
        return _json(part.arguments).decode() if part.arguments else ""
    return part.raw or "" if isinstance(part, ToolCallPart) else ""


def _opening(part: Content) -> dict[str, Any]:
    """The block of a text, thinking or call as it begins: without what deltas tell."""
    own = {key: value for key, value in OWN.fields(part.native).items() if key not in ("citations", "signature")}
    if isinstance(part, ToolCallPart):
        return {"type": "tool_use", **own, "id": part.id, "name": part.name, "input": {}}
    if isinstance(part, ThinkingPart):
        signature = {} if OWN.form(part.native).get("signature") == "absent" else {"signature": ""}
        return {"type": "thinking", **own, "thinking": "", **signature}
    return {"type": "text", **own, "text": ""}


def _event(kind: str, /, **fields: Any) -> bytes:
    return event_bytes(_json({"type": kind, **fields}), kind)
