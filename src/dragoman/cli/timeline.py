"""The timeline of a run (`read_timeline`): its model calls, tools, losses and errors in order, and how
a terminal shows it.

The events of a run are folded into rows. A row begins with the first event that tells of it, and later
events fill it in: a result, the tokens of a call, a retraction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal

import msgspec

from dragoman.cli.ask_user import summarize
from dragoman.cli.terminal import to_one_line
from dragoman.cost import call_cost
from dragoman.errors import SettingsError
from dragoman.event import (
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartFinished,
    RunError,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
    ToolStarted,
)
from dragoman.json_bytes import Json
from dragoman.message import Origin, Role, TextPart, ToolCallPart, ToolResultPart, Usage

__all__ = ["TimelineRow", "draw_timeline", "read_timeline"]

_BAR = 20
"""Characters of the bar that shows when something happened."""
_WIDTH = 100
"""Most characters of a text, of arguments or of a result."""


@dataclass
class TimelineRow:
    """Something that happened in a run."""

    category: Literal["user", "model", "tool", "run", "pending", "loss", "error"]
    """What it is."""
    label: str
    """Its name, such as `model call 1`, or its text."""
    depth: int = 0
    """Number of agents in whose tools it happened."""
    text: str = ""
    """What a message says, or the arguments of a call as JSON."""
    result: str | None = None
    """The result of a call as JSON; `None`: there is none."""
    is_error: bool = False
    """True if the result is an error."""
    model: str | None = None
    """The model that was asked."""
    input_tokens: int | None = None
    """Tokens of the request."""
    output_tokens: int | None = None
    """Tokens of the answer."""
    cost: str | None = None
    """US dollars; `None`: unknown."""
    retracted: str | None = None
    """Why the message was retracted; `None`: it was not."""
    began_at: datetime | None = None
    """When it began; `None`: the log has no times, or it has not begun."""
    ended_at: datetime | None = None
    """When it ended; `None`: the log has no times, or it goes on."""


class _TimelineReader:
    """Folds the events of a run into rows."""

    def __init__(self) -> None:
        self.rows: list[TimelineRow] = []
        self._depths: dict[str | None, int] = {}
        """Depth of each run in a tool, by its id."""
        self._steps: dict[str | None, StepStarted] = {}
        """The latest step of each run."""
        self._messages: dict[str, tuple[TimelineRow, MessageStarted]] = {}
        self._calls: dict[str, TimelineRow] = {}

    def feed(self, event: Event) -> None:
        """Takes the next event."""
        if isinstance(event, MessageStarted):
            self._begin_message(event)
        elif isinstance(event, PartFinished):
            self._feed_part(event)
        elif isinstance(event, MessageFinished):
            self._end_message(event)
        elif isinstance(event, MessageDropped) and event.message_id in self._messages:
            row, _ = self._messages[event.message_id]
            row.retracted, row.ended_at = event.reason, event.at
        elif isinstance(event, StepStarted):
            self._steps[event.run_id] = event
        elif isinstance(event, ToolStarted) and (row := self._calls.get(event.call_id)):
            row.began_at = event.at
            if event.arguments is not None:
                row.text = _format_json(event.arguments)
        else:
            self._feed_run(event)

    def _feed_run(self, event: Event) -> None:
        """Takes an event of a run or a step."""
        if isinstance(event, RunStarted) and event.parent_run_id is not None and self._depths:
            depth = self._depths[event.run_id] = self._depth(event.parent_run_id) + 1
            self._add(TimelineRow("run", f"run {event.run_id}", depth), event)
        elif isinstance(event, RunStarted):
            self._depths[event.run_id] = 0
        elif isinstance(event, StepFinished):
            for loss in event.losses:
                if not loss.is_minor:
                    self._add(TimelineRow("loss", str(loss), self._depth(event.run_id)), event)
        elif isinstance(event, RunError):
            self._add(TimelineRow("error", str(event.error), self._depth(event.run_id)), event)
        elif isinstance(event, RunFinished):
            for interrupt in event.pending:
                depth = self._depth(event.run_id)
                self._add(TimelineRow("pending", summarize(interrupt), depth), event)

    def _depth(self, run_id: str | None) -> int:
        return self._depths.get(run_id, 0)

    def _add(self, row: TimelineRow, moment: Event | None = None) -> TimelineRow:
        """Adds a row. `moment`: the event that is all of it."""
        if moment is not None:
            row.began_at = row.ended_at = moment.at
        self.rows.append(row)
        return row

    def _begin_message(self, event: MessageStarted) -> None:
        if event.candidate or event.role is Role.SYSTEM:
            return
        row = TimelineRow("model", "message", self._depth(event.run_id), began_at=event.at)
        if event.role is Role.USER:
            row.category = row.label = "user"
        elif (step := self._steps.get(event.run_id)) is not None:
            # The model is asked when the step begins.
            row.label, row.began_at = step.name, step.at
        self._messages[event.message_id] = row, event
        # A message of results alone has no row.
        if row.category == "model":
            self._add(row)

    def _feed_part(self, event: PartFinished) -> None:
        row, start = self._messages.get(event.message_id, (None, None))
        part = event.part
        if isinstance(part, ToolResultPart):
            call = self._calls.get(part.id)
            if call is not None:
                call.result, call.is_error = _format_json(part.result), part.is_error
                call.ended_at = event.at
        elif row is None or start is None:
            return
        elif isinstance(part, ToolCallPart):
            arguments = _format_json(part.arguments)
            self._calls[part.id] = self._add(TimelineRow("tool", part.name, row.depth, arguments))
        elif isinstance(part, TextPart):
            if row.category == "user" and not row.text:
                self._add(row)
            row.text += part.text

    def _end_message(self, event: MessageFinished) -> None:
        row, start = self._messages.pop(event.message_id, (None, None))
        if row is None or start is None:
            return
        row.ended_at = event.at
        if row.category != "model":
            return
        origin, usage = event.origin or start.origin, event.usage or Usage()
        if origin is not None:
            name = origin.served_model or origin.model
            row.model = f"{origin.provider}:{name}" if name else origin.provider
        row.input_tokens, row.output_tokens = usage.input_tokens, usage.output_tokens
        row.cost = _find_cost(origin, start, event)


def _find_cost(origin: Origin | None, start: MessageStarted, end: MessageFinished) -> str | None:
    """Returns the cost of a model call; `None`: it is unknown, or the extra `cost` is missing."""
    try:
        cost = call_cost(origin, end.usage, start.created_at, end.native)
    except SettingsError:
        return None
    if end.cached:
        cost = Decimal(0)
    return None if cost is None else f"{cost:f}"


def read_timeline(events: Iterable[Event]) -> list[TimelineRow]:
    """Returns what happened in a run, in order."""
    reader = _TimelineReader()
    for event in events:
        reader.feed(event)
    return reader.rows


def draw_timeline(rows: Sequence[TimelineRow]) -> list[str]:
    """Returns the lines that show a timeline, with long texts cut."""
    lines: list[str] = []
    times = [time for row in rows for time in (row.began_at, row.ended_at) if time is not None]
    for row in rows:
        first, *more = _DRAWERS.get(row.category, _draw_note)(row)
        space, margin = "  " * row.depth, ""
        if times:
            margin = _draw_time(row, min(times), max(times))
        lines.append(margin + space + first)
        lines += [" " * len(margin) + space + line for line in more]
    return lines


def _draw_time(row: TimelineRow, first: datetime, last: datetime) -> str:
    """Returns the seconds from the start of the run to that of a row, how many it took, and both as a
    bar."""
    if row.began_at is None:
        return " " * (_BAR + 19)
    start = (row.began_at - first).total_seconds()
    length = max(0.0, ((row.ended_at or last) - row.began_at).total_seconds())
    scale = _BAR / ((last - first).total_seconds() or 1.0)
    # At least one sign, and none beyond the end.
    column = min(int(start * scale), _BAR - 1)
    bar = " " * column + "=" * min(max(1, round(length * scale)), _BAR - column)
    took = "" if row.began_at == row.ended_at else f"{length:.1f}s"
    return f"{start:7.1f}s {took:>6} |{bar:{_BAR}}| "


def _draw_user(row: TimelineRow) -> list[str]:
    return [f"> {_shorten(row.text)}"]


def _draw_model(row: TimelineRow) -> list[str]:
    """Returns a line with model, tokens and cost, and one with the text."""
    facts = [row.label, row.model or ""]
    if row.input_tokens is not None or row.output_tokens is not None:
        facts.append(f"{row.input_tokens or 0} → {row.output_tokens or 0} tokens")
    facts.append(f"${row.cost}" if row.cost is not None else "")
    lines = ["  ".join(filter(None, facts))]
    if row.text:
        lines.append(f"  {_shorten(row.text)}")
    if row.retracted is not None:
        lines.append(f"  retracted: {_shorten(row.retracted)}")
    return lines


def _draw_tool(row: TimelineRow) -> list[str]:
    line = f"  {to_one_line(row.label)} {_shorten(row.text)}"
    if row.result is None:
        return [line]
    return [line, f"    {'error' if row.is_error else '→'} {_shorten(row.result)}"]


def _draw_note(row: TimelineRow) -> list[str]:
    return [f"{row.category}: {_shorten(row.label, 4 * _WIDTH)}"]


_DRAWERS = {"user": _draw_user, "model": _draw_model, "tool": _draw_tool}


def _shorten(text: str, width: int = _WIDTH) -> str:
    """Returns text in one line of at most `width` characters."""
    line = to_one_line(text)
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _format_json(value: Json | object) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode(errors="replace")
