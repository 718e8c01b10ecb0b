"""Events → a response. A whole one is what the terminal event of its stream holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from dragoman.answer import Answer, model_of
from dragoman.errors import DragomanError
from dragoman.event import (
    Event,
    MessageDropped,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
)
from dragoman.framing import event_bytes
from dragoman.message import Content, FinishReason, ThinkingPart
from dragoman.shapes import rest
from dragoman.wires.openai_responses.errors import code_of, dump_error
from dragoman.wires.openai_responses.native import response as around_of
from dragoman.wires.openai_responses.outcome import dump_status, dump_usage
from dragoman.wires.openai_responses.telling import Telling
from dragoman.wires.openai_responses.thinking import dump_reasoning

__all__ = ["Encoder", "dump_response", "encoder"]

_encode = msgspec.json.encode
_CODES = ("server_error", "rate_limit_exceeded", "invalid_prompt")
"""Codes of errors that a response may hold, as the API has them; another stands before the error's words."""
_USUAL: Mapping[str, Any] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "store": True,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}
"""What a response says again of its request, where the envelope does not."""


def encoder(**envelope: Any) -> Encoder:
    """An encoder of one response. `envelope`: fields of the response (`id`, `model`, `created_at`, `tools` …), where the
    events' own are not to be told."""
    return Encoder(envelope)


def dump_response(events: Iterable[Event], **envelope: Any) -> dict[str, Any]:
    """Events → a whole response; an error's body where they tell of an error. `envelope`: as for `encoder`."""
    writer = Encoder(envelope)
    for event in events:
        if isinstance(event, RunError):
            return dump_error(event.error)[1]
        writer.feed(event)
    writer.close()
    return writer.response


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
        self._answer = Answer(around_of)
        self._parts: dict[tuple[str, int], Content] = {}  # parts that are open, as they began
        self._items: dict[tuple[str, int], dict[str, Any]] = {}  # of each part that is told, its item
        self._turn: tuple[str, int] | None = None
        self._waiting: dict[tuple[str, int], list[PartDelta | PartFinished]] = {}
        self._over = False

    def feed(self, event: Event) -> bytes:
        """One event → the bytes that tell of it (`b""`: none, or not yet)."""
        if self._over or not self._answer.takes(event):
            return b""
        if isinstance(event, (PartDelta, PartFinished)):
            self._part(event)
        elif isinstance(event, PartStarted):
            self._parts[event.message_id, event.index] = event.part
        elif isinstance(event, MessageStarted):
            self._begin()
        elif isinstance(event, MessageDropped):
            self._end_parts()
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
        self._end_parts()
        self._telling.end_item()
        self._over = True
        reason, told, counted = self._answer.reason, self._answer.around, self._answer.usage
        status = dump_status(reason)
        if reason in (None, FinishReason.unspecified) or told.get("status") == status["status"]:
            status = {key: told.get(key, value) for key, value in status.items()}
        usage = None if counted is None else dump_usage(counted, told.get("usage", {}))
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
            "created_at": answer.around.get("created_at", 0),
            "status": "in_progress",
            "error": None,
            "incomplete_details": None,
            "model": model_of(origin),
            "output": [],
            "usage": None,
            **_USUAL,
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
            return
        if self._turn is not None and self._turn != key:
            self._waiting.setdefault(key, []).append(event)
            return
        self._turn = key
        if isinstance(event, PartDelta):
            if (part := self._parts.get(key)) is not None:
                self._telling.more(part, str(event.delta))
            return
        self._items[key] = self._telling.end(event.part) or {}
        self._turn = None
        while self._waiting and self._turn is None:
            for waiting in self._waiting.pop(next(iter(self._waiting))):
                self._part(waiting)

    def _end_parts(self) -> None:
        """Tells what waits, though nobody closed what has its turn."""
        while self._turn is not None:
            part = self._parts.get(self._turn)
            if part is not None:
                self._part(PartFinished(*self._turn, part))
            self._turn = None

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
