"""Writes events as a response. A whole response is what the terminal event of its stream holds.

The API writes one item at a time, while events of several parts may mix. The part whose first delta
came first has its turn (`_turn`). Deltas of others wait in `_waiting` until that part ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import takewhile
from typing import Any, cast

from dragoman.codec.json_values import if_object, read_extra_fields
from dragoman.codec.response_encoder import NO_OBJECTS, Objects, ResponseEncoder, frame_typed_event
from dragoman.codec.response_state import ResponseState, drop_retracted, name_model
from dragoman.codec.serving import SSE_PING
from dragoman.errors import DragomanError
from dragoman.event import (
    PARTS_DROPPED,
    Custom,
    Event,
    MessageDropped,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
)
from dragoman.fold import close_part
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss
from dragoman.message import Content, FinishReason, Native, Role, ThinkingPart, ToolCallPart
from dragoman.request import ModelRequest
from dragoman.wires.openai_responses.content import dump_reasoning
from dragoman.wires.openai_responses.encode_parts import ItemWriter
from dragoman.wires.openai_responses.errors import code_of, dump_error
from dragoman.wires.openai_responses.quirks import OWN
from dragoman.wires.openai_responses.request import dump_request
from dragoman.wires.openai_responses.tools import IMAGE_CALL, choose_item_type
from dragoman.wires.openai_responses.usage import (
    REPEATED,
    USUAL,
    dump_finish,
    dump_usage,
    load_echo,
)

__all__ = ["Encoder", "dump_response", "encoder", "envelope", "ping", "stream_type"]

stream_type = "text/event-stream"
"""Media type of a streamed response."""
ping = SSE_PING
"""Bytes that keep a stream open."""

_CODES = ("server_error", "rate_limit_exceeded", "invalid_prompt")
"""Codes of errors that a response may hold. Any other code stands before the error's words."""


def encoder(**envelope: Any) -> Encoder:
    """Returns an encoder for one response. `envelope`: fields of the response (`id`, `model`,
    `created_at`, `tools` …), which replace those of the events."""
    return Encoder(envelope)


def dump_response(
    events: Iterable[Event], *, losses: list[Loss] | None = None, **envelope: Any
) -> Json:
    """Writes a whole answer of the Responses API. If one of the events is an error, returns the
    error's body. `envelope`: as for `encoder`."""
    writer = Encoder(envelope)
    for event in drop_retracted(events, losses):
        if isinstance(event, RunError):
            return dump_error(event.error).body
        writer.objects(event)
    writer.close()
    return writer.response


def envelope(request: ModelRequest | None, *, id: str, now: datetime) -> Json:  # noqa: A002
    """Returns the fields of a Responses answer that no event holds: its id, when it was made, and
    what it repeats of the request."""
    response_id = f"resp_{id.removeprefix('resp_')}"
    fields: Json = {"id": response_id, "created_at": int(now.timestamp())}
    if request is None:
        return fields
    # The instructions are made of the first system messages. No other message is repeated.
    head = takewhile(lambda message: message.role is Role.SYSTEM, request.messages)
    body = dump_request(request.replace(messages=head))
    for field in ("model", *REPEATED):
        value = body.get(field)
        if isinstance(value, dict):
            value = {**if_object(USUAL.get(field)), **cast("Json", value)}
        if value is not None:
            fields[field] = value
    return fields


def _envelope(native: Native) -> Json:
    """Returns a response's own fields, and those that it repeats of its request."""
    return {**if_object(OWN.notes(native).get("echo")), **OWN.response(native)}


class Encoder(ResponseEncoder):
    """Writes the events of the model's messages as Server-Sent Events. Several messages become the
    items of one response."""

    EMPTY = True

    def __init__(self, envelope: JsonMap) -> None:
        """Creates the encoder. `envelope`: fields of the response, which replace those of the
        events."""
        super().__init__(OWN, envelope)
        self._state = ResponseState(_envelope)
        self.response: Json = {}
        """The response, as far as it is known."""
        self._objects: list[JsonMap] = []
        self._sequence = 0
        self._writer = ItemWriter(self._add)
        # Open parts as they began, and the items of the parts that are written.
        self._parts: dict[tuple[str, int], Content] = {}
        self._items: dict[tuple[str, int], Json] = {}
        self._turn: tuple[str, int] | None = None
        # Deltas of the part that has its turn.
        self._deltas: list[str | bytes] = []
        self._waiting: dict[tuple[str, int], list[PartDelta | PartFinished]] = {}
        self._dropped: list[Json] = []
        """Items that were taken back."""

    def message_started(self, event: MessageStarted, *, first: bool) -> Objects:  # noqa: ARG002
        self._begin()
        return self._take_objects()

    def part_started(self, event: PartStarted) -> Objects:
        """See `ResponseEncoder`. An item begins with the first delta."""
        self._parts[event.message_id, event.index] = event.part
        return NO_OBJECTS

    def delta(self, event: PartDelta) -> Objects:
        return self._part(event)

    def part_finished(self, event: PartFinished) -> Objects:
        return self._part(event)

    def custom(self, event: Custom) -> Objects:
        """Writes a partial image into the Responses stream, unless another part has its turn, or takes
        parts back."""
        if event.name == PARTS_DROPPED:
            return self._drop_parts(event.value)
        key = self._find_image_call()
        if key is None or self._turn not in (None, key):
            return NO_OBJECTS
        self._turn = key
        call = cast("ToolCallPart", self._parts[key])
        self._writer.show_image(call, if_object(event.value))
        return self._take_objects()

    def _drop_parts(self, indexes: Sequence[int]) -> Objects:
        """Leaves these parts out of the response with which the stream ends."""
        for key in [key for key in self._waiting if key[1] in indexes]:
            del self._waiting[key]
        for key in reversed([key for key in self._items if key[1] in indexes]):
            item = self._items[key]
            neighbours = [other for other, value in self._items.items() if value is item]
            blocks: list[Json] = item.get("content", []) if item.get("type") == "message" else []
            # Texts of several parts may stand in one item, each as a block.
            position = neighbours.index(key)
            blocks[position : position + 1] = []
            del self._items[key]
            if not blocks:
                self._dropped.append(item)
        self._writer.end_item()
        return self._take_objects()

    def _list_output(self) -> list[Json]:
        """Returns the items of the response, without those that were taken back."""
        return [
            item
            for item in self._writer.output
            if not any(item is dropped for dropped in self._dropped)
        ]

    def _find_image_call(self) -> tuple[str, int] | None:
        """Returns the key of the newest part of the Responses stream that is an open call of an
        image; `None`: there is none."""
        for key, part in reversed(self._parts.items()):
            if key in self._items or not isinstance(part, ToolCallPart):
                continue
            if choose_item_type(part) == IMAGE_CALL:
                return key
        return None

    def message_dropped(self, event: MessageDropped) -> Objects:
        """Implements `ResponseEncoder.message_dropped` for the Responses API. Nothing more of the
        message is written."""
        dropped = event.message_id
        self._waiting = {key: events for key, events in self._waiting.items() if key[0] != dropped}
        if self._turn is not None and self._turn[0] == dropped:
            self._end_turn()
        self._items = {key: item for key, item in self._items.items() if key[0] != dropped}
        self._parts = {key: part for key, part in self._parts.items() if key[0] != dropped}
        self._go_on()
        return self._take_objects()

    def error(self, error: DragomanError) -> Objects:
        """Returns the event that ends the Responses stream as failed, or an event `error` before it
        has begun."""
        code, message = code_of(error), error.message
        # An error before the response has begun is an event of its own.
        if not self.response:
            self._add("error", code=code, message=message, param=None)
            return self._take_objects()
        if code not in _CODES:
            code, message = "server_error", f"{code}: {message}"
        fields = {
            "status": "failed",
            "error": {"code": code, "message": message},
            "output": self._list_output(),
        }
        self.response |= fields
        self._add("failed", response=self.response)
        return self._take_objects()

    def end(self) -> Objects:
        """Returns the events that end the Responses stream: completed, incomplete or failed."""
        self._begin()
        while self._turn is not None:
            self._end_turn()
            self._go_on()
        self._writer.end_item()
        reason, fields, usage = self._state.reason, self._state.envelope, self._state.usage
        status = dump_finish(reason)
        # A status that fits the reason, and what a vendor said beside it, stay as they came.
        if reason in (None, FinishReason.unspecified) or fields.get("status") == status["status"]:
            status = {key: fields.get(key, value) for key, value in status.items()}
        usage_fields = None
        if usage is not None:
            usage_fields = dump_usage(usage, if_object(fields.get("usage")), complete=not fields)
        self.response |= {
            **read_extra_fields(fields, "usage", *status),
            **status,
            "output": self._list_output(),
            "usage": usage_fields,
        }
        self.response |= read_extra_fields(self._envelope, "output", "usage")
        ending = "incomplete" if self.response["status"] == "incomplete" else "completed"
        self._add(ending, response=self.response)
        return self._take_objects()

    def frame(self, data: JsonMap) -> bytes:
        return frame_typed_event(data)

    def _begin(self) -> None:
        """Begins the Responses stream, if it has not begun."""
        if self.response:
            return
        state, origin = self._state, self._state.origin
        self.response = {
            "id": (origin and origin.response_id) or f"resp_{state.id}",
            "object": "response",
            "created_at": state.envelope.get("created_at", 0),
            "status": "in_progress",
            "error": None,
            "incomplete_details": None,
            "model": name_model(origin),
            "output": [],
            "usage": None,
            **USUAL,
            **load_echo(state.envelope),
            **read_extra_fields(self._envelope, "output", "usage", "status"),
        }
        self._writer.response_id = str(self.response["id"])
        begun = dict(self.response)
        self._add("created", response=begun)
        self._add("in_progress", response=begun)

    def _part(self, event: PartDelta | PartFinished) -> Objects:
        """Writes a delta or the end of a part of a Responses answer, and what waited for it."""
        self._write(event)
        self._go_on()
        return self._take_objects()

    def _write(self, event: PartDelta | PartFinished) -> None:
        """Writes a delta or the end of a part of a Responses answer, or lets it wait if another
        part has its turn."""
        key = (event.message_id, event.index)
        if key in self._items:
            # A signature may come after the item was written.
            if isinstance(event, PartFinished) and isinstance(event.part, ThinkingPart):
                self._items[key].update(dump_reasoning(event.part))
        elif self._turn is not None and self._turn != key:
            self._waiting.setdefault(key, []).append(event)
        elif isinstance(event, PartFinished):
            self._turn = key
            self._end_turn(event.part)
        elif (part := self._parts.get(key)) is not None:
            self._turn = key
            self._deltas.append(event.delta)
            self._writer.more(part, str(event.delta))

    def _go_on(self) -> None:
        """Writes the parts of a Responses stream that wait, as far as it has its turn."""
        while self._waiting and self._turn is None:
            for event in self._waiting.pop(next(iter(self._waiting))):
                self._write(event)

    def _end_turn(self, part: Content | None = None) -> None:
        """Ends the part of a Responses answer that has its turn. `part`: the whole part; without it
        the part ends as far as it was written."""
        if self._turn is None:
            return
        began = self._parts.get(self._turn, OpenText())
        part = part or close_part(began, self._deltas, cut=True) or began
        self._items[self._turn] = self._writer.end(part) or {}
        self._turn = None
        self._deltas.clear()

    def _add(self, event_name: str, /, **fields: Any) -> None:
        """Adds an event of the Responses API with the next sequence number."""
        # The event of an error is the only one without the prefix.
        event_type = "error" if event_name == "error" else f"response.{event_name}"
        self._objects.append({"type": event_type, "sequence_number": self._sequence, **fields})
        self._sequence += 1

    def _take_objects(self) -> Objects:
        objects, self._objects = self._objects, []
        return objects
