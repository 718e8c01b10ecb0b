"""`CacheStore`, the protocol of a store for cached responses, and a store in memory."""

from __future__ import annotations

from collections import OrderedDict
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Protocol, runtime_checkable

from dragoman.errors import SettingsError
from dragoman.runtime import extra_hint

__all__ = ["CacheStore", "MemoryCacheStore", "open_store"]


@runtime_checkable
class CacheStore(Protocol):
    """Stores bytes by key. A store may forget entries. An exception counts as a missing entry and
    is logged."""

    async def get(self, key: str) -> bytes | None:
        """Returns the value that was last stored under this key, or None."""
        ...

    async def put(self, key: str, value: bytes) -> None:
        """Stores a value, replacing an earlier one."""
        ...

    async def close(self) -> None:
        """Closes files and connections."""
        ...


class MemoryCacheStore:
    """A store that ends with the process. Threads and event loops may share it."""

    def __init__(self, max_entries: int) -> None:
        """Creates the cache store in the process's memory. `max_entries`: beyond it the least
        recently used entry is dropped."""
        self._most = max_entries
        self._values: OrderedDict[str, bytes] = OrderedDict()
        self._lock = Lock()

    async def get(self, key: str) -> bytes | None:
        """Returns a cached answer from memory. See `CacheStore.get`."""
        with self._lock:
            if (value := self._values.get(key)) is not None:
                self._values.move_to_end(key)
            return value

    async def put(self, key: str, value: bytes) -> None:
        """Keeps a cached answer in memory. See `CacheStore.put`."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)

    async def close(self) -> None:
        """See `CacheStore.close`."""
        with self._lock:
            self._values.clear()


def open_store(where: str, max_entries: int) -> CacheStore:
    """Returns the cache store for a URL: `memory:` or `sqlite:///path`. Nothing is opened before
    the first use.

    Raises:
        SettingsError: the URL is of another kind, its folder is not there, or a package is missing.
    """
    if where == "memory:":
        return MemoryCacheStore(max_entries)
    scheme, _, path = where.partition(":///")
    if scheme != "sqlite" or not path.strip("/"):
        raise SettingsError(
            f'"{scheme.partition(":")[0]}" is no response cache: give "memory:" or "sqlite:///PATH"'
        )
    if find_spec("sqlalchemy") is None:
        raise SettingsError(f"a response cache in SQLite needs sqlalchemy: {extra_hint('sql')}")
    if not Path(path).parent.is_dir():
        raise SettingsError(
            f"the folder of the response cache is not there: make {Path(path).parent}"
        )
    from dragoman.model.cache_sqlite import SqliteStore

    return SqliteStore(where, max_entries)
