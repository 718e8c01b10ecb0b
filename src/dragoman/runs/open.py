"""A log of runs by its URL."""

from __future__ import annotations

from dragoman.runs.log import RunLog
from dragoman.sql.address import check_address

__all__ = ["open_log"]


def open_log(url: str) -> RunLog:
    """A log of runs: `memory:` (gone with the process), `sqlite:///path`, or `postgresql://user:password@host/database`. Its tables are
    made or brought up to date with the first use.

    Raises:
        SettingsError: the URL is of another kind, or a package is missing.
    """
    if url == "memory:":
        from dragoman.runs.memory_log import MemoryLog

        return MemoryLog()
    check_address(url, "log of runs", "log")
    from dragoman.runs.sql_log import SqlLog

    return SqlLog(url)
