"""Opens a log of runs by its URL (`open_log`)."""

from __future__ import annotations

from dragoman.runs.log import RunLog
from dragoman.sql.address import check_address

__all__ = ["open_log"]


def open_log(url: str) -> RunLog:
    """Opens a log of runs. Its tables are created or migrated on first use.

    Args:
        url: `memory:` (lost with the process), `sqlite:///path`, or
            `postgresql://user:password@host/database`.

    Raises:
        SettingsError: the URL has another scheme, or a package is missing.
    """
    if url == "memory:":
        from dragoman.runs.memory_log import MemoryLog

        return MemoryLog()
    check_address(url, "log of runs", "log")
    from dragoman.runs.sql_log import SqlLog

    return SqlLog(url)
