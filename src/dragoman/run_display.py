"""Draws a run in a notebook while it works.

A run that is the last value of a cell asks the notebook for a place of its own (`open_display`). From
then on whoever reads the run also has that place drawn anew: no task is started, and nothing is drawn
once the run has ended.
"""

from __future__ import annotations

from importlib import import_module
from time import monotonic
from typing import Any

from dragoman.errors import DragomanError
from dragoman.figure import Drawable, Figure, draw_html
from dragoman.logs import logger
from dragoman.message import FinishReason
from dragoman.result import ChatResult

__all__ = ["LiveDrawable", "draw_run"]

_LOG = logger("run")
_PAUSE_SECONDS = 0.1
"""Least time between two pictures, so that a fast stream does not flood the notebook."""


def draw_run(
    name: str, result: ChatResult[Any], error: DragomanError | None, *, is_over: bool
) -> Figure:
    """Returns the picture of a run: its result so far, below its name and state."""
    figure = result.__figure__()
    if error is not None:
        note = Figure("note", text=f"{type(error).__name__}: {error}", is_bad=True)
        return Figure(title=f"{name} failed", figures=(*figure.figures, note))
    if not is_over:
        return Figure(title=f"{name} works …", figures=figure.figures)
    if result.finish_reason is FinishReason.unspecified and not result.pending:
        return Figure(title=f"{name} was stopped", figures=figure.figures)
    return Figure(title=f"{name}: {figure.title}", figures=figure.figures)


class LiveDrawable(Drawable):
    """A value that is drawn anew in a notebook while it changes."""

    _display: Any = None
    """The notebook's handle of the place where it is drawn; `None`: it is drawn nowhere."""
    _drawn_at = 0.0

    def _ipython_display_(self) -> None:
        """Draws the value in a notebook, and keeps the place. Called by IPython.

        Raises:
            NotImplementedError: it is a terminal, whose lines cannot be drawn again. IPython then
                prints the value.
        """
        # IPython calls this, so it is there.
        notebook: Any = import_module("IPython.display")
        shell = import_module("IPython").get_ipython()
        if getattr(shell, "kernel", None) is None:
            raise NotImplementedError("a terminal has no place that can be drawn again")
        self._display = notebook.display(self._draw_bundle(), raw=True, display_id=True)

    def redraw(self, *, is_over: bool = False) -> None:
        """Draws the value anew where it is drawn, if it has not just been. `is_over`: for the last
        time."""
        if self._display is None or not (is_over or monotonic() - self._drawn_at > _PAUSE_SECONDS):
            return
        self._drawn_at = monotonic()
        try:
            self._display.update(self._draw_bundle(), raw=True)
        except Exception as error:  # noqa: BLE001 - a notebook that is gone must not fail the run
            _LOG.warning("a notebook can no longer be drawn in: %s", error)
            self._display = None
        # The handle would keep the notebook, and a result that is read again would draw again.
        if is_over:
            self._display = None

    def _draw_bundle(self) -> dict[str, str]:
        """Returns the picture by its MIME types."""
        return {"text/html": draw_html(self.__figure__()), "text/plain": repr(self)}
