"""Events → a response. A whole one is what the terminal event of its stream holds."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import takewhile
from typing import Any

from dragoman.codec.encoder import NO_OBJECTS, Objects, ResponseEncoder, frame_typed_event
from dragoman.codec.json_values import if_object, read_extra_fields
from dragoman.codec.response import ResponseState, drop_retracted, name_model
from dragoman.codec.serving import SSE_PING
from dragoman.errors import DragomanError
from dragoman.event import (
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
from dragoman.message import Content, FinishReason, Native, Role, ThinkingPart
from dragoman.request import ModelRequest
from dragoman.wires.openai_responses.content import dump_reasoning
from dragoman.wires.openai_responses.encode_parts import ItemWriter
from dragoman.wires.openai_responses.errors import code_of, dump_error
from dragoman.wires.openai_responses.quirks import OWN
from dragoman.wires.openai_responses.request import dump_request
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
"""Keeps a stream open and says nothing."""

_CODES = ("server_error", "rate_limit_exceeded", "invalid_prompt")
"""Codes of errors that a response may hold, as the API has them; another stands before the error's
words."""


def encoder(**envelope: Any) -> Encoder:
    """An encoder of one response. `envelope`: fields of the response (`id`, `model`, `created_at`,
    `tools` …), which replace those of the events."""
    return Encoder(envelope)


def dump_response(
    events: Iterable[Event], *, losses: list[Loss] | None = None, **envelope: Any
) -> Json:
    """Events → a whole response; an error's body where they tell of an error. `envelope`: as for
    `encoder`."""
    writer = Encoder(envelope)
    for event in drop_retracted(events, losses):
        if isinstance(event, RunError):
            return dump_error(event.error).body
        writer.objects(event)
    writer.close()
    return writer.response


def envelope(request: ModelRequest | None, *, id: str, now: datetime) -> Json:  # noqa: A002
    """What a response holds that no event tells: its id, when it was made, and what it repeats of
    the request."""
    fields: Json = {
        "id": f"resp_{id.removeprefix('resp_')}",
        "created_at": int(now.timestamp()),
    }
    if request is None:
        return fields
    head = takewhile(
        lambda message: message.role is Role.SYSTEM, request.messages
    )  # of which the instructions are made
    body = dump_request(request.replace(messages=head))
    for field in ("model", *REPEATED):
        if (value := body.get(field)) is not None:
            fields[field] = (
                {**if_object(USUAL.get(field)), **value} if isinstance(value, dict) else value
            )
    return fields


def _envelope(native: Native) -> Json:
    """A response's own fields, and those that it repeats of its request."""
    return {**if_object(OWN.notes(native).get("echo")), **OWN.response(native)}


class Encoder(ResponseEncoder):
    """Events of the model's messages → Server-Sent Events. Several messages become the items of one
    response.

    One part is written at a time: what comes of others meanwhile waits for its turn.
    """

    EMPTY = True

    def __init__(self, envelope: JsonMap) -> None:
        """`envelope`: fields of the response, which replace those of the events."""
        super().__init__(OWN, envelope)
        self._state = ResponseState(_envelope)
        self.response: Json = {}
        """The response, as far as it is known."""
        self._objects: list[JsonMap] = []
        self._sequence = 0
        self._writer = ItemWriter(self._add)
        self._parts: dict[tuple[str, int], Content] = {}  # parts that are open, as they began
        self._items: dict[tuple[str, int], Json] = {}  # of each part that is written, its item
        self._turn: tuple[str, int] | None = None
        self._deltas: list[str | bytes] = []  # of the part that has its turn
        self._waiting: dict[tuple[str, int], list[PartDelta | PartFinished]] = {}

    def message_started(self, event: MessageStarted, *, first: bool) -> Objects:  # noqa: ARG002
        self._begin()
        return self._taken()

    def part_started(self, event: PartStarted) -> Objects:
        """See `ResponseEncoder`. An item begins with the first delta."""
        self._parts[event.message_id, event.index] = event.part
        return NO_OBJECTS

    def delta(self, event: PartDelta) -> Objects:
        return self._part(event)

    def part_finished(self, event: PartFinished) -> Objects:
        return self._part(event)

    def message_dropped(self, event: MessageDropped) -> Objects:
        """See `ResponseEncoder`. Nothing more of it is written."""
        dropped = event.message_id
        self._waiting = {key: events for key, events in self._waiting.items() if key[0] != dropped}
        if self._turn is not None and self._turn[0] == dropped:
            self._end_turn()
        self._items = {key: item for key, item in self._items.items() if key[0] != dropped}
        self._parts = {key: part for key, part in self._parts.items() if key[0] != dropped}
        self._go_on()
        return self._taken()

    def error(self, error: DragomanError) -> Objects:
        code, message = code_of(error), error.message
        if not self.response:
            self._add("error", code=code, message=message, param=None)
            return self._taken()
        if code not in _CODES:
            code, message = "server_error", f"{code}: {message}"
        fields = {
            "status": "failed",
            "error": {"code": code, "message": message},
            "output": self._writer.output,
        }
        self.response |= fields
        self._add("failed", response=self.response)
        return self._taken()

    def end(self) -> Objects:
        self._begin()
        while self._turn is not None:
            self._end_turn()
            self._go_on()
        self._writer.end_item()
        reason, fields, counted = self._state.reason, self._state.envelope, self._state.usage
        status = dump_finish(reason)
        if reason in (None, FinishReason.unspecified) or fields.get("status") == status["status"]:
            status = {key: fields.get(key, value) for key, value in status.items()}
        usage = (
            None
            if counted is None
            else dump_usage(counted, if_object(fields.get("usage")), complete=not fields)
        )
        self.response |= {
            **read_extra_fields(fields, "usage", *status),
            **status,
            "output": self._writer.output,
            "usage": usage,
        }
        self.response |= read_extra_fields(self._envelope, "output", "usage")
        ending = "incomplete" if self.response["status"] == "incomplete" else "completed"
        self._add(ending, response=self.response)
        return self._taken()

    def frame(self, data: JsonMap) -> bytes:
        return frame_typed_event(data)

    def _begin(self) -> None:
        """The response begins, if it has not begun."""
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
        """A delta or the end of a part, and what waited for that."""
        self._write(event)
        self._go_on()
        return self._taken()

    def _write(self, event: PartDelta | PartFinished) -> None:
        """A delta or the end of a part: written now, where no other part has its turn."""
        key = (event.message_id, event.index)
        if key in self._items:
            if isinstance(event, PartFinished) and isinstance(
                event.part, ThinkingPart
            ):  # a last word on it
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
        """Writes what waits, as far as it has its turn."""
        while self._waiting and self._turn is None:
            for event in self._waiting.pop(next(iter(self._waiting))):
                self._write(event)

    def _end_turn(self, part: Content | None = None) -> None:
        """The end of the part that has its turn. `part`: the whole; else it ends as far as it was
        written."""
        if self._turn is None:
            return
        began = self._parts.get(self._turn, OpenText())
        part = part or close_part(began, self._deltas, cut=True) or began
        self._items[self._turn] = self._writer.end(part) or {}
        self._turn = None
        self._deltas.clear()

    def _add(self, kind: str, /, **fields: Any) -> None:
        type_ = kind if kind == "error" else f"response.{kind}"
        self._objects.append({"type": type_, "sequence_number": self._sequence, **fields})
        self._sequence += 1

    def _taken(self) -> Objects:
        objects, self._objects = self._objects, []
        return objects
