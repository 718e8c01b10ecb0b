"""The one progress bar of the command line: `show_progress`.

It stands on standard error, and only if that is a terminal: nothing is written to a pipe or a file,
with NO_COLOR, or where the caller is `quiet`. It appears after a second, so that what is quick shows
nothing, and goes when the work ends.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from dragoman.cli.terminal import escape

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress, ProgressColumn

__all__ = ["ShowProgress", "show_progress"]

_DELAY_SECONDS = 1.0
"""How long work goes on before it is shown."""


class ShowProgress(Protocol):
    """Takes how far some work is."""

    def __call__(self, done: float, text: str | None = None) -> None:
        """Shows that so much is done. `text`: what is said beside it from now on."""
        ...


@contextmanager
def show_progress(
    what: str, total: float | None = None, *, unit: str = "", quiet: bool = False
) -> Generator[ShowProgress]:
    """Shows the progress of the work in its block: a bar with rate and time left if `total` is
    known, else the time so far.

    Args:
        what: the work, such as `embedding`.
        total: all that there is to do.
        unit: what is counted, such as `chunks`; `""`: what is counted means nothing to people.
        quiet: shows nothing, as for `--json`.
    """
    stream = sys.stderr
    # https://no-color.org: the variable counts with any value.
    if quiet or stream is None or not stream.isatty() or "NO_COLOR" in os.environ:
        yield _show_nothing
        return
    from rich.console import Console

    with _make_bar(total, Console(file=stream)) as bar:
        # Text, of which `rich` would read some signs as markup, goes to columns without it.
        task = bar.add_task(escape(what), total=total, facts="")
        began_at = monotonic()

        def show(done: float, text: str | None = None) -> None:
            if text is not None:
                bar.update(task, description=escape(text))
            rate = done / max(monotonic() - began_at, 0.001)
            bar.update(task, completed=done, facts=_describe(done, total, rate, unit))

        yield show


def _show_nothing(done: float, text: str | None = None) -> None:
    """Takes how far some work is where nobody looks."""


def _describe(done: float, total: float | None, rate: float, unit: str) -> str:
    """Returns how much is done, of how much, and how much in a second."""
    if not unit:
        return ""
    count = f"{done:,.0f}" if total is None else f"{done:,.0f} of {total:,.0f}"
    return f"{count} {unit}, {rate:,.{0 if rate >= 10 else 1}f}/s"


def _make_bar(total: float | None, console: Console) -> Progress:
    """Returns the bar, which is drawn by a thread of `rich` until its block ends."""
    from rich import progress

    began_at = monotonic()

    class DelayedProgress(progress.Progress):
        """A bar that is seen after a while."""

        def get_renderables(self) -> Iterable[RenderableType]:
            """Yields what is drawn."""
            if monotonic() - began_at >= _DELAY_SECONDS:
                yield from super().get_renderables()

    columns: list[ProgressColumn] = [progress.TextColumn("{task.description}", markup=False)]
    times: list[ProgressColumn] = [progress.TimeElapsedColumn()]
    if total is not None:
        columns.append(progress.BarColumn())
        times += [progress.TextColumn("left"), progress.TimeRemainingColumn()]
    columns.append(progress.TextColumn("{task.fields[facts]}", markup=False))
    return DelayedProgress(*columns, *times, console=console, transient=True)
