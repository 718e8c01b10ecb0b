"""What `dragoman convert` shows on standard error: how far it is, on a terminal, and at the end what became of it all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from dragoman.cli.convert_chunks import Summary

__all__ = ["progress", "table"]


@contextmanager
def progress(total: int | None, *, quiet: bool) -> Generator[Callable[[int, Summary], None]]:
    """A bar, where standard error is a terminal. What is given is called with the bytes that are read and what became of them; `total`:
    all bytes, where they are known."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield _nothing
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns: list[Any] = [BarColumn(), TextColumn("{task.fields[conversations]:,} conversations")]
    columns += [
        TimeElapsedColumn(),
        *([] if total is None else [TextColumn("left"), TimeRemainingColumn()]),
    ]
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total, conversations=0)
        yield lambda size, summary: bar.update(
            task, completed=size, conversations=summary.conversations
        )


def table(summary: Summary) -> str:
    """What became of all conversations, for people: a line, and a table of what was lost."""
    written = summary.conversations - summary.left_out
    parts = [f"{written:,} of {summary.conversations:,} conversations written"]
    parts += [f"{summary.unreadable:,} could not be read whole"] if summary.unreadable else []
    parts += [f"{summary.lossy:,} lost something"] if summary.lossy else []
    rows = [("lost", "times", "conversations")] if summary.lost else []
    ranked = sorted(summary.lost.items(), key=lambda each: (-each[1][0], each[0]))
    rows += [
        (what, f"{pieces:,}", f"{conversations:,}") for what, (pieces, conversations) in ranked
    ]
    width = max((len(row[0]) for row in rows), default=0)
    return "\n".join(
        ["; ".join(parts), *(f"  {row[0]:<{width}}  {row[1]:>10}  {row[2]:>13}" for row in rows)]
    )


def _nothing(size: int, summary: Summary) -> None:
    """Shows nothing."""
