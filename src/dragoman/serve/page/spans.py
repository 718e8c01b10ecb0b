"""The waterfall of a run: its model calls and tools, each with its times, what it took and what was
left out of it (`Waterfall`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar

import msgspec

from dragoman.codec.json_values import if_object, if_text
from dragoman.event import (
    Custom,
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
    StepFinished,
    StepStarted,
    ToolStarted,
)
from dragoman.json_bytes import Json
from dragoman.message import Role, ToolCallPart, ToolResultPart, Usage
from dragoman.serve.page.views import cost_of, dump_interrupt, dump_loss, model_of
from dragoman.tools.context import PROGRESS

__all__ = ["Waterfall"]

_MOST_SPANS = 2000
_MOST_PROGRESS = 200
"""Reports of one tool."""


class Waterfall:
    """Feed it the events of a run, as their owner sees them, in order. Times are seconds since the
    first of them."""

    def __init__(self) -> None:
        """Starts without events."""
        self.spans: list[Json] = []
        self._models: dict[str, Json] = {}
        """Spans of model calls by their messages."""
        self._tools: dict[str, Json] = {}
        """Spans of tools by their calls."""
        self._steps: dict[str | None, Json] = {}
        """The step that is open, of each run."""
        self._begin: datetime | None = None
        self._now: float | None = None
        self._cost: Decimal | None = None
        self._usage: Usage | None = None
        self._error: Json | None = None
        self._pending: list[Json] = []

    def feed(self, events: Iterable[Event]) -> None:
        """Takes the next events."""
        for event in events:
            if event.at is not None:
                self._begin = self._begin or event.at
                self._now = round((event.at - self._begin).total_seconds(), 6)
            if type(event) is PartDelta:
                self._note_first(event.message_id)
            elif (step := self._STEPS.get(type(event))) is not None:
                step(self, event)

    def dump(self) -> Json:
        """Returns the waterfall, and what is known of the whole run."""
        models = [span["model"] for span in self.spans if span.get("model")]
        cost = None if self._cost is None else f"{self._cost:f}"
        return {
            "spans": self.spans,
            "usage": _dump_usage(self._usage),
            "cost": cost,
            "models": [*dict.fromkeys(models)],
            "error": self._error,
            "seconds": self._now,
            "pending": self._pending,
        }

    def _add(self, **fields: Any) -> Json:
        span: Json = {"start": self._now, "end": None, **fields}
        if len(self.spans) < _MOST_SPANS:
            self.spans.append(span)
        return span

    def _step_started(self, event: StepStarted) -> None:
        self._steps[event.run_id] = {"start": self._now}

    def _step_finished(self, event: StepFinished) -> None:
        step = self._steps.pop(event.run_id, {})
        # What a step had to leave out is that of its model call, which says it first.
        span = step.get("span")
        if span is not None and event.losses:
            span["losses"] = [dump_loss(loss) for loss in event.losses]

    def _message_started(self, event: MessageStarted) -> None:
        if event.role is not Role.MODEL or event.candidate:
            return
        step = self._steps.get(event.run_id, {})
        span = self._add(
            kind="model",
            name=model_of(event.origin) or "model call",
            run_id=event.run_id,
            message_id=event.message_id,
            first=None,
            losses=[dump_loss(loss) for loss in event.losses],
        )
        # The request went out when the step began, unless another call of it was first.
        if "span" not in step:
            span["start"] = step.get("start", self._now)
        step["span"] = self._models[event.message_id] = span

    def _note_first(self, message_id: str) -> None:
        span = self._models.get(message_id)
        if span is not None and span["first"] is None:
            span["first"] = self._now

    def _part_started(self, event: PartStarted) -> None:
        self._note_first(event.message_id)

    def _part_finished(self, event: PartFinished) -> None:
        part = event.part
        if isinstance(part, ToolCallPart):
            # The provider runs its own tools within its answer.
            if part.run_by != "provider":
                span = self._add(kind="tool", name=part.name, call_id=part.id, progress=[])
                span |= {"asked": self._now, "start": None, "arguments": dict(part.arguments)}
                self._tools[part.id] = span
        elif isinstance(part, ToolResultPart) and part.run_by != "provider":
            span = self._tools.get(part.id) or self._tool(part.id, part.name)
            result: Any = part.result
            span |= {
                "end": self._now,
                "result": msgspec.to_builtins(result, enc_hook=str),
                "is_error": part.is_error,
                "denied": part.denied,
            }

    def _tool(self, call_id: str, name: str) -> Json:
        """Returns the span of a tool whose call was made in an earlier run."""
        span = self._add(kind="tool", name=name, call_id=call_id, asked=None, progress=[])
        self._tools[call_id] = span
        return span

    def _tool_started(self, event: ToolStarted) -> None:
        span = self._tools.get(event.call_id) or self._tool(event.call_id, event.name)
        span["start"] = self._now
        if event.run_id is not None:
            span["run_id"] = event.run_id
        if event.arguments is not None:
            span["edited"] = dict(event.arguments)

    def _message_finished(self, event: MessageFinished) -> None:
        span = self._models.get(event.message_id)
        if span is None:
            return
        cost = cost_of(event.origin, event.usage)
        if cost is not None:
            self._cost = (self._cost or Decimal(0)) + Decimal(cost)
        if (model := model_of(event.origin)) is not None:
            span |= {"model": model, "name": model}
        span |= {
            "end": self._now,
            "provider": event.origin and event.origin.provider,
            "usage": _dump_usage(event.usage),
            "cost": cost,
            "finish_reason": event.finish_reason,
        }
        span["losses"] += [dump_loss(loss) for loss in event.losses]

    def _message_dropped(self, event: MessageDropped) -> None:
        if (span := self._models.pop(event.message_id, None)) is not None:
            span |= {"dropped": event.reason or "it began again", "end": span["end"] or self._now}

    def _custom(self, event: Custom) -> None:
        value = if_object(event.value)
        span = self._tools.get(if_text(value.get("call_id")))
        if event.name != PROGRESS:
            return
        if span is not None and len(span["progress"]) < _MOST_PROGRESS:
            span["progress"].append({"at": self._now, **value})

    def _run_finished(self, event: RunFinished) -> None:
        self._usage = event.usage or self._usage
        self._pending = [dump_interrupt(interrupt) for interrupt in event.pending]

    def _run_error(self, event: RunError) -> None:
        self._error = {"type": type(event.error).__name__, "message": event.error.message}
        if (seconds := getattr(event.error, "retry_after", None)) is not None:
            self._error["retry_after"] = seconds
        for span in self._models.values():
            if span["end"] is None:
                span |= {"end": self._now, "error": event.error.message}

    _STEPS: ClassVar[dict[type, Callable[..., None]]] = {
        StepStarted: _step_started,
        StepFinished: _step_finished,
        MessageStarted: _message_started,
        PartStarted: _part_started,
        PartFinished: _part_finished,
        ToolStarted: _tool_started,
        MessageFinished: _message_finished,
        MessageDropped: _message_dropped,
        Custom: _custom,
        RunFinished: _run_finished,
        RunError: _run_error,
    }
    """Type of an event → what takes it."""


def _dump_usage(usage: Usage | None) -> Json | None:
    return None if usage is None else msgspec.to_builtins(usage)
