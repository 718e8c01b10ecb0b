"""Where answers are kept: `CacheStore`, and one in memory."""

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
    """Keeps bytes by a key. It may forget what it likes; what it raises is taken as if there was
    nothing, and logged."""

    async def get(self, key: str) -> bytes | None:
        """What was put there last; `None`: nothing."""
        ...

    async def put(self, key: str, value: bytes) -> None:
        """Keeps a value in place of the one that was there."""
        ...

    async def close(self) -> None:
        """Gives back what it holds open."""
        ...


class MemoryCacheStore:
    """Gone with the process. Threads and event loops may share it."""

    def __init__(self, max_entries: int) -> None:
        """`max_entries`: when there are more, what was not used for the longest time is
        forgotten."""
        self._most = max_entries
        self._values: OrderedDict[str, bytes] = OrderedDict()
        self._lock = Lock()

    async def get(self, key: str) -> bytes | None:
        """See `CacheStore.get`."""
        with self._lock:
            if (value := self._values.get(key)) is not None:
                self._values.move_to_end(key)
            return value

    async def put(self, key: str, value: bytes) -> None:
        """See `CacheStore.put`."""
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
    """A store by its URL: `memory:` or `sqlite:///path`. Nothing is opened before the first use.

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
