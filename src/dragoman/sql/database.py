"""A database with tables for one purpose: one thread writes, a few threads read.

Work of several callers is committed in one transaction, which makes a commit cheap for each of them.
If that transaction fails, each piece of work is done again alone, so that a failure reaches only the
caller whose work it was. Work is repeated if it conflicts with another process. It is not repeated
if the connection was lost during the commit, because it may have been stored.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from sqlalchemy import Connection, RootTransaction
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from dragoman.errors import DragomanError
from dragoman.sql.address import create_private_file
from dragoman.sql.engine import open_engine
from dragoman.sql.migrate import Migrations, NewerTablesError, migrate
from dragoman.sql.work_queue import WorkQueue

__all__ = ["Database", "Work"]

Work = Callable[[Connection], Any]
"""A function that works in a transaction and returns a result."""
T = TypeVar("T")

_READERS = 2
"""Number of threads that read."""
_ATTEMPTS = 6
"""How often work is tried that conflicts with another process."""
_CONFLICT_STATES = {"40001", "40P01", "23503"}
"""Error codes of Postgres for a conflict of two transactions: serialization failure, deadlock, and
a foreign key whose row the other one deleted."""


def _run_works(connection: Connection, works: Sequence[Work]) -> list[Any]:
    return [work(connection) for work in works]


class Database:
    """Reads and writes one database. Only its owner can read a file that it creates.

    A process writes through one thread and one connection. Work that arrives during a commit is
    committed together afterwards. Nothing is opened before the first use.
    """

    def __init__(
        self,
        url: str,
        migrations: Migrations,
        *,
        name: str,
        failure: Callable[[str], DragomanError],
        carry_out: Callable[[Connection, Sequence[Any]], Sequence[Any]] = _run_works,
        pause: float = 0.0,
    ) -> None:
        """Creates the access to a database, and opens nothing yet.

        Args:
            url: `sqlite:///path` or `postgresql://…`.
            migrations: the tables.
            name: what the database holds, in errors and in names of threads.
            failure: makes the error for a message.
            carry_out: does the work of one transaction; returns a result for each piece, or the exception
                that refuses it. By default each piece is a function of the connection.
            pause: least number of seconds from one commit to the next.
        """
        self._migrations, self._name, self._failure = migrations, name, failure
        self._carry_out = carry_out
        self._write_engine = open_engine(url, connections=1, writes=True)
        self._read_engine = open_engine(url, connections=_READERS, writes=False)
        thread = f"dragoman-{name.replace(' ', '-')}"
        self._writer = WorkQueue(
            self._commit_work, name=thread, closed=self._closed_error, shares=True, pause=pause
        )
        self._readers = WorkQueue(
            self._read, name=f"{thread}-read", closed=self._closed_error, threads=_READERS
        )
        self._opening = threading.Lock()
        self._opened = False
        self._connection: Connection | None = None
        self._reading: dict[int, Connection] = {}
        """The connection of each thread that reads. To take one from the engine and give it back
        costs as much as a short query."""
        self.dialect = self._write_engine.dialect.name
        """`sqlite` or `postgresql`."""
        self.commits = 0
        """Number of transactions that were written."""

    async def write(self, work: Work) -> Any:
        """Runs `work` in a transaction. Returns its result once it is durable in the database. See
        `submit`."""
        return await self.submit(work)

    async def submit(self, work: Any) -> Any:
        """Passes to the database a piece of work to `carry_out`. Returns its result once it is
        durable.

        A caller that stops waiting does not stop the work. The work may be done several times, but
        only one of them is committed.

        Raises:
            DragomanError: the work was refused, the database failed, or it is closed.
        """
        return await self._writer.do(work)

    def post(self, work: Work) -> asyncio.Future[Any]:
        """Passes to the database a piece of work, and does not wait. Returns a future of its result.
        See `submit`."""
        return self._writer.post(work)

    def hurry(self) -> None:
        """Commits what is submitted without waiting for more to share the commit."""
        self._writer.hurry()

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Runs work that only reads the database. Returns its result.

        Raises:
            DragomanError: what the work raised, or the database failed, or it is closed.
        """

        return await self._readers.do(work)

    async def close(self) -> None:
        """Finishes the work that was submitted, and closes the database's connections and
        threads."""
        await asyncio.to_thread(self._close_queues)
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        for connection in self._reading.values():
            connection.close()
        self._reading.clear()
        self._write_engine.dispose()
        self._read_engine.dispose()

    def _close_queues(self) -> None:
        """Finishes the work that was passed to the database. Blocks until then."""
        self._writer.close()
        self._readers.close()

    def _read(self, works: Sequence[Work]) -> list[Any]:
        """Runs work that reads in a thread of the database. Returns its result."""
        self._open_tables()
        thread = threading.get_ident()
        try:
            if thread not in self._reading:
                self._reading[thread] = self._read_engine.connect()
            return _run_works(self._reading[thread], works)
        except SQLAlchemyError as error:
            _close_failed(self._reading.pop(thread, None))
            raise self._store_error(error) from error

    def _commit_work(self, works: Sequence[Any]) -> Sequence[Any]:
        """Runs pieces of work in the writer's thread. Returns the result of each, or the exception
        that refuses it."""
        self._open_tables()
        # Pieces of work of several callers share a transaction, which makes a commit cheap for
        # each.
        if len(works) > 1:
            try:
                return self._run_transaction(works)
            except _NotBegunError as error:
                # No work is to blame, and each alone would wait as long again.
                return [self._store_error(error.cause) for _ in works]
            except Exception as error:  # noqa: BLE001 - each piece of work is told what it was
                if isinstance(error, SQLAlchemyError) and not _is_undone(error):
                    return [self._store_error(error) for _ in works]
            return [result for work in works for result in self._commit_work([work])]
        for last in range(_ATTEMPTS - 1, -1, -1):
            try:
                return self._run_transaction(works)
            except _NotBegunError as error:
                return [self._store_error(error.cause)]
            except SQLAlchemyError as error:
                if not (last and _is_conflict(error)):
                    return [self._store_error(error)]
            except DragomanError as error:
                # What the work refuses.
                return [error]
            # The driver refused a value, such as half a character.
            except (
                ValueError,
                TypeError,
            ) as error:
                return [self._store_error(error)]
            except Exception as error:  # noqa: BLE001 - the caller is told
                return [error]
        raise AssertionError

    def _run_transaction(self, works: Sequence[Any]) -> Sequence[Any]:
        """Runs pieces of work in one transaction of the database; after a failure the connection is
        replaced."""
        try:
            transaction = self._begin_transaction()
            with transaction:
                assert self._connection is not None
                results = self._carry_out(self._connection, works)
        except (SQLAlchemyError, _NotBegunError):
            connection, self._connection = self._connection, None
            _close_failed(connection)
            raise
        self.commits += 1
        return results

    def _begin_transaction(self) -> RootTransaction:
        """Begins a transaction in the database. Raises `_NotBegunError` if the database cannot be
        reached."""
        try:
            self._connection = self._connection or self._write_engine.connect()
            return self._connection.begin()
        except SQLAlchemyError as error:
            raise _NotBegunError(error) from error

    def _open_tables(self) -> None:
        """Creates or migrates the database's tables before the first use."""
        if self._opened:
            return
        # Reader threads and the writer may come here at the same time.
        with self._opening:
            if not self._opened:
                try:
                    if self.dialect == "sqlite" and (path := self._write_engine.url.database):
                        create_private_file(path)
                    migrate(self._write_engine, self._migrations)
                except (SQLAlchemyError, NewerTablesError) as error:
                    raise self._store_error(error) from error
                self._opened = True

    def _store_error(self, error: Exception) -> DragomanError:
        """Returns the store's own error for an error of the database driver."""
        cause = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        if self.dialect == "sqlite":
            path = self._write_engine.url.database
        else:
            path = None
        suffix = f"; its file is {path}" if path else ""
        failure = self._failure(f"the database of the {self._name} failed: {cause}{suffix}")
        failure.__cause__ = error
        return failure

    def _closed_error(self) -> DragomanError:
        return self._failure(f"the {self._name} is closed: open it again")


class _NotBegunError(Exception):
    """No transaction could begin: the file is locked, or the server cannot be reached."""

    def __init__(self, cause: SQLAlchemyError) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _close_failed(connection: Connection | None) -> None:
    """Closes a connection whose state is unknown after a failure; the next work opens a new one."""
    if connection is not None:
        with suppress(SQLAlchemyError):
            connection.close()


def _is_undone(error: SQLAlchemyError) -> bool:
    """True if the database is known to have undone the transaction. After a lost connection or a
    failed commit it is not: the work may have been stored, and must not be done a second time."""
    return not isinstance(error, OperationalError) or _is_conflict(error)


def _is_conflict(error: SQLAlchemyError) -> bool:
    return (
        isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) in _CONFLICT_STATES
    )
