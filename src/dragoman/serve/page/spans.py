"""The waterfall of a run as the page shows it: its model calls and tools, each with its times, what it
took and what was left out of it (`Waterfall`)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec

from dragoman.event import Event
from dragoman.json_bytes import Json
from dragoman.message import Usage
from dragoman.serve.page.views import dump_interrupt, dump_loss, model_of
from dragoman.timeline import Timeline, TimelineRow

__all__ = ["Waterfall"]

_MOST_ROWS = 2000


class Waterfall:
    """Feed it the events of a run, as their owner sees them, in order. Times are seconds since the
    first of them."""

    def __init__(self) -> None:
        """Starts without events."""
        self._timeline = Timeline(_MOST_ROWS)

    def feed(self, events: Iterable[Event]) -> None:
        """Takes the next events."""
        self._timeline.feed(events)

    def dump(self) -> Json:
        """Returns the waterfall, and what is known of the whole run."""
        timeline = self._timeline
        rows = [row for row in timeline if row.category in ("model", "tool")]
        # The provider runs its own tools within its answer.
        rows = [row for row in rows if row.call is None or row.call.run_by != "provider"]
        costs = [row.cost for row in rows if row.cost is not None]
        models = [model for row in rows if (model := model_of(row.origin)) is not None]
        return {
            "spans": [self._dump_row(row) for row in rows],
            "usage": _dump_usage(timeline.usage),
            "cost": f"{sum(costs, Decimal(0)):f}" if costs else None,
            "models": [*dict.fromkeys(models)],
            "error": self._dump_error(),
            "seconds": self._count_seconds(timeline.last_at),
            "pending": [dump_interrupt(interrupt) for interrupt in timeline.pending],
        }

    def _count_seconds(self, at: datetime | None) -> float | None:
        """Returns the seconds from the first event to another."""
        first = self._timeline.first_at
        if at is None or first is None:
            return None
        return round((at - first).total_seconds(), 6)

    def _dump_row(self, row: TimelineRow) -> Json:
        span: Json = {
            "kind": row.category,
            "name": row.label,
            "depth": row.depth,
            "run_id": row.run_id,
            "start": self._count_seconds(row.began_at),
            "end": self._count_seconds(row.ended_at),
        }
        if row.category == "model":
            return span | self._dump_model(row)
        return span | self._dump_tool(row)

    def _dump_model(self, row: TimelineRow) -> Json:
        """Returns what the page has of a model call alone."""
        model = model_of(row.origin)
        fields: Json = {
            "name": model or "model call",
            "message_id": row.message_id,
            "model": model,
            "provider": row.origin and row.origin.provider,
            "first": self._count_seconds(row.first_at),
            "usage": _dump_usage(row.usage),
            "cost": row.cost_text,
            "finish_reason": row.finish_reason,
            "losses": [dump_loss(loss) for loss in row.losses],
        }
        if row.retracted is not None:
            fields["dropped"] = row.retracted
        if row.error is not None:
            fields["error"] = row.error.message
        return fields

    def _dump_tool(self, row: TimelineRow) -> Json:
        """Returns what the page has of a tool alone."""
        fields: Json = {
            "call_id": row.call_id,
            "asked": self._count_seconds(row.asked_at),
            "progress": [{"at": self._count_seconds(at), **report} for at, report in row.progress],
        }
        if row.call is not None:
            fields["arguments"] = dict(row.call.arguments)
        if row.edited is not None:
            fields["edited"] = dict(row.edited)
        if (result := row.result) is not None:
            value: Any = result.result
            fields["result"] = msgspec.to_builtins(value, enc_hook=str)
            fields |= {"is_error": result.is_error, "denied": result.denied}
        return fields

    def _dump_error(self) -> Json | None:
        """Returns why the run failed."""
        error = self._timeline.error
        if error is None:
            return None
        fields: Json = {"type": type(error).__name__, "message": error.message}
        if (seconds := getattr(error, "retry_after", None)) is not None:
            fields["retry_after"] = seconds
        return fields


def _dump_usage(usage: Usage | None) -> Json | None:
    return None if usage is None else msgspec.to_builtins(usage)
