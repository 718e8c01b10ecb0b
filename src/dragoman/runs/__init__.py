"""Runs that outlive a connection (`Runs`, `RunLog`), and the events of a run that its client may
see (`visible`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.runs.visible import Visible, visible
from dragoman.runtime import lazy

if TYPE_CHECKING:
    from dragoman.runs.engines import Engine, Limit
    from dragoman.runs.log import ControlMessage, Lease, RunLog, RunStatus
    from dragoman.runs.log_by_url import open_log
    from dragoman.runs.runs import Runs

__all__ = [
    "Engine",
    "Lease",
    "Limit",
    "ControlMessage",
    "RunLog",
    "RunStatus",
    "Runs",
    "Visible",
    "open_log",
    "visible",
]

_MODULES = {
    "Engine": "engines",
    "Lease": "log",
    "Limit": "engines",
    "ControlMessage": "log",
    "RunLog": "log",
    "RunStatus": "log",
    "Runs": "runs",
    "open_log": "log_by_url",
}

# `visible` is imported at once: a lazy name would be hidden by the submodule of the same name.
__getattr__ = lazy("dragoman.runs", _MODULES)
