"""Events → a response, streamed as lines or whole, as the official client reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from dragoman.answer import Answer, model_of, whole_answer
from dragoman.errors import DragomanError
from dragoman.event import (
    Event,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
)
from dragoman.message import Content, FinishReason, Origin, TextPart, ThinkingPart, ToolCallPart, Usage
from dragoman.shapes import merged
from dragoman.wires.ollama.calls import dump_call
from dragoman.wires.ollama.errors import dump_error
from dragoman.wires.ollama.images import dump_image
from dragoman.wires.ollama.native import extra, response
from dragoman.wires.ollama.outcome import dump_reason, dump_usage

__all__ = ["Encoder", "dump_response", "encoder"]

_NO_TIME = "1970-01-01T00:00:00Z"


def encoder(**envelope: Any) -> Encoder:
    """An encoder of one response. `envelope`: `model` and `created_at`, where the events' own are not to be told."""
    return Encoder(envelope)


def dump_response(events: Iterable[Event], **envelope: Any) -> dict[str, Any]:
    """Events → a whole response; an error's body where they tell of an error."""
    message = whole_answer(events)
    if isinstance(message, DragomanError):
        return dump_error(message)[1]
    said: dict[str, Any] = {}
    for piece in message.content:
        for field, value in _fields(piece).items():
            said[field] = said[field] + value if field in said else value
    around = response(message.native)
    return {
        **_head(message.origin, envelope, around),
        "message": merged({"role": "assistant", "content": "", **said}, extra(message.native)),
        **_tail(message.finish_reason, message.usage, around),
    }


class Encoder:
    """Events of the model's messages → lines. Several messages become one. Texts that no other piece separates are one
    text for who reads the lines."""

    def __init__(self, envelope: Mapping[str, Any]) -> None:
        self._envelope = envelope
        self._head: dict[str, Any] = {}
        self._answer = Answer(response)
        self._fields: dict[tuple[str, int], str] = {}  # parts that are open → the field of their deltas
        self._told: set[tuple[str, int]] = set()
        self._own: dict[str, Any] = {}
        self._over = False

    def feed(self, event: Event) -> bytes:
        """One event → the bytes that tell of it (`b""`: none, or not yet)."""
        if self._over or not self._answer.takes(event):
            return b""
        if isinstance(event, PartDelta):
            key = (event.message_id, event.index)
            if field := self._fields.get(key):
                self._told.add(key)
                return self._line({field: event.delta})
        elif isinstance(event, PartStarted):
            if isinstance(event.part, (TextPart, ThinkingPart)):
                field = "content" if isinstance(event.part, TextPart) else "thinking"
                self._fields[event.message_id, event.index] = field
        elif isinstance(event, PartFinished):
            key = (event.message_id, event.index)
            if key not in self._told and (said := _fields(event.part)):
                return self._line(said)
        elif isinstance(event, MessageStarted):
            self._head = self._head or _head(event.origin, self._envelope, self._answer.around)
        elif isinstance(event, MessageFinished):
            self._own |= extra(event.native)
        elif isinstance(event, RunError):
            self._over = True
            return _bytes(dump_error(event.error)[1])
        elif isinstance(event, RunFinished):
            return self.close()
        return b""

    def close(self) -> bytes:
        """The end of the events → the line that is done."""
        if self._over or not self._head:
            return b""
        self._over = True
        answer = self._answer
        head = {**self._head, **_created(self._envelope, answer.around)}
        message = merged({"role": "assistant", "content": ""}, self._own)
        return _bytes({**head, "message": message, **_tail(answer.reason, answer.usage, answer.around)})

    def _line(self, said: Mapping[str, Any]) -> bytes:
        return _bytes({**self._head, "message": {"role": "assistant", "content": "", **said}, "done": False})


def _fields(piece: Content) -> dict[str, Any]:
    """A piece → the fields of the message that say it; none for what a response cannot hold."""
    if isinstance(piece, TextPart):
        return {"content": piece.text}
    if isinstance(piece, ThinkingPart):
        return {"thinking": piece.text} if piece.text else {}
    if isinstance(piece, ToolCallPart):
        return {"tool_calls": [dump_call(piece, piece.id)]} if piece.run_by != "provider" else {}
    image = dump_image(piece)
    return {} if image is None else {"images": [image]}


def _head(origin: Origin | None, envelope: Mapping[str, Any], around: Mapping[str, Any]) -> dict[str, Any]:
    model = envelope.get("model") or model_of(origin)
    return {"model": model, **_created(envelope, around)}


def _created(envelope: Mapping[str, Any], around: Mapping[str, Any]) -> dict[str, Any]:
    return {"created_at": envelope.get("created_at") or around.get("created_at") or _NO_TIME}


def _tail(reason: FinishReason | None, usage: Usage | None, around: Mapping[str, Any]) -> dict[str, Any]:
    """What the last line says of the whole."""
    why = dump_reason(reason, around.get("done_reason"))
    done = {"done": True, **({} if why is None else {"done_reason": why}), **dump_usage(usage)}
    return {**done, **{name: value for name, value in around.items() if name not in (*done, "created_at")}}


def _bytes(line: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(line) + b"\n"
