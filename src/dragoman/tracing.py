"""`trace`: hooks that print what a run does while it does it, as a tree of lines with times, tokens and
costs.

    agent = Agent("openai", hooks=[trace()])

A line is printed when something ends: a model call, a tool, a run. What happens in a tool that runs
another agent stands below the line of that tool. Tools run side by side: the lines of one of them are
printed as they come, and what happens beside it waits for its end. Lines of runs that have nothing to
do with each other alternate, each time below the name of the run.
"""

from __future__ import annotations

from collections import deque
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from dragoman.cost import find_call_cost
from dragoman.hooks import (
    Hooks,
    ModelEnd,
    RequestLoss,
    RequestRetry,
    RunEnd,
    RunStart,
    ToolEnd,
    ToolStart,
)
from dragoman.request import RunInfo
from dragoman.result import ChatResult, find_total_cost
from dragoman.timeline import TimelineRow
from dragoman.timeline_drawing import draw_row
from dragoman.visible_text import escape, to_one_line

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Stream", "trace"]

_LONGEST_LINE = 240


class Stream(Protocol):
    """What a trace is written to, such as a file or `sys.stderr`."""

    def write(self, text: str, /) -> object:
        """Writes a piece of text."""
        ...

    def flush(self) -> object:
        """Has the stream pass on what was written."""
        ...


class _Line(NamedTuple):
    text: str
    style: str = ""
    mark: str = "├ "


@dataclass(eq=False)
class _Branch:
    """A run, or a tool that runs: what other lines stand below."""

    title: _Line
    above: _Branch | None = None
    model_calls: int = 0
    is_open: bool = True
    is_listed: bool = False
    """True if its title is printed, or waits to be."""
    writing: _Branch | None = None
    """The branch below it whose lines are printed now; other lines wait for its end."""
    waiting: deque[_Line | _Branch] = field(default_factory=deque["_Line | _Branch"])
    """What is printed then."""

    @property
    def depth(self) -> int:
        """Returns the number of branches above it."""
        if self.above is None:
            return 0
        return 1 + self.above.depth

    @property
    def is_live(self) -> bool:
        """Returns True if it is the branch whose lines are printed now, or above that."""
        above = self.above
        return above is None or (above.writing is self and above.is_live)

    @property
    def prints(self) -> bool:
        """Returns True if a line of it may be printed at once."""
        return self.writing is None and self.is_live


_current: ContextVar[_Branch | None] = ContextVar("dragoman_trace", default=None)
"""The tool in whose task the code runs."""


def trace(to: Stream | Console | None = None) -> Hooks:
    """Makes hooks that print runs as a tree: model calls with times, tokens and cost, tools with
    arguments and results cut short, agents in tools, retries, and what requests left out.

    Args:
        to: a stream, or a `Console` of rich; `None`: standard error. Colours are for terminals
            without NO_COLOR alone.
    """
    tracer = _Tracer(to)
    return Hooks(
        run_start=tracer.begin_run,
        run_end=tracer.end_run,
        model_end=tracer.end_model_call,
        tool_start=tracer.begin_tool,
        tool_end=tracer.end_tool,
        retry=tracer.note_retry,
        loss=tracer.note_loss,
    )


class _Tracer:
    """Prints what hooks tell."""

    def __init__(self, to: Stream | Console | None) -> None:
        self._to = to
        self._runs: dict[str, _Branch] = {}
        """Runs that have not ended, by their ids."""
        self._tools: dict[int, _Branch] = {}
        """Tools that have not ended, by their `ToolStart`."""
        self._latest: _Branch | None = None
        """The outermost run of which the latest line is."""

    def begin_run(self, start: RunStart) -> None:
        """Takes the start of a run. Its line is printed at once if it runs in no tool."""
        run = start.run
        above = _current.get() if run.parent_run_id is not None else None
        # A tool of a run that nobody traces has no branch.
        above = above or self._runs.get(run.parent_run_id or "")
        name = to_one_line(run.agent or f"run {run.run_id[:8]}")
        title = _Line(_join(name, to_one_line(start.model)), "bold")
        self._runs[run.run_id] = branch = _Branch(title, above)
        self._list(branch)

    def end_run(self, end: RunEnd) -> None:
        """Prints how a run ended."""
        branch = self._runs.pop(end.start.run.run_id, None)
        if branch is None:
            return
        facts = [end.outcome, _format_seconds(end.seconds), f"{branch.model_calls} model calls"]
        result = end.result
        if result.usage is not None and result.usage.total_tokens is not None:
            facts.append(f"{result.usage.total_tokens} tokens")
        facts += [_format_cost(result), _describe(end.error)]
        style = "red" if end.outcome == "error" else ""
        self._end(branch, _Line(_join(*facts), style, "└ "))

    def end_model_call(self, end: ModelEnd) -> None:
        """Prints a model call."""
        branch = self._find(end.start.run)
        branch.model_calls += 1
        name = f"model call {branch.model_calls}"
        row = TimelineRow("model", name, origin=end.origin or end.start.target, usage=end.usage)
        row.cost = find_call_cost(row.origin, end.usage)
        facts = [*draw_row(row), _format_seconds(end.seconds)]
        if end.first_seconds is not None:
            facts.append(f"first token {_format_seconds(end.first_seconds)}")
        facts.append(_describe(end.error))
        self._print(branch, _Line(_join(*facts), "" if end.error is None else "red"))

    def begin_tool(self, start: ToolStart) -> None:
        """Takes the start of a tool. Its line is printed when it ends, or when an agent in it does
        something."""
        (title,) = draw_row(TimelineRow("tool", start.call.name, call=start.call))
        branch = _Branch(_Line(title.strip()), self._find(start.run))
        self._tools[id(start)] = branch
        # The hook runs in the task of the tool, so the runs that it begins find their tool.
        _current.set(branch)

    def end_tool(self, end: ToolEnd) -> None:
        """Prints a tool, or how it ended if it is printed already."""
        branch = self._tools.pop(id(end.start), None)
        if branch is None or branch.above is None:
            return
        call = end.start.call
        row = TimelineRow("tool", call.name, call=call, result=end.result)
        title, *outcome = [line.strip() for line in draw_row(row)]
        if end.result is None:
            outcome = ["asks a person, or was stopped"]
        outcome.append(_format_seconds(end.seconds))
        style = "red" if row.is_bad or end.error is not None else ""
        # It has lines below it if an agent worked in it.
        if branch.is_listed:
            self._end(branch, _Line(_join(*outcome), style, "└ "))
        else:
            self._print(branch.above, _Line(_join(title, *outcome), style))

    def note_retry(self, retry: RequestRetry) -> None:
        """Prints that a request is sent again."""
        why = str(retry.status or _describe(retry.error) or "failed")
        then = f"again in {_format_seconds(retry.wait)}"
        if retry.fallback is not None:
            then = f"{retry.fallback} is asked"
        line = f"attempt {retry.attempt} of {retry.provider}: {why}; {then}"
        self._print(self._find(retry.run), _Line(_join(to_one_line(line)), "yellow"))

    def note_loss(self, loss: RequestLoss) -> None:
        """Prints what a request left out."""
        if not loss.loss.is_minor:
            line = _join(to_one_line(f"left out or changed: {loss.loss}"))
            self._print(self._find(loss.run), _Line(line, "yellow"))

    def _find(self, run: RunInfo | None) -> _Branch:
        """Returns the branch of a run, a new one for a model that is asked without a run."""
        if run is not None and run.run_id in self._runs:
            return self._runs[run.run_id]
        return _Branch(
            _Line("model" if run is None else to_one_line(f"run {run.run_id[:8]}"), "bold")
        )

    def _list(self, branch: _Branch) -> None:
        """Prints the title of a branch, and those above it, or has them wait."""
        if branch.is_listed:
            return
        branch.is_listed = True
        above = branch.above
        if above is None:
            return
        self._list(above)
        if above.prints:
            self._write(above, branch.title)
            above.writing = branch
        else:
            above.waiting.append(branch)

    def _print(self, branch: _Branch, line: _Line) -> None:
        """Prints a line below a branch, or has it wait."""
        self._list(branch)
        if branch.prints:
            self._write(branch, line)
        else:
            branch.waiting.append(line)

    def _end(self, branch: _Branch, line: _Line) -> None:
        """Prints the last line of a branch, then what waited for its end."""
        # A tool may leave a run behind in a task of its own.
        if branch.is_live:
            self._close(branch)
        self._print(branch, line)
        branch.is_open = False
        above = branch.above
        if above is not None and branch.is_live:
            above.writing = None
            self._catch_up(above)

    def _catch_up(self, branch: _Branch) -> None:
        """Prints what waits in a branch, up to a branch that is still open."""
        while branch.waiting and branch.writing is None:
            entry = branch.waiting.popleft()
            if isinstance(entry, _Line):
                self._write(branch, entry)
                continue
            self._write(branch, entry.title)
            branch.writing = entry
            self._catch_up(entry)
            if not entry.is_open:
                self._close(entry)
                branch.writing = None

    def _close(self, branch: _Branch) -> None:
        """Prints all that waits in a branch that ends, whatever is still open in it."""
        while branch.writing is not None or branch.waiting:
            if branch.writing is not None:
                self._close(branch.writing)
                branch.writing = None
            self._catch_up(branch)

    def _write(self, branch: _Branch, line: _Line) -> None:
        """Prints a line below a branch. Text is never read as markup, whoever wrote it."""
        from rich.text import Text

        console, run = _open_console(self._to), branch
        while run.above is not None:
            run = run.above
        if run is not self._latest:
            # Of another run than the line before.
            self._latest = run
            console.print(Text(run.title.text, run.title.style), soft_wrap=True)
        guides = "│ " * branch.depth
        text = Text.assemble((guides + line.mark, "dim"), (line.text, line.style))
        console.print(text, soft_wrap=True)


def _open_console(to: Stream | Console | None) -> Console:
    """Returns the console to print to, of standard error as it is now."""
    import sys

    from rich.console import Console

    # Tests and programs replace standard error, so it is looked up for each line.
    if isinstance(to, Console):
        return to
    return Console(file=cast("IO[str]", to or sys.stderr), highlight=False)


def _format_seconds(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"


def _format_cost(result: ChatResult[Any]) -> str:
    cost = find_total_cost(result.calls)
    if cost is None or not result.calls:
        return ""
    return f"${cost:f}"


def _describe(error: BaseException | None) -> str:
    if error is None:
        return ""
    return to_one_line(f"{type(error).__name__}: {error}")


def _join(*facts: str) -> str:
    """Returns facts, each of them one line, in a line of bounded length."""
    line = "  ".join(escape(fact) for fact in facts if fact)
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…"
