"""Opens engines of durable runs by their names (`open_engine`). One that needs a package is imported
only when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol

import msgspec

from dragoman.errors import SettingsError
from dragoman.runs.engines import Engine
from dragoman.runs.log import RunLog
from dragoman.runtime import extra_hint

__all__ = ["ENGINES", "NamedEngine", "OpenEngine", "open_engine"]


class OpenEngine(Engine, Protocol):
    """An engine that `Runs` opened, and closes."""

    async def close(self) -> None:
        """Frees what the engine holds, once `work` has ended."""
        ...


class NamedEngine(msgspec.Struct, frozen=True):
    """Where the class of an engine stands. It is called with the log and `poll_seconds`, and opens
    nothing before its first use."""

    module: str
    """Module of `dragoman.runs`."""
    class_name: str
    """Name of the class in it, an `OpenEngine`."""
    package: str | None = None
    """Package to import that the engine needs; the extra has the name of the engine."""


ENGINES: Mapping[str, NamedEngine] = {
    "log": NamedEngine("engines", "LogEngine"),
    "dbos": NamedEngine("dbos_engine", "DbosEngine", "dbos"),
    "restate": NamedEngine("restate_engine", "RestateEngine", "restate"),
    "temporal": NamedEngine("temporal_engine", "TemporalEngine", "temporalio"),
}
"""By their names."""


def open_engine(name: str, log: RunLog, *, poll_seconds: float) -> OpenEngine:
    """Returns the engine with a name.

    Args:
        name: one of `ENGINES`.
        log: the log of the runs.
        poll_seconds: seconds from one look for the changes of other processes to the next.

    Raises:
        SettingsError: no engine has that name, its package is missing, or it cannot work with this
            log.
    """
    named = ENGINES.get(name)
    if named is None:
        raise SettingsError(f'there is no engine "{name}": give one of {", ".join(ENGINES)}')
    if named.package is not None and find_spec(named.package) is None:
        raise SettingsError(f'the engine "{name}" needs {named.package}: {extra_hint(name)}')
    module = import_module(f"dragoman.runs.{named.module}")
    return getattr(module, named.class_name)(log, poll_seconds=poll_seconds)
