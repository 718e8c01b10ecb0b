"""A response cache in a SQLite file."""

from __future__ import annotations

from threading import Lock
from time import time_ns

from anyio.to_thread import run_sync
from sqlalchemy import (
    BigInteger,
    Column,
    Engine,
    LargeBinary,
    MetaData,
    String,
    Table,
    delete,
    make_url,
    select,
    update,
)
from sqlalchemy.dialects.sqlite import insert

from dragoman.sql.address import create_private_file
from dragoman.sql.engine import open_engine

__all__ = ["SqliteStore"]

_metadata = MetaData()
_answers = Table(
    # another form of it will have another name
    "dragoman_answers_1",
    _metadata,
    Column("key", String, primary_key=True),
    Column("value", LargeBinary, nullable=False),
    Column("used_at", BigInteger, nullable=False, index=True),
)


class SqliteStore:
    """A `CacheStore` that processes may share. A file that it makes is its owner's alone: it holds
    what users said."""

    def __init__(self, url: str, max_entries: int) -> None:
        """Creates the response cache in an SQLite file. See `open_store`. `max_entries`: when there
        are more, what was not used for the longest time is deleted."""
        self._path = make_url(url).database or ""
        self._url, self._most = url, max_entries
        self._engine: Engine | None = None
        self._opening = Lock()

    async def get(self, key: str) -> bytes | None:
        """See `CacheStore.get`."""
        return await run_sync(self._get_answer, key)

    async def put(self, key: str, value: bytes) -> None:
        """See `CacheStore.put`."""
        await run_sync(self._put_answer, key, value)

    async def close(self) -> None:
        """Closes the response cache's SQLite file. See `CacheStore.close`."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await run_sync(engine.dispose)

    def _get_answer(self, key: str) -> bytes | None:
        """Returns from SQLite the cached answer for a key, and notes that it was used."""
        with self._open_cache_file().begin() as connection:
            value = connection.execute(
                select(_answers.c.value).where(_answers.c.key == key)
            ).scalar()
            if value is not None:
                connection.execute(
                    update(_answers).where(_answers.c.key == key).values(used_at=time_ns())
                )
            return value

    def _put_answer(self, key: str, value: bytes) -> None:
        """Stores a cached answer in SQLite under a key, and deletes the least recently used ones
        beyond the limit."""
        row = {"value": value, "used_at": time_ns()}
        oldest = select(_answers.c.key).order_by(_answers.c.used_at.desc()).offset(self._most)
        with self._open_cache_file().begin() as connection:
            connection.execute(
                insert(_answers).values(key=key, **row).on_conflict_do_update(set_=row)
            )
            connection.execute(delete(_answers).where(_answers.c.key.in_(oldest)))

    def _open_cache_file(self) -> Engine:
        """Opens the SQLite file of the response cache on first use."""
        with self._opening:
            if self._engine is None:
                create_private_file(self._path)
                engine = open_engine(self._url, connections=1, writes=True)
                with engine.begin() as connection:
                    _metadata.create_all(connection)
                self._engine = engine
            return self._engine
