"""A database of one purpose: its tables, one thread that writes, a few that read."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from sqlalchemy import Connection, RootTransaction
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from dragoman.errors import DragomanError
from dragoman.sql.engine import open_engine
from dragoman.sql.migrate import Migrations, migrate
from dragoman.sql.writer import Writer

__all__ = ["Database", "Work"]

Work = Callable[[Connection], Any]
"""What is done in a transaction → its result."""
T = TypeVar("T")

_READERS = 2
"""Threads that read."""
_TRIES = 6
"""How often work is done again that another process got in the way of."""
_MET = {"40001", "40P01", "23503"}
"""What Postgres says where two transactions met: they are not serial, they wait for each other, or one deleted what the other refers to."""


class Database:
    """Reads and writes; a file that it makes is its owner's alone. All that a process writes goes through one thread and one connection; what comes in while it commits is
    committed together. Nothing is opened before the first use."""

    def __init__(self, url: str, migrations: Migrations, *, name: str, failure: Callable[[str], DragomanError]) -> None:
        """`name`: what it holds, for names of threads and in errors. `failure`: makes the error for what goes wrong."""
        self._migrations, self._name, self._failure = migrations, name, failure
        self._write_engine = open_engine(url, connections=1, writes=True)
        self._read_engine = open_engine(url, connections=_READERS, writes=False)
        thread = f"dragoman-{name.replace(' ', '-')}"
        self._writer = Writer(self._commit, name=thread, closed=self._closed)
        self._readers = ThreadPoolExecutor(_READERS, f"{thread}-read")
        self._opening = threading.Lock()
        self._opened = False
        self._connection: Connection | None = None
        self.dialect = self._write_engine.dialect.name
        """`sqlite` or `postgresql`."""
        self.commits = 0
        """How many transactions were written."""

    async def write(self, work: Work) -> Any:
        """Does the work in a transaction → its result, once that is durable. Who stops waiting does not stop the work, which may be done more
        than once, though only one time counts.

        Raises:
            DragomanError: what the work raised, or the database failed, or it is closed.
        """
        return await self._writer.do(work)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Does work that only reads → its result.

        Raises:
            DragomanError: what the work raised, or the database failed, or it is closed.
        """

        def done() -> T:
            self._open()
            try:
                with self._read_engine.connect() as connection:
                    return work(connection)
            except SQLAlchemyError as error:
                raise self._store_error(error) from error

        try:
            future = self._readers.submit(done)
        except RuntimeError as error:
            raise self._closed() from error
        return await asyncio.wrap_future(future)

    async def close(self) -> None:
        """Does what was given, and gives connections and threads back."""
        with suppress(RuntimeError):  # it is closed
            await asyncio.wrap_future(self._readers.submit(self._writer.close))
        self._readers.shutdown()
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._write_engine.dispose()
        self._read_engine.dispose()

    def _commit(self, works: Sequence[Work]) -> Sequence[Any]:
        """In the writer's thread. Work that fails must not undo that of others: each is then done alone."""
        self._open()
        if len(works) > 1:
            with suppress(Exception):
                try:
                    return self._transaction(works)
                except _NotBegunError as error:  # no work is to blame, and each alone would wait as long again
                    return [self._store_error(error.cause) for _ in works]
            return [result for work in works for result in self._commit([work])]
        for last in range(_TRIES - 1, -1, -1):
            try:
                return self._transaction(works)
            except _NotBegunError as error:
                return [self._store_error(error.cause)]
            except SQLAlchemyError as error:
                if not (last and _met(error)):
                    return [self._store_error(error)]
            except Exception as error:  # noqa: BLE001 - what the work refuses; who asked for it is told
                return [error]
        raise AssertionError

    def _transaction(self, works: Sequence[Work]) -> list[Any]:
        try:
            transaction = self._begun()
            with transaction:
                assert self._connection is not None
                results = [work(self._connection) for work in works]
        except (SQLAlchemyError, _NotBegunError):
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(SQLAlchemyError):
                    connection.close()
            raise
        self.commits += 1
        return results

    def _begun(self) -> RootTransaction:
        try:
            self._connection = self._connection or self._write_engine.connect()
            return self._connection.begin()
        except SQLAlchemyError as error:
            raise _NotBegunError(error) from error

    def _open(self) -> None:
        """Brings the tables up to date, before anything else is done."""
        if self._opened:
            return
        with self._opening:
            if not self._opened:
                try:
                    if self.dialect == "sqlite" and (path := self._write_engine.url.database):
                        with suppress(OSError):  # it is there, or the driver says why it cannot be
                            os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
                    migrate(self._write_engine, self._migrations)
                except SQLAlchemyError as error:
                    raise self._store_error(error) from error
                self._opened = True

    def _store_error(self, error: SQLAlchemyError) -> DragomanError:
        cause = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        path = self._write_engine.url.database if self.dialect == "sqlite" else None
        place = f"; its file is {path}" if path else ""
        failure = self._failure(f"the database of the {self._name} failed: {cause}{place}")
        failure.__cause__ = error
        return failure

    def _closed(self) -> DragomanError:
        return self._failure(f"the {self._name} is closed: open it again")


class _NotBegunError(Exception):
    """There is no transaction: the file is locked, or the server is not to be reached."""

    def __init__(self, cause: SQLAlchemyError) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _met(error: SQLAlchemyError) -> bool:
    return isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) in _MET
