"""A response → events: one state machine for streamed and whole ones.

A whole response is a stream of which only the terminal event came. That one is the authority: what was not told before
is told from it, and what it corrects (encrypted reasoning differs from that of the item's own event) is amended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from dragoman import json_bytes
from dragoman.codec.emitter import Emitter, OpenPart
from dragoman.codec.framing import EventStream
from dragoman.codec.json_values import body_bytes, need_object, rest
from dragoman.errors import DecodeError, DragomanError, StreamCutError
from dragoman.event import Custom, Event, OpenText
from dragoman.message import FinishReason, Origin
from dragoman.wires.openai_responses.delta import DELTAS, Delta, decode_delta
from dragoman.wires.openai_responses.errors import error_of
from dragoman.wires.openai_responses.linking import content_digest
from dragoman.wires.openai_responses.outcome import around, echo, load_finish, load_usage, other_usage
from dragoman.wires.openai_responses.quirks import OWN
from dragoman.wires.openai_responses.told import ToldItems

__all__ = ["PARTIAL_IMAGE", "Decoder", "decoder", "load_response"]

PARTIAL_IMAGE = "image_generation.partial_image"
"""Name of the event that shows an image which is not finished yet; its value holds the fields of the API's own event."""
_BEGINNINGS = ("response.created", "response.queued", "response.in_progress")
_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")


def decoder(*, origin: Origin | None = None, new_id: Callable[[], str] | None = None) -> Decoder:
    """A decoder of one response. `new_id` mints the message's id."""
    return Decoder(origin, new_id)


def load_response(
    body: bytes | Mapping[str, Any], *, origin: Origin | None = None, new_id: Callable[[], str] | None = None
) -> list[Event]:
    """A whole response → the events that its stream would have been; an error's body → `RunError`.

    Raises:
        DecodeError: a body that is given as a value nests too deep.
    """
    reader = Decoder(origin, new_id)
    return [*reader.feed(body_bytes(body)), *reader.close()]


class Decoder:
    """A streamed response → events. What comes after an error, or after the end, is ignored."""

    def __init__(self, origin: Origin | None, new_id: Callable[[], str] | None) -> None:
        self._stream = EventStream()
        self._out = Emitter(new_id, origin=origin or Origin(""))
        self._items = ToldItems(self._out)
        self._over = False
        self._part = OpenPart(-1, None, OpenText())  # which deltas are coming for, and how they name it
        self._kind: type[Delta] | None = None
        self._index = self._place = -1

    def feed(self, data: bytes) -> list[Event]:
        """More bytes, cut anywhere → the events that they complete."""
        for payload in self._stream.feed(data):
            self._read(payload)
        return self._out.take()

    def close(self) -> list[Event]:
        """The end of the bytes. An answer whose terminal event never came was cut."""
        for payload in self._stream.close():
            self._read(payload, last=True)
        if self._stream.body is not None:
            self._read(self._stream.body)
        if not self._over:
            self._fail(StreamCutError("the stream ended before the answer did. Send the request again."))
        return self._out.take()

    def _read(self, payload: bytes, *, last: bool = False) -> None:
        """One event. `last`: no blank line ended it, so that it may be the first half of one."""
        if self._over:
            return
        try:
            delta = decode_delta(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # fields that it passes over may nest
            self._step(payload, last=last)
            return
        if delta.output_index != self._index or delta.place != self._place or type(delta) is not self._kind:
            try:
                part = self._items.part(DELTAS[type(delta)], delta.output_index, delta.place)
            except DecodeError as error:
                self._fail(error.at(body=payload))
                return
            if part is None:
                return
            self._part = part
            self._kind, self._index, self._place = type(delta), delta.output_index, delta.place
        self._out.add(self._part, delta.delta)

    def _step(self, payload: bytes, *, last: bool) -> None:
        """Any event but a delta of the usual kinds."""
        if payload.strip() in (b"", b"[DONE]"):
            return
        self._kind = None
        try:
            event: Any = json_bytes.decode(payload)
        except ValueError as error:
            if not last:
                shown = payload[:200].decode(errors="replace")
                self._fail(DecodeError(f"the provider sent what is no JSON ({error}): {shown}", body=payload))
            return
        try:
            self._take(need_object(event, "an event"), payload)
        except DecodeError as error:
            self._fail(error.at(body=payload))

    def _take(self, event: dict[str, Any], payload: bytes) -> None:
        kind = event.get("type")
        if kind in _BEGINNINGS:
            self._start(need_object(event.get("response"), "response"))
        elif kind == "response.output_item.added":
            self._items.add(_index(event), need_object(event.get("item"), "item"))
        elif kind == "response.output_item.done":
            self._items.finish(_index(event), need_object(event.get("item"), "item"))
        elif kind in _ENDS:
            self._finish(need_object(event.get("response"), "response"), payload)
        elif kind is None and str(event.get("object")).startswith("response"):
            self._finish(event, payload)
        elif kind == "error" or (kind is None and event.get("error")):
            self._fail(error_of(event, body=payload))
        elif kind == "response.image_generation_call.partial_image":
            self._out.start()
            self._out.events.append(Custom(PARTIAL_IMAGE, rest(event, "type", "sequence_number", "output_index")))
        elif isinstance(kind, str):
            if kind.endswith(".delta") and isinstance(delta := event.get("delta"), str):
                self._items.delta(kind, event, delta)
        else:
            raise DecodeError("the provider sent what is neither an event nor a response")

    def _start(self, response: Mapping[str, Any]) -> None:
        told = {"served_model": response.get("model"), "response_id": response.get("id")}
        known = {name: value for name, value in told.items() if isinstance(value, str) and value}
        self._out.origin = msgspec.structs.replace(self._out.origin or Origin(""), **known)
        self._out.start(native=OWN.note(echo=echo(response)))

    def _finish(self, response: dict[str, Any], payload: bytes) -> None:
        """The terminal event, or the whole response."""
        began = self._out.origin if self._out.started else None
        self._start(response)
        self._items.settle(response.get("output"))
        self._over = True
        if response.get("status") == "failed":
            self._out.finish(FinishReason.error, load_usage(response.get("usage")), cut=True)
            error = error_of(response, body=payload)
            error.at(partial=self._out.partial())
            self._out.fail(error)
            return
        reason = load_finish(response, calls=False, refused=self._items.refused)
        self._out.close_all(cut=reason.value == "length")
        message = self._out.partial()
        usage = response if response.get("object") == "response.input_tokens" else response.get("usage")
        told = around(response)
        if other := other_usage(response.get("usage")):
            told["usage"] = other
        self._out.finish(
            load_finish(response, calls=bool(message.tool_calls), refused=self._items.refused),
            load_usage(usage),
            origin=self._out.origin if self._out.origin != began else None,
            native=OWN.note(echo=echo(response), response=told, digest=content_digest(message)),
        )

    def _fail(self, error: DragomanError) -> None:
        self._over = True
        self._out.fail(error)


def _index(event: Mapping[str, Any]) -> int | None:
    index = event.get("output_index")
    return index if isinstance(index, int) else None
