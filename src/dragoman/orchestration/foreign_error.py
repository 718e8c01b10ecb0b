"""Somebody else's exception as an error of ours."""

from __future__ import annotations

from dragoman.errors import DragomanError
from dragoman.tools.outcome import words

__all__ = ["foreign"]


def foreign(error: Exception) -> DragomanError:
    """The error of ours that stands for somebody else's exception in the events."""
    ours = DragomanError(
        f"{type(error).__name__} in the run, from code that is not dragoman's: {words(error)}"
    )
    ours.__cause__ = error
    return ours
