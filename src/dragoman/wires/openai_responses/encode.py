"""Events → a response. A whole one is what the terminal event of its stream holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dragoman import json_bytes
from dragoman.codec.framing import event_bytes
from dragoman.codec.json_values import if_object, rest
from dragoman.codec.response import ResponseState, kept, model_of
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
    RunFinished,
)
from dragoman.fold import close_part
from dragoman.loss import Loss
from dragoman.message import Content, FinishReason, Native, ThinkingPart
from dragoman.wires.openai_responses.errors import code_of, dump_error
from dragoman.wires.openai_responses.outcome import USUAL, dump_status, dump_usage, echo
from dragoman.wires.openai_responses.quirks import OWN
from dragoman.wires.openai_responses.telling import Telling
from dragoman.wires.openai_responses.thinking import dump_reasoning

__all__ = ["Encoder", "dump_response", "encoder"]

_encode = json_bytes.encode
_CODES = ("server_error", "rate_limit_exceeded", "invalid_prompt")
"""Codes of errors that a response may hold, as the API has them; another stands before the error's words."""


def encoder(**envelope: Any) -> Encoder:
    """An encoder of one response. `envelope`: fields of the response (`id`, `model`, `created_at`, `tools` …), where the
    events' own are not to be told."""
    return Encoder(envelope)


def dump_response(events: Iterable[Event], *, losses: list[Loss] | None = None, **envelope: Any) -> dict[str, Any]:
    """Events → a whole response; an error's body where they tell of an error. `envelope`: as for `encoder`."""
    writer = Encoder(envelope)
    for event in kept(events, losses):
        if isinstance(event, RunError):
            return dump_error(event.error)[1]
        writer.feed(event)
    writer.close()
    return writer.response


def _around(native: Native) -> dict[str, Any]:
    """What a response said of itself, and what of its request it said again."""
    return {**if_object(OWN.notes(native).get("echo")), **OWN.response(native)}


class Encoder:
    """Events of the model's messages → Server-Sent Events. Several messages become the items of one response.

    One part is told at a time: what comes of others meanwhile waits for its turn.
    """

    def __init__(self, envelope: Mapping[str, Any]) -> None:
        self.response: dict[str, Any] = {}
        """The response, as far as it is known."""
        self._envelope = envelope
        self._written: list[bytes] = []
        self._sequence = 0
        self._telling = Telling(self._tell)
        self._answer = ResponseState(_around)
        self._parts: dict[tuple[str, int], Content] = {}  # parts that are open, as they began
        self._items: dict[tuple[str, int], dict[str, Any]] = {}  # of each part that is told, its item
        self._turn: tuple[str, int] | None = None
        self._deltas: list[str | bytes] = []  # of the part that has its turn, as they were told
        self._waiting: dict[tuple[str, int], list[PartDelta | PartFinished]] = {}
        self._over = False

    def feed(self, event: Event) -> bytes:
        """One event → the bytes that tell of it (`b""`: none, or not yet)."""
        if self._over or not self._answer.takes(event):
            return b""
        if isinstance(event, (PartDelta, PartFinished)):
            self._part(event)
            self._go_on()
        elif isinstance(event, PartStarted):
            self._parts[event.message_id, event.index] = event.part
        elif isinstance(event, MessageStarted):
            self._begin()
        elif isinstance(event, MessageDropped):
            self._drop(event.message_id)
            self._go_on()
        elif isinstance(event, RunError):
            self._fail(event.error)
        elif isinstance(event, RunFinished):
            return self.close()
        return self._taken()

    def close(self) -> bytes:
        """The end of the events → the end of the response."""
        if self._over:
            return b""
        self._begin()
        while self._turn is not None:
            self._end_turn()
            self._go_on()
        self._telling.end_item()
        self._over = True
        reason, told, counted = self._answer.reason, self._answer.envelope, self._answer.usage
        status = dump_status(reason)
        if reason in (None, FinishReason.unspecified) or told.get("status") == status["status"]:
            status = {key: told.get(key, value) for key, value in status.items()}
        usage = None if counted is None else dump_usage(counted, if_object(told.get("usage")))
        self.response |= {**rest(told, "usage", *status), **status, "output": self._telling.output, "usage": usage}
        self.response |= rest(self._envelope, "output", "usage")
        ending = "incomplete" if self.response["status"] == "incomplete" else "completed"
        self._tell(ending, response=self.response)
        return self._taken()

    def _begin(self) -> None:
        """The response begins, if it has not begun."""
        if self.response:
            return
        answer, origin = self._answer, self._answer.origin
        self.response = {
            "id": (origin and origin.response_id) or f"resp_{answer.id}",
            "object": "response",
            "created_at": answer.envelope.get("created_at", 0),
            "status": "in_progress",
            "error": None,
            "incomplete_details": None,
            "model": model_of(origin),
            "output": [],
            "usage": None,
            **USUAL,
            **echo(answer.envelope),
            **rest(self._envelope, "output", "usage", "status"),
        }
        self._telling.response_id = str(self.response["id"])
        self._tell("created", response=self.response)
        self._tell("in_progress", response=self.response)

    def _part(self, event: PartDelta | PartFinished) -> None:
        """A delta or the end of a part: told now, where no other part has its turn."""
        key = (event.message_id, event.index)
        if key in self._items:
            if isinstance(event, PartFinished) and isinstance(event.part, ThinkingPart):  # a last word on it
                self._items[key].update(dump_reasoning(event.part))
        elif self._turn is not None and self._turn != key:
            self._waiting.setdefault(key, []).append(event)
        elif isinstance(event, PartFinished):
            self._turn = key
            self._end_turn(event.part)
        elif (part := self._parts.get(key)) is not None:
            self._turn = key
            self._deltas.append(event.delta)
            self._telling.more(part, str(event.delta))

    def _go_on(self) -> None:
        """Tells what waits, as far as it has its turn."""
        while self._waiting and self._turn is None:
            for event in self._waiting.pop(next(iter(self._waiting))):
                self._part(event)

    def _end_turn(self, part: Content | None = None) -> None:
        """The end of the part that has its turn. `part`: the whole; else it ends as far as it was told."""
        if self._turn is None:
            return
        began = self._parts.get(self._turn, OpenText())
        part = part or close_part(began, self._deltas, cut=True) or began
        self._items[self._turn] = self._telling.end(part) or {}
        self._turn = None
        self._deltas.clear()

    def _drop(self, message_id: str) -> None:
        """A message is void: what was told of it cannot be taken back and ends as it is, nothing more of it is told."""
        self._waiting = {key: events for key, events in self._waiting.items() if key[0] != message_id}
        if self._turn is not None and self._turn[0] == message_id:
            self._end_turn()
        self._items = {key: item for key, item in self._items.items() if key[0] != message_id}
        self._parts = {key: part for key, part in self._parts.items() if key[0] != message_id}

    def _fail(self, error: DragomanError) -> None:
        self._over = True
        code, message = code_of(error), error.message
        if code not in _CODES:
            code, message = "server_error", f"{code}: {message}"
        if not self.response:
            self._tell("error", code=code_of(error), message=error.message, param=None)
            return
        told = {"code": code, "message": message}
        self.response |= {"status": "failed", "error": told, "output": self._telling.output}
        self._tell("failed", response=self.response)

    def _tell(self, kind: str, /, **fields: Any) -> None:
        type_ = kind if kind == "error" else f"response.{kind}"
        data = _encode({"type": type_, "sequence_number": self._sequence, **fields})
        self._written.append(event_bytes(data, type_))
        self._sequence += 1

    def _taken(self) -> bytes:
        written = b"".join(self._written)
        self._written.clear()
        return written
