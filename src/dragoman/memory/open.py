"""A store by its URL."""

from __future__ import annotations

from pathlib import Path

from dragoman.errors import SettingsError
from dragoman.memory.store import Store
from dragoman.sql.address import check_address

__all__ = ["open_store"]


def open_store(url: str) -> Store:
    """A store: `memory:` (gone with the process), `sqlite:///path`, or `postgresql://user:password@host/database`. Its tables are made or
    brought up to date with the first use.

    Raises:
        SettingsError: the URL is of another kind, its folder is not there, or a package is missing.
    """
    if url == "memory:":
        from dragoman.memory.memory_store import MemoryStore

        return MemoryStore()
    check_address(url, "message store", "message store")
    scheme, _, rest = url.partition("://")
    if scheme == "sqlite" and not (folder := Path(rest.removeprefix("/")).parent).is_dir():
        raise SettingsError(f"the folder of the message store is not there: make {folder}")
    from dragoman.memory.sql_store import SqlStore

    return SqlStore(url)
