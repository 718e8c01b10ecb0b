"""A response → events: one state machine for streamed and whole ones.

A whole response is a stream of which only the terminal event came. That one is the authority: what
did not come before it is taken from it, and what it corrects (encrypted reasoning differs from that
of the item's own event) is amended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from dragoman.codec.decoder import MessageDecoder
from dragoman.codec.emitter import OpenPart
from dragoman.codec.json_values import need_object, read_extra_fields
from dragoman.errors import DecodeError
from dragoman.event import Custom, OpenText
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, Origin
from dragoman.wires.openai_responses.decode_parts import OpenItems
from dragoman.wires.openai_responses.errors import error_of
from dragoman.wires.openai_responses.linking import content_digest
from dragoman.wires.openai_responses.quirks import OWN
from dragoman.wires.openai_responses.usage import load_echo, load_envelope, load_finish, load_usage

__all__ = ["PARTIAL_IMAGE", "Decoder", "decoder", "load_response"]

PARTIAL_IMAGE = "image_generation.partial_image"
"""Name of the event that shows an image which is not finished yet; its value holds the fields of
the API's own event."""
_BEGINNINGS = ("response.created", "response.queued", "response.in_progress")
_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")


class _Text(msgspec.Struct, tag_field="type", tag="response.output_text.delta", gc=False):
    delta: str
    output_index: int
    place: int = msgspec.field(name="content_index")


class _Refusal(msgspec.Struct, tag_field="type", tag="response.refusal.delta", gc=False):
    delta: str
    output_index: int
    place: int = msgspec.field(name="content_index")


class _Summary(
    msgspec.Struct, tag_field="type", tag="response.reasoning_summary_text.delta", gc=False
):
    delta: str
    output_index: int
    place: int = msgspec.field(name="summary_index")


class _Thinking(msgspec.Struct, tag_field="type", tag="response.reasoning_text.delta", gc=False):
    delta: str
    output_index: int
    place: int = msgspec.field(name="content_index")


class _Arguments(
    msgspec.Struct, tag_field="type", tag="response.function_call_arguments.delta", gc=False
):
    delta: str
    output_index: int
    place: int = 0


_Delta = _Text | _Refusal | _Summary | _Thinking | _Arguments
_DELTAS: Mapping[type, str] = {
    _Text: "text",
    _Refusal: "refusal",
    _Summary: "summary",
    _Thinking: "content",
    _Arguments: "call",
}
"""Type of a delta → what it is more of."""
_decode_delta = msgspec.json.Decoder(_Delta).decode


class Decoder(MessageDecoder):
    """A streamed response, or a whole one → events."""

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        """See `MessageDecoder`."""
        super().__init__(origin, new_id)
        self._out.origin = self._origin
        self._items = OpenItems(self._out)
        self._part = OpenPart(
            -1, None, OpenText()
        )  # which deltas are coming for, and its names in them
        self._kind: type[_Delta] | None = None
        self._index = self._place = -1

    def read_fast(self, payload: bytes) -> bool:
        """A delta of the usual kinds."""
        try:
            delta = _decode_delta(payload)
        except (
            msgspec.DecodeError,
            UnicodeDecodeError,
            RecursionError,
        ):  # fields that it passes over may nest
            return False
        if (
            delta.output_index != self._index
            or delta.place != self._place
            or type(delta) is not self._kind
        ):
            try:
                part = self._items.part(_DELTAS[type(delta)], delta.output_index, delta.place)
            except DecodeError as error:
                self.fail(error.at(body=payload))
                return True
            if part is None:
                return True
            self._part = part
            self._kind, self._index, self._place = type(delta), delta.output_index, delta.place
        self._out.add(self._part, delta.delta)
        return True

    def read_event(self, event: Json) -> None:
        """Any event but a delta of the usual kinds."""
        self._kind = None
        kind = event.get("type")
        if kind in _BEGINNINGS:
            self._start(need_object(event.get("response"), "response"))
        elif kind == "response.output_item.added":
            self._items.add(_index(event), need_object(event.get("item"), "item"))
        elif kind == "response.output_item.done":
            self._items.finish(_index(event), need_object(event.get("item"), "item"))
        elif kind in _ENDS:
            self._finish(need_object(event.get("response"), "response"))
        elif kind is None and str(event.get("object")).startswith("response"):
            self._finish(event)
        elif kind == "error" or (kind is None and event.get("error")):
            raise error_of(event)
        elif kind == "response.image_generation_call.partial_image":
            self._out.start()
            self._events.append(
                Custom(
                    PARTIAL_IMAGE,
                    read_extra_fields(event, "type", "sequence_number", "output_index"),
                )
            )
        elif isinstance(kind, str):
            if kind.endswith(".delta") and isinstance(delta := event.get("delta"), str):
                self._items.delta(kind, event, delta)
        else:
            raise DecodeError("the provider sent what is neither an event nor a response")

    def _start(self, response: JsonMap) -> None:
        given = {"served_model": response.get("model"), "response_id": response.get("id")}
        known = {name: value for name, value in given.items() if isinstance(value, str) and value}
        self._out.origin = msgspec.structs.replace(self._out.origin or Origin(""), **known)
        self._out.start(native=OWN.note(echo=load_echo(response)))

    def _finish(self, response: Json) -> None:
        """The terminal event, or the whole response."""
        began = self._out.origin if self._out.started else None
        self._start(response)
        self._items.settle(response.get("output"))
        self._over = True
        if response.get("status") == "failed":
            self._out.finish(FinishReason.error, load_usage(response.get("usage")), cut=True)
            raise error_of(response).at(partial=self._out.build_partial_message())
        reason = load_finish(response, calls=False, refused=self._items.refused)
        self._out.close_all(cut=reason.value == "length")
        message = self._out.build_partial_message()
        usage = (
            response if response.get("object") == "response.input_tokens" else response.get("usage")
        )
        self._out.finish(
            load_finish(response, calls=bool(message.tool_calls), refused=self._items.refused),
            load_usage(usage),
            origin=self._out.origin if self._out.origin != began else None,
            native=OWN.note(
                echo=load_echo(response),
                response=load_envelope(response),
                digest=content_digest(message),
            ),
        )


decoder, load_response = Decoder.create, Decoder.load_response


def _index(event: JsonMap) -> int | None:
    index = event.get("output_index")
    return index if isinstance(index, int) else None
