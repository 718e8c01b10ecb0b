"""Reads a response. One state machine reads streams and whole responses.

A whole response is a stream of which only the terminal event came. That event has the last word:
what did not come before is taken from it, and what it corrects is amended. Encrypted reasoning, for
instance, differs from that in the item's own event. Nearly all events are deltas. `read_fast` reads
those by struct types that decode nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from dragoman.codec.emitter import OpenPart
from dragoman.codec.json_values import if_text, need_object, read_extra_fields
from dragoman.codec.response_decoder import MessageDecoder
from dragoman.errors import DecodeError
from dragoman.event import PARTIAL_IMAGE, Custom, OpenText
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, Origin
from dragoman.wires.openai_responses.decode_parts import OpenItems
from dragoman.wires.openai_responses.errors import error_of
from dragoman.wires.openai_responses.linking import content_digest
from dragoman.wires.openai_responses.quirks import OWN
from dragoman.wires.openai_responses.usage import load_echo, load_envelope, load_finish, load_usage

__all__ = ["Decoder", "decoder", "load_response"]

_BEGINNINGS = ("response.created", "response.queued", "response.in_progress")
_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")

_TOLD = {
    "response.image_generation_call.partial_image": PARTIAL_IMAGE,
    "response.shell_call_output_content.delta": "shell_call.output",
    "response.compaction.compacting": "compaction.compacting",
    "response.mcp_list_tools.failed": "mcp_list_tools.failed",
    "response.audio.transcript.delta": "audio.transcript",
}
"""Type of an event that no part of the message holds → the name of the `Custom` event that tells
it."""
_OF_STREAM = ("type", "sequence_number", "output_index", "obfuscation")
"""Fields of such an event that say something of the stream alone."""


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
"""Type of a delta → the kind of part that it adds to."""
_decode_delta = msgspec.json.Decoder(_Delta).decode


class Decoder(MessageDecoder):
    """Reads a streamed response, or a whole one."""

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        """Creates the Responses decoder. The arguments are those of `MessageDecoder`."""
        super().__init__(origin, new_id)
        self._out.origin = self._origin
        self._items = OpenItems(self._out)
        # The part that the last delta was for, and how deltas name it.
        self._part = OpenPart(-1, None, OpenText())
        self._delta_type: type[_Delta] | None = None
        self._item_index = self._place = -1

    def read_fast(self, payload: bytes) -> bool:
        """Reads a Responses stream's delta of the usual kinds. False if the event is another
        one."""
        try:
            delta = _decode_delta(payload)
        # A field that the decoder skips may nest too deep.
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        if (
            delta.output_index != self._item_index
            or delta.place != self._place
            or type(delta) is not self._delta_type
        ):
            try:
                part = self._items.part(_DELTAS[type(delta)], delta.output_index, delta.place)
            except DecodeError as error:
                self.fail(error.at(body=payload))
                return True
            if part is None:
                return True
            self._part = part
            self._delta_type, self._item_index, self._place = (
                type(delta),
                delta.output_index,
                delta.place,
            )
        self._out.add(self._part, delta.delta)
        return True

    def read_event(self, event: Json) -> None:
        """Reads any event of a Responses stream but a delta of the usual kinds."""
        self._delta_type = None
        event_type = event.get("type")
        if event_type in _BEGINNINGS:
            self._start(need_object(event.get("response"), "response"))
        elif event_type == "response.output_item.added":
            self._items.add(_item_index(event), need_object(event.get("item"), "item"))
        elif event_type == "response.output_item.done":
            self._items.finish(_item_index(event), need_object(event.get("item"), "item"))
        elif event_type in _ENDS:
            self._finish(need_object(event.get("response"), "response"))
        elif event_type is None and str(event.get("object")).startswith("response"):
            self._finish(event)
        elif event_type == "error" or (event_type is None and event.get("error")):
            raise error_of(event)
        elif isinstance(event_type, str):
            if name := _TOLD.get(event_type):
                self._out.start()
                self._events.append(Custom(name, read_extra_fields(event, *_OF_STREAM)))
            self._items.delta(event_type, event)
        else:
            raise DecodeError("the provider sent what is neither an event nor a response")

    def _start(self, response: JsonMap) -> None:
        """Begins the Responses message, or adds what is known of its origin."""
        fields: dict[str, str] = {}
        if model := if_text(response.get("model")):
            fields["served_model"] = model
        if response_id := if_text(response.get("id")):
            fields["response_id"] = response_id
        self._out.origin = msgspec.structs.replace(self._out.origin or Origin(""), **fields)
        self._out.start(native=OWN.note(echo=load_echo(response)))

    def _finish(self, response: Json) -> None:
        """Reads the terminal event, or a whole answer of the Responses API."""
        first_origin = self._out.origin if self._out.started else None
        self._start(response)
        # Items that had no events of their own, as in a whole response, are added here.
        self._items.settle(response.get("output"))
        self._over = True
        if response.get("status") == "failed":
            self._out.finish(FinishReason.error, load_usage(response.get("usage")), cut=True)
            raise error_of(response).at(partial=self._out.build_partial_message())
        refused = self._items.refused
        reason = load_finish(response, calls=False, refused=refused)
        self._out.close_all(cut=reason.value == "length")
        message = self._out.build_partial_message()
        # An answer to a request to count tokens holds the counts itself.
        counts_tokens = response.get("object") == "response.input_tokens"
        usage = response if counts_tokens else response.get("usage")
        native = OWN.note(
            echo=load_echo(response),
            response=load_envelope(response),
            digest=content_digest(message),
        )
        self._out.finish(
            load_finish(response, calls=bool(message.tool_calls), refused=refused),
            load_usage(usage),
            origin=self._out.origin if self._out.origin != first_origin else None,
            native=native,
        )


decoder, load_response = Decoder.create, Decoder.load_response


def _item_index(event: JsonMap) -> int | None:
    """Returns the index of the Responses item that an event is about, or None."""
    index = event.get("output_index")
    if isinstance(index, int):
        return index
    return None
