"""What a branch shows of a thread: its own messages and, before them, those of the branches that it came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dragoman.errors import HistoryError
from dragoman.memory.thread import Branch

__all__ = ["Span", "path", "shows"]


class Span(NamedTuple):
    """Messages of a branch."""

    branch: int
    """Which one."""
    until: int | None
    """The position of the last one; `None`: all."""


def path(thread_id: str, branch: int, branches: Mapping[int, Branch]) -> tuple[Span, ...]:
    """The spans that a branch shows, the latest first.

    Raises:
        HistoryError: the thread has no such branch.
    """
    spans = [Span(branch, None)]
    while branch:
        if branch not in branches:
            raise HistoryError(f'the thread "{thread_id}" has no branch {branch}')
        left = branches[branch]
        branch = left.parent
        spans.append(Span(branch, left.position))
    return tuple(spans)


def shows(spans: tuple[Span, ...], branch: int, position: int) -> bool:
    """Whether these spans hold a message."""
    return any(
        span.branch == branch and (span.until is None or position <= span.until) for span in spans
    )
