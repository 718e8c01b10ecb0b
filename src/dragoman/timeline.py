"""What happened in a run, as rows: its model calls and tools with their times, tokens and costs, what
was left out of requests, and errors (`Timeline`).

The page, `dragoman runs show` and HTML files show the same rows. A row begins with the first event
that tells of it, and later events fill it in: a result, the tokens of a call, a retraction. The rows
of an agent in a tool stand below the row of that tool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar, Literal, cast

from dragoman.cost import find_call_cost
from dragoman.errors import DragomanError
from dragoman.event import (
    TOOL_PROGRESS,
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
    RunStarted,
    StepFinished,
    StepStarted,
    ToolStarted,
)
from dragoman.interrupt import Interrupt
from dragoman.json_bytes import JsonMap
from dragoman.loss import Loss
from dragoman.message import (
    FinishReason,
    Origin,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.pending_text import summarize

__all__ = ["Timeline", "TimelineRow", "name_model", "read_timeline"]

_MOST_PROGRESS = 200
"""Reports of one tool."""


@dataclass
class TimelineRow:
    """Something that happened in a run."""

    category: Literal["user", "model", "tool", "run", "pending", "loss", "error"]
    """What it is."""
    label: str
    """Its name, such as `model call 1`, or its text."""
    run_id: str | None = None
    """Id of its run, if that is one in a tool."""
    depth: int = 0
    """Number of agents in whose tools it happened."""
    message_id: str = ""
    """Id of the message of a model call."""
    asked_at: datetime | None = None
    """When the model asked for the tool."""
    began_at: datetime | None = None
    """When it began; `None`: the events have no times, or it has not begun."""
    first_at: datetime | None = None
    """When the first part of the answer came."""
    ended_at: datetime | None = None
    """When it ended; `None`: the events have no times, or it goes on."""
    text: str = ""
    """What a message says."""
    origin: Origin | None = None
    """Who answered a model call."""
    usage: Usage | None = None
    """Tokens of a model call."""
    cost: Decimal | None = None
    """US dollars; `None`: unknown."""
    finish_reason: FinishReason | None = None
    """Why the model stopped."""
    losses: list[Loss] = field(default_factory=list[Loss])
    """What the request had to leave out."""
    retracted: str | None = None
    """Why the message was retracted; `None`: it was not."""
    call: ToolCallPart | None = None
    """The model's call of a tool; `None`: it was made in an earlier run."""
    call_id: str = ""
    """Id of that call."""
    edited: Mapping[str, Any] | None = None
    """Arguments that a person put in place of the model's."""
    result: ToolResultPart | None = None
    """The result of a tool."""
    progress: list[tuple[datetime | None, JsonMap]] = field(
        default_factory=list[tuple[datetime | None, JsonMap]]
    )
    """What a tool reported of its progress, each with its time."""
    error: DragomanError | None = None
    """Why it failed."""
    rows: list[TimelineRow] = field(default_factory=list["TimelineRow"])
    """What happened within it: in a tool its agents' runs, and their rows in these."""

    @property
    def is_bad(self) -> bool:
        """Returns True if it failed."""
        return self.error is not None or (self.result is not None and self.result.is_error)

    @property
    def cost_text(self) -> str | None:
        """Returns the US dollars as a plain number."""
        if self.cost is None:
            return None
        return f"{self.cost:f}"

    @property
    def arguments(self) -> Mapping[str, Any] | None:
        """Returns the arguments that the tool ran with, or would."""
        if self.edited is not None or self.call is None:
            return self.edited
        return self.call.arguments


def name_model(origin: Origin | None) -> str | None:
    """Returns the model string of what answered, or None if it is unknown."""
    if origin is None:
        return None
    name = origin.served_model or origin.model
    if not name:
        return origin.provider
    return f"{origin.provider}:{name}"


class Timeline:
    """Folds the events of a run into rows. Feed it all events in order."""

    def __init__(self, most_rows: int | None = None) -> None:
        """Creates a timeline without rows. `most_rows`: what happens after so many is not listed."""
        self.first_at: datetime | None = None
        """Time of the first event."""
        self.last_at: datetime | None = None
        """Time of the last event."""
        self.usage: Usage | None = None
        """Tokens of the whole run, once it has ended."""
        self.error: DragomanError | None = None
        """Why the run failed."""
        self.pending: tuple[Interrupt, ...] = ()
        """What the run waits for."""
        self._rows: list[TimelineRow] = []
        self._rows_left = most_rows
        self._runs: dict[str | None, TimelineRow | None] = {}
        """Row of each run in a tool, by its id; the outer run has none."""
        self._steps: dict[str | None, tuple[StepStarted, TimelineRow | None]] = {}
        """The open step of each run, and its first model call."""
        self._messages: dict[str, tuple[TimelineRow, MessageStarted]] = {}
        """Open messages."""
        self._finished: dict[str, TimelineRow] = {}
        self._tools: dict[str, TimelineRow] = {}
        """Rows of tools by the ids of their calls."""

    def __iter__(self) -> Iterator[TimelineRow]:
        """Yields all rows in order, what happened in a tool after the row of the tool."""
        waiting = [iter(self._rows)]
        while waiting:
            if (row := next(waiting[-1], None)) is None:
                waiting.pop()
                continue
            yield row
            waiting.append(iter(row.rows))

    def feed(self, events: Iterable[Event]) -> None:
        """Takes the next events."""
        for event in events:
            if event.at is not None:
                self.first_at = self.first_at or event.at
                self.last_at = event.at
            if (take := self._TAKERS.get(type(event))) is not None:
                take(self, event)

    def _add(self, row: TimelineRow, run_id: str | None, at: datetime | None = None) -> TimelineRow:
        """Adds a row to its run. `at`: it is a moment, and happened then."""
        if at is not None:
            row.began_at = row.ended_at = at
        run = self._runs.get(run_id)
        if run is not None:
            row.run_id, row.depth = run.run_id, run.depth
        self._list(row, self._rows if run is None else run.rows)
        return row

    def _list(self, row: TimelineRow, rows: list[TimelineRow]) -> None:
        if self._rows_left is None:
            rows.append(row)
        elif self._rows_left:
            self._rows_left -= 1
            rows.append(row)

    def _begin_run(self, event: RunStarted) -> None:
        parent = event.parent_run_id
        if parent not in self._runs or event.run_id in self._runs:
            # The outer run itself, one that goes on in another process, or one that is told of
            # without the run around it.
            self._runs.setdefault(event.run_id, None)
            return
        outer = self._runs[parent]
        depth = 1 + (0 if outer is None else outer.depth)
        row = TimelineRow("run", f"run {event.run_id}", event.run_id, depth, began_at=event.at)
        self._runs[event.run_id] = row
        tool = self._tools.get(event.call_id or "")
        if tool is not None:
            self._list(row, tool.rows)
        else:
            # Of an earlier release, which did not tell whose tool it is.
            self._list(row, self._rows if outer is None else outer.rows)

    def _begin_step(self, event: StepStarted) -> None:
        self._steps[event.run_id] = event, None

    def _end_step(self, event: StepFinished) -> None:
        _, row = self._steps.pop(event.run_id, (None, None))
        if row is not None and event.losses:
            # The model call says first what its step had to leave out.
            row.losses = [*event.losses]
        for loss in event.losses:
            if not loss.is_minor:
                loss_row = TimelineRow("loss", str(loss), losses=[loss])
                self._add(loss_row, event.run_id, event.at)

    def _begin_message(self, event: MessageStarted) -> None:
        if event.candidate or event.role is Role.SYSTEM:
            return
        # A row of a prompt is listed with its first text.
        row = TimelineRow("user", "user", began_at=event.at, message_id=event.message_id)
        self._messages[event.message_id] = row, event
        if event.role is Role.USER:
            # A message of results alone has no row.
            return
        row.category, row.label, row.origin = "model", "model call", event.origin
        row.losses = [*event.losses]
        step, first_call = self._steps.get(event.run_id, (None, None))
        if step is not None:
            row.label = step.name
        if step is not None and first_call is None:
            # The request went out when the step began, unless another call of it was first.
            row.began_at = step.at
            self._steps[event.run_id] = step, row
        self._add(row, event.run_id)

    def _begin_part(self, event: PartStarted | PartDelta) -> None:
        row, _ = self._messages.get(event.message_id, (None, None))
        if row is not None and row.first_at is None:
            row.first_at = event.at

    def _end_part(self, event: PartFinished) -> None:
        row, start = self._messages.get(event.message_id, (None, None))
        part = event.part
        if isinstance(part, ToolResultPart):
            tool = self._find_tool(part.id, part.name, start and start.run_id)
            tool.result, tool.ended_at = part, event.at
        elif row is None or start is None:
            return
        elif isinstance(part, ToolCallPart):
            tool = TimelineRow("tool", part.name, asked_at=event.at, call=part, call_id=part.id)
            self._tools[part.id] = self._add(tool, start.run_id)
        elif isinstance(part, TextPart):
            if row.category == "user" and not row.text:
                self._add(row, start.run_id)
            row.text += part.text

    def _find_tool(self, call_id: str, name: str, run_id: str | None) -> TimelineRow:
        """Returns the row of a tool, a new one if its call was made in an earlier run."""
        if call_id not in self._tools:
            tool = TimelineRow("tool", name, call_id=call_id)
            self._tools[call_id] = self._add(tool, run_id)
        return self._tools[call_id]

    def _begin_tool(self, event: ToolStarted) -> None:
        tool = self._find_tool(event.call_id, event.name, event.run_id)
        tool.began_at, tool.edited = event.at, event.arguments

    def _end_message(self, event: MessageFinished) -> None:
        row, start = self._messages.pop(event.message_id, (None, None))
        if row is None or start is None:
            return
        row.ended_at = event.at
        if row.category != "model":
            return
        self._finished[event.message_id] = row
        row.origin, row.usage = event.origin or start.origin, event.usage
        row.finish_reason = event.finish_reason
        row.losses += event.losses
        if event.cached:
            row.cost = Decimal(0)
        else:
            row.cost = find_call_cost(row.origin, row.usage, start.created_at, event.native)

    def _drop_message(self, event: MessageDropped) -> None:
        row, _ = self._messages.pop(event.message_id, (None, None))
        row = row or self._finished.get(event.message_id)
        if row is not None:
            row.retracted = event.reason or "it began again"
            row.ended_at = row.ended_at or event.at

    def _note_progress(self, event: Custom) -> None:
        value: object = event.value
        if event.name != TOOL_PROGRESS or not isinstance(value, Mapping):
            return
        report = cast("JsonMap", value)
        tool = self._tools.get(str(report.get("call_id")))
        if tool is not None and len(tool.progress) < _MOST_PROGRESS:
            tool.progress.append((event.at, report))

    def _end_run(self, event: RunFinished) -> None:
        for interrupt in event.pending:
            self._add(TimelineRow("pending", summarize(interrupt)), event.run_id, event.at)
        # What an agent in a tool took is a part of the sum that the outer run tells.
        row = self._runs.get(event.run_id)
        if row is not None:
            row.ended_at, row.usage = event.at, event.usage
        else:
            self.usage, self.pending = event.usage or self.usage, event.pending

    def _fail(self, event: RunError) -> None:
        row = TimelineRow("error", str(event.error), error=event.error)
        self._add(row, event.run_id, event.at)
        run = self._runs.get(event.run_id)
        if run is not None:
            run.ended_at, run.error = event.at, event.error
        else:
            self.error = event.error
        for message_row, start in self._messages.values():
            if run is None or start.run_id == event.run_id:
                message_row.ended_at, message_row.error = event.at, event.error

    _TAKERS: ClassVar[Mapping[type, Callable[..., None]]] = {
        RunStarted: _begin_run,
        StepStarted: _begin_step,
        StepFinished: _end_step,
        MessageStarted: _begin_message,
        PartStarted: _begin_part,
        PartDelta: _begin_part,
        PartFinished: _end_part,
        ToolStarted: _begin_tool,
        MessageFinished: _end_message,
        MessageDropped: _drop_message,
        Custom: _note_progress,
        RunFinished: _end_run,
        RunError: _fail,
    }
    """Type of an event → what takes it."""


def read_timeline(events: Iterable[Event]) -> list[TimelineRow]:
    """Returns what happened in a run, in order."""
    timeline = Timeline()
    timeline.feed(events)
    return [*timeline]
