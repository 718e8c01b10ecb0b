"""Runs as others see them: what of a run's events a client may be shown; and runs that outlive a
connection, their events in a log, from which readers anywhere read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.runs.visible import Visible, visible
from dragoman.runtime import lazy

if TYPE_CHECKING:
    from dragoman.runs.log import ControlMessage, Lease, RunLog, RunStatus
    from dragoman.runs.runs import Runs, open_log

__all__ = [
    "Lease",
    "ControlMessage",
    "RunLog",
    "RunStatus",
    "Runs",
    "Visible",
    "open_log",
    "visible",
]

_MODULES = {
    "Lease": "log",
    "ControlMessage": "log",
    "RunLog": "log",
    "RunStatus": "log",
    "Runs": "runs",
    "open_log": "runs",
}

# `visible` is loaded at once: its module has its name, and would stand in its place.
__getattr__ = lazy("dragoman.runs", _MODULES)
