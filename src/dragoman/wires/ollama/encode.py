"""Events → a response, streamed as lines or whole, as the official client reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dragoman import json_bytes
from dragoman.codec.json_values import merged, rest
from dragoman.codec.response import ResponseState, model_of, whole_message
from dragoman.errors import DragomanError
from dragoman.event import (
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
)
from dragoman.loss import Loss
from dragoman.message import Content, FinishReason, Origin, TextPart, ThinkingPart, ToolCallPart, Usage
from dragoman.wires.ollama.calls import dump_call
from dragoman.wires.ollama.errors import dump_error
from dragoman.wires.ollama.generate import GENERATE
from dragoman.wires.ollama.images import dump_image
from dragoman.wires.ollama.outcome import dump_reason, dump_usage
from dragoman.wires.ollama.quirks import OWN

__all__ = ["Encoder", "dump_response", "encoder"]

_NO_TIME = "1970-01-01T00:00:00Z"
_TEXTS = ("content", "thinking")
"""Fields whose values are joined by who reads the lines."""


def encoder(**envelope: Any) -> Encoder:
    """An encoder of one response. `envelope`: `model` and `created_at`, where the events' own are not to be told, and `path`,
    that of the request: `/api/generate` is answered in the form of its own."""
    return Encoder(envelope)


def dump_response(events: Iterable[Event], *, losses: list[Loss] | None = None, **envelope: Any) -> dict[str, Any]:
    """Events → a whole response; an error's body where they tell of an error. `envelope` as for `encoder`."""
    message = whole_message(events, losses)
    if isinstance(message, DragomanError):
        return dump_error(message)[1]
    told: dict[str, list[Any]] = {}
    for piece in message.content:
        for field, value in _fields(piece).items():
            told.setdefault(field, []).extend([value] if field in _TEXTS else value)
    said = {field: "".join(values) if field in _TEXTS else values for field, values in told.items()}
    around = OWN.response(message.native)
    body = {
        **_head(message.origin, envelope, around),
        **_body(said, OWN.fields(message.native), envelope),
        **_tail(message.finish_reason, message.usage, around),
    }
    return merged(body, rest(around, "created_at"))


class Encoder:
    """Events of the model's messages → lines. Several messages become one. Texts that no other piece separates are one
    text for who reads the lines."""

    def __init__(self, envelope: Mapping[str, Any]) -> None:
        self._envelope = envelope
        self._head: dict[str, Any] = {}
        self._answer = ResponseState(OWN.response)
        self._fields: dict[tuple[str, int], str] = {}  # parts that are open → the field of their deltas
        self._told: set[tuple[str, int]] = set()
        self._own: dict[str, dict[str, Any]] = {}  # further fields of each message
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
        elif isinstance(event, (MessageStarted, MessageFinished)):
            self._head = self._head or _head(self._answer.origin, self._envelope, self._answer.envelope)
            self._own.setdefault(event.message_id, {}).update(OWN.fields(event.native))
        elif isinstance(event, MessageDropped):
            return self._drop(event.message_id)
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
        own = {name: value for told in self._own.values() for name, value in told.items()}
        head = {**self._head, **_created(self._envelope, answer.envelope)}
        tail = _tail(answer.reason, answer.usage, answer.envelope)
        return _bytes(merged({**head, **_body({}, own, self._envelope), **tail}, rest(answer.envelope, "created_at")))

    def _line(self, said: Mapping[str, Any]) -> bytes:
        return _bytes({**self._head, **_body(said, {}, self._envelope), "done": False})

    def _drop(self, message_id: str) -> bytes:
        """A message is retracted: a line's end stands between its texts and those that follow, since no line takes back."""
        self._own.pop(message_id, None)
        told = {self._fields[key] for key in self._told if key[0] == message_id}
        self._told = {key for key in self._told if key[0] != message_id}
        return self._line(dict.fromkeys(sorted(told), "\n")) if told else b""


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


def _body(said: Mapping[str, Any], own: Mapping[str, Any], envelope: Mapping[str, Any]) -> dict[str, Any]:
    """What is said, as the request's endpoint tells it."""
    if str(envelope.get("path", "")).endswith(GENERATE):
        return merged({"response": said.get("content", ""), **rest(said, "content")}, own)
    return {"message": merged({"role": "assistant", "content": "", **said}, own)}


def _tail(reason: FinishReason | None, usage: Usage | None, around: Mapping[str, Any]) -> dict[str, Any]:
    """What the last line says of the whole."""
    why = dump_reason(reason, around.get("done_reason"))
    return {"done": True, **({} if why is None else {"done_reason": why}), **dump_usage(usage)}


def _bytes(line: Mapping[str, Any]) -> bytes:
    return json_bytes.encode(line) + b"\n"
