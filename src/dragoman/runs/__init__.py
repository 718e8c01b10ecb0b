"""Runs as others see them: what of a run's events a client may be shown; and runs that outlive a connection, their events in a log,
from which readers anywhere read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.lazy import lazy
from dragoman.runs.visible import (
    Visible,
    visible,
)  # not when first asked for: its module has its name

if TYPE_CHECKING:
    from dragoman.runs.log import Lease, Posted, RunLog, RunStatus
    from dragoman.runs.open import open_log
    from dragoman.runs.runs import Runs

__all__ = ["Lease", "Posted", "RunLog", "RunStatus", "Runs", "Visible", "open_log", "visible"]

_MODULES = {
    "Lease": "log",
    "Posted": "log",
    "RunLog": "log",
    "RunStatus": "log",
    "Runs": "runs",
    "open_log": "open",
}

__getattr__ = lazy("dragoman.runs", _MODULES)
