"""Reads a response. One state machine reads streamed lines and a whole response, which is a single
line that is done.

Nearly all lines of a stream add to the text or the thinking. `read_fast` reads those by struct types
that decode nothing else. Every other line is decoded as JSON and goes through `take`. What the
lines hold beside the message is collected: the last value of each field counts.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import msgspec
from msgspec.structs import replace

from dragoman.codec.emitter import OpenPart
from dragoman.codec.framing import LineStream
from dragoman.codec.json_values import if_list, if_object, if_text, read_extra_fields
from dragoman.codec.response_decoder import MessageDecoder
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
    """A line that nearly all of a stream consists of. Other lines do not fit and are read as plain
    JSON."""

    message: _Message
    model: str
    created_at: str
    done: bool


_decode_line = msgspec.json.Decoder(_Line).decode
_MESSAGE = ("role", "content", "thinking", "tool_calls", "images")


class Decoder(MessageDecoder):
    """Reads the lines of a response."""

    FRAMES = LineStream

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        """Creates the Ollama decoder. The arguments are those of `MessageDecoder`."""
        super().__init__(origin, new_id)
        self._calls = 0
        self._numbers = count()
        # The text or thinking that is open, and whether it is thinking.
        self._open: OpenPart | None = None
        self._thinks = False
        self._created = ""
        self._last: Json = {}
        """The last value of each field of all lines, such as counts and the reason."""
        self._envelope: Json = {}
        self._own: Json = {}
        """Further fields of the message."""

    def read_fast(self, payload: bytes) -> bool:
        """Reads an Ollama line with more thinking or more text. False if it is another one."""
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
        """Adds an Ollama line's delta to the thinking or the text. One that follows the other
        becomes a part of its own."""
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
        """Reads any line of an Ollama stream but the ordinary ones, and the first one."""
        if event.get("error"):
            raise error_of(event)
        if not {"message", "response", "done"} & event.keys():
            raise DecodeError("a line of the answer holds no message and is not done")
        # A line of `/api/generate` holds the text itself, in `response`.
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
        """Adds an Ollama message: thinking, text, images and calls."""
        # A line may hold both. The model thinks before it answers.
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
        """Returns an id for an Ollama call that came without one."""
        if self._out.new_id:
            return self._out.new_id()
        return f"call-{next(self._numbers)}"

    def _finish(self) -> None:
        """Finishes the Ollama message with the counts and the reason of all lines."""
        self._over = True
        self._close()
        vendor_reason = self._last.get("done_reason")
        word = vendor_reason if isinstance(vendor_reason, str) else None
        reason = load_finish(word, bool(self._out.calls()))
        envelope = {**self._envelope}
        if self._created:
            envelope["created_at"] = self._created
        if vendor_reason is not None and vendor_reason not in ("stop", "length"):
            envelope["done_reason"] = vendor_reason
        native = OWN.note(self._own, response=envelope)
        self._out.finish(reason, load_usage(self._last), native=native)


decoder, load_response = Decoder.create, Decoder.load_response
