"""A response → events: one state machine for lines and for a whole one, which is a single line that is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import msgspec
from msgspec.structs import replace

from dragoman import json_bytes
from dragoman.codec.emitter import Emitter, OpenPart
from dragoman.codec.framing import LineStream, is_json
from dragoman.codec.json_values import body_bytes, if_list, if_object, if_text, rest
from dragoman.errors import DecodeError, DragomanError, StreamCutError
from dragoman.event import Event
from dragoman.message import Origin, ThinkingPart
from dragoman.wires.ollama.calls import is_call, load_call
from dragoman.wires.ollama.errors import error_of
from dragoman.wires.ollama.images import load_images
from dragoman.wires.ollama.native import marked
from dragoman.wires.ollama.outcome import add_fields, load_reason, load_usage

__all__ = ["Decoder", "decoder", "load_response"]


class _Said(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    role: str = ""
    content: str = ""
    thinking: str = ""


class _Line(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The lines that nearly all of a stream consists of; all others are read as plain JSON."""

    message: _Said
    model: str
    created_at: str
    done: bool


_decode_line = msgspec.json.Decoder(_Line).decode
_MESSAGE = ("role", "content", "thinking", "tool_calls", "images")


def decoder(*, origin: Origin | None = None, new_id: Callable[[], str] | None = None) -> Decoder:
    """A decoder of one response. `new_id` mints the message's id, and those of calls that come without one."""
    return Decoder(origin, new_id)


def load_response(
    body: bytes | Mapping[str, Any], *, origin: Origin | None = None, new_id: Callable[[], str] | None = None
) -> list[Event]:
    """A whole response → the events that its stream would have been; an error's body → `RunError`."""
    decoder = Decoder(origin, new_id)
    return [*decoder.feed(body_bytes(body)), *decoder.close()]


class Decoder:
    """A response → events. What comes after an error, or after the line that is done, is ignored."""

    def __init__(self, origin: Origin | None, new_id: Callable[[], str] | None) -> None:
        self._lines = LineStream()
        self._out = Emitter(new_id, origin=origin)
        self._over = False
        self._spread: list[bytes] | None = None  # lines of one JSON object that was written over several
        self._numbers = count()
        self._open: OpenPart | None = None  # the text or thinking that deltas go to
        self._thinks = False  # it is thinking
        self._created = ""
        self._told: dict[str, Any] = {}  # counts, reason
        self._around: dict[str, Any] = {}
        self._own: dict[str, Any] = {}  # further fields of the message

    def feed(self, data: bytes) -> list[Event]:
        """More bytes, cut anywhere → the events that they complete."""
        for line in self._lines.feed(data):
            self._read(line)
        return self._out.take()

    def close(self) -> list[Event]:
        """The end of the bytes. An answer that was never done was cut."""
        for line in self._lines.close():
            if self._spread is not None or is_json(line) or not self._out.started:
                self._read(line)
        if self._spread is not None and not self._over:
            whole = b"\n".join(self._spread)
            if not _is_cut(whole):
                self._step(whole)
        if not self._over:
            self._fail(StreamCutError("the stream ended before the answer did; send the request again"))
        return self._out.take()

    def _read(self, line: bytes) -> None:
        if self._over:
            return
        if self._spread is not None:
            self._spread.append(line)
            return
        try:
            typed = _decode_line(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            if not self._out.started and not is_json(line):
                self._spread = [line]
            else:
                self._step(line)
            return
        if typed.done or not self._out.started:
            self._step(line)
            return
        self._created = typed.created_at
        self._say(typed.message.thinking, thinks=True)
        self._say(typed.message.content, thinks=False)

    def _say(self, text: str, *, thinks: bool) -> None:
        """More thinking, or more text. One that follows the other is a part of its own."""
        if not text:
            return
        if self._open is None or self._thinks is not thinks:
            self._end()
            self._thinks = thinks
            self._open = self._out.part("said", ThinkingPart() if thinks else None)
        self._out.add(self._open, text)

    def _end(self) -> None:
        if self._open is not None:
            self._out.close(self._open)
            self._open = None

    def _step(self, payload: bytes) -> None:
        """Any line but the usual one, and the first."""
        try:
            line = json_bytes.decode(payload)
            if not isinstance(line, dict):
                raise DecodeError("a line of the answer is no JSON object", body=payload)
            self._take(if_object(line), payload)
        except DragomanError as error:
            self._fail(error)
        except ValueError as error:
            self._fail(DecodeError(f"a piece of the answer is not JSON: {error}", body=payload))

    def _take(self, line: dict[str, Any], payload: bytes) -> None:
        if line.get("error"):
            raise error_of(line, body=payload)
        if not {"message", "response", "done"} & line.keys():
            raise DecodeError("a line of the answer holds no message and is not done", body=payload)
        message = line.get("message", {**line, "content": line.get("response")})  # or that of `/api/generate`
        if not isinstance(message, dict):
            raise DecodeError("the message of an answer is no JSON object", body=payload)
        if not self._out.started:
            self._out.origin = replace(self._out.origin or Origin(""), served_model=if_text(line.get("model")) or None)
            self._own = rest(if_object(line.get("message")), *_MESSAGE)
            self._out.start(native=marked(self._own))
        self._told |= {name: value for name, value in line.items() if value is not None}
        self._created = if_text(line.get("created_at")) or self._created
        add_fields(self._around, line)
        self._add(if_object(message), payload)
        if "message" in line:
            self._own |= rest(if_object(message), *_MESSAGE)
        if line.get("done"):
            self._finish()

    def _add(self, message: Mapping[str, Any], payload: bytes) -> None:
        for field, thinks in (("thinking", True), ("content", False)):
            text = message.get(field)
            if text is not None and not isinstance(text, str):
                raise DecodeError(f"the {field} of an answer is no text", body=payload)
            self._say(text or "", thinks=thinks)
        images, calls = load_images(message), if_list(message.get("tool_calls"))
        if images or calls:
            self._end()
        for image in images:
            self._out.whole(image)
        for call in calls:
            if not is_call(call):
                raise DecodeError("a call names no tool", body=payload)
            self._out.whole(load_call(call, self._fresh_id))

    def _fresh_id(self) -> str:
        return self._out.new_id() if self._out.new_id else f"call-{next(self._numbers)}"

    def _finish(self) -> None:
        self._over = True
        self._end()
        told = self._told.get("done_reason")
        reason = load_reason(told if isinstance(told, str) else None, bool(self._out.calls()))
        around = {**self._around, **({"created_at": self._created} if self._created else {})}
        if told is not None and told not in ("stop", "length"):
            around["done_reason"] = told
        self._out.finish(reason, load_usage(self._told), native=marked(self._own, response=around))

    def _fail(self, error: DragomanError) -> None:
        self._over = True
        self._out.fail(error)


def _is_cut(body: bytes) -> bool:
    """Whether it is the beginning of a JSON value, and no more."""
    try:
        json_bytes.decode(body)
    except ValueError as error:
        return "truncated" in str(error)
    return False
