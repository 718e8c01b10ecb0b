"""A response → events: one state machine for lines and for a whole one, which is a single line that
is done."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import msgspec
from msgspec.structs import replace

from dragoman.codec.decoder import MessageDecoder
from dragoman.codec.emitter import OpenPart
from dragoman.codec.framing import LineStream
from dragoman.codec.json_values import if_list, if_object, if_text, read_extra_fields
from dragoman.errors import DecodeError
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Origin, ThinkingPart
from dragoman.wires.ollama.content import load_images
from dragoman.wires.ollama.errors import error_of
from dragoman.wires.ollama.quirks import OWN
from dragoman.wires.ollama.tools import drop_call_index, is_call, load_call
from dragoman.wires.ollama.usage import add_fields, load_finish, load_usage

__all__ = ["Decoder", "decoder", "load_response"]


class _Message(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    role: str = ""
    content: str = ""
    thinking: str = ""


class _Line(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The lines that nearly all of a stream consists of; all others are read as plain JSON."""

    message: _Message
    model: str
    created_at: str
    done: bool


_decode_line = msgspec.json.Decoder(_Line).decode
_MESSAGE = ("role", "content", "thinking", "tool_calls", "images")


class Decoder(MessageDecoder):
    """Lines, or a whole response, which is a single line that is done → events."""

    FRAMES = LineStream

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        """See `MessageDecoder`."""
        super().__init__(origin, new_id)
        self._calls = 0
        self._numbers = count()
        # the text or thinking that deltas go to
        self._open: OpenPart | None = None
        self._thinks = False  # it is thinking
        self._created = ""
        # the fields of all lines, as they were last: counts, reason
        self._last: Json = {}
        self._envelope: Json = {}
        # further fields of the message
        self._own: Json = {}

    def read_fast(self, payload: bytes) -> bool:
        """More thinking, or more text."""
        try:
            line = _decode_line(payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        if line.done or not self._out.started:
            return False
        self._created = line.created_at
        self._add_text(line.message.thinking, thinks=True)
        self._add_text(line.message.content, thinks=False)
        return True

    def _add_text(self, text: str, *, thinks: bool) -> None:
        """More thinking, or more text. One that follows the other is a part of its own."""
        if not text:
            return
        if self._open is None or self._thinks is not thinks:
            self._close()
            self._thinks = thinks
            self._open = self._out.ensure_part("text", ThinkingPart() if thinks else None)
        self._out.add(self._open, text)

    def _close(self) -> None:
        if self._open is not None:
            self._out.close(self._open)
            self._open = None

    def read_event(self, event: Json) -> None:
        """Any line but the usual one, and the first."""
        if event.get("error"):
            raise error_of(event)
        if not {"message", "response", "done"} & event.keys():
            raise DecodeError("a line of the answer holds no message and is not done")
        # or that of `/api/generate`
        message = event.get("message", {**event, "content": event.get("response")})
        if not isinstance(message, dict):
            raise DecodeError("the message of an answer is no JSON object")
        if not self._out.started:
            self._out.origin = replace(
                self._out.origin or Origin(""), served_model=if_text(event.get("model")) or None
            )
            self._own = read_extra_fields(if_object(event.get("message")), *_MESSAGE)
            self._out.start(native=OWN.note(self._own))
        self._last |= {name: value for name, value in event.items() if value is not None}
        self._created = if_text(event.get("created_at")) or self._created
        add_fields(self._envelope, event)
        self._add(if_object(message))
        if "message" in event:
            self._own |= read_extra_fields(if_object(message), *_MESSAGE)
        if event.get("done"):
            self._finish()

    def _add(self, message: JsonMap) -> None:
        for field, thinks in (("thinking", True), ("content", False)):
            text = message.get(field)
            if text is not None and not isinstance(text, str):
                raise DecodeError(f"the {field} of an answer is no text")
            self._add_text(text or "", thinks=thinks)
        images, calls = load_images(message), if_list(message.get("tool_calls"))
        if images or calls:
            self._close()
        for image in images:
            self._out.add_whole_part(image)
        for call in calls:
            if not is_call(call):
                raise DecodeError("a call names no tool")
            self._out.add_whole_part(load_call(drop_call_index(call, self._calls), self._fresh_id))
            self._calls += 1

    def _fresh_id(self) -> str:
        return self._out.new_id() if self._out.new_id else f"call-{next(self._numbers)}"

    def _finish(self) -> None:
        self._over = True
        self._close()
        why = self._last.get("done_reason")
        reason = load_finish(why if isinstance(why, str) else None, bool(self._out.calls()))
        envelope = {**self._envelope, **({"created_at": self._created} if self._created else {})}
        if why is not None and why not in ("stop", "length"):
            envelope["done_reason"] = why
        self._out.finish(
            reason, load_usage(self._last), native=OWN.note(self._own, response=envelope)
        )


decoder, load_response = Decoder.create, Decoder.load_response
