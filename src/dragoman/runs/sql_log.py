"""A log of runs in SQLite or Postgres."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from typing import Any, Self

from sqlalchemy import Connection, Executable, make_url, select
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from dragoman import json_bytes
from dragoman.errors import RunLogError
from dragoman.event import Event
from dragoman.runs.batch import batches, events_of
from dragoman.runs.ledger import Append, Post, Take
from dragoman.runs.log import Lease, Posted, RunState, RunStatus, state_after
from dragoman.runs.sql_changes import Claim, Prune, write
from dragoman.runs.sql_engine import migrate
from dragoman.runs.sql_tables import events, posts, runs
from dragoman.sql.dialects import DIALECTS
from dragoman.sql.engine import open_engine
from dragoman.sql.writer import Writer

__all__ = ["SqlLog"]

_PAUSE = 0.02
"""Seconds from one commit of this process to the next at least."""
_READERS = 2
"""Threads that read."""
_ROWS = 8
"""That are read at once, of 64 kB each."""


class SqlLog:
    """A `RunLog` in a database. All that a process writes goes through one thread and one connection, a commit every 20 ms at most."""

    def __init__(self, url: str) -> None:
        """`url`: as in `open_log`. Nothing is opened before the first use."""
        self._dialect = DIALECTS[make_url(url).get_backend_name()]
        self._write_engine = open_engine(url, connections=1, writes=True)
        self._read_engine = open_engine(url, connections=_READERS, writes=False)
        self._writer = Writer(self._commit, name="dragoman-run-log", closed=_closed, pause=_PAUSE)
        self._readers = ThreadPoolExecutor(_READERS, "dragoman-run-log-read")
        self._opening = threading.Lock()
        self._opened = False
        self._connection: Connection | None = None
        """The writer's; kept, since taking one from the pool costs a third of a commit."""
        self.commits = 0
        """How many transactions were written."""

    async def append(self, run_id: str, expected_offset: int, events: Sequence[Event], *, lease: Lease) -> int:
        """As `RunLog.append`."""
        rows, state = batches(events), state_after(run_id, events)
        return await self._writer.do(Append(run_id, expected_offset, rows, state, lease))

    async def read(self, run_id: str, from_offset: int = 0) -> list[Event]:
        """As `RunLog.read`."""
        wanted = select(events.c.end, events.c.data).where(events.c.run_id == run_id, events.c.end > from_offset)
        rows = await self._query(wanted.order_by(events.c.end).limit(_ROWS))
        found = [event for _, data in rows for event in events_of(data)]
        return found[max(0, from_offset - (rows[-1][0] - len(found))) :] if rows else []

    async def lease(
        self, run_id: str, owner: str, seconds: float, *, token: int | None = None, thread_id: str | None = None
    ) -> Lease:
        """As `RunLog.lease`."""
        return await self._writer.do(Take(run_id, owner, seconds, token, thread_id))

    async def post(self, run_id: str, message: Any) -> int:
        """As `RunLog.post`."""
        return await self._writer.do(Post(run_id, json_bytes.encode(message).decode()))

    async def posted(self, run_id: str, after: int = 0) -> list[Posted]:
        """As `RunLog.posted`."""
        wanted = select(posts.c.number, posts.c.message).where(posts.c.run_id == run_id, posts.c.number > after)
        rows = await self._query(wanted.order_by(posts.c.number))
        return [Posted(run_id, number, json_bytes.decode(message)) for number, message in rows]

    async def claim(self, thread_id: str, interrupt_id: str, run_id: str) -> bool:
        """As `RunLog.claim`."""
        return await self._writer.do(Claim(thread_id, interrupt_id, run_id))

    async def prune(self, before: datetime) -> int:
        """Forgets runs that were begun before a time and are over → how many; so many at a time that others come between. Claims stay,
        else what they allowed could be done again."""
        count = 0
        while gone := await self._writer.do(Prune(before.timestamp())):
            count += gone
        return count

    async def status(self, run_ids: Iterable[str]) -> dict[str, RunStatus]:
        """As `RunLog.status`."""
        rows = await self._query(select(runs, self._dialect.now.label("now")).where(runs.c.run_id.in_(list(run_ids))))
        return {row.run_id: _status(row) for row in rows}

    async def runs(
        self,
        *,
        thread_id: str | None = None,
        state: RunState | None = None,
        driven: bool | None = None,
        most: int = 100,
    ) -> list[RunStatus]:
        """As `RunLog.runs`."""
        wanted = select(runs, self._dialect.now.label("now")).order_by(runs.c.started_at.desc()).limit(most)
        if thread_id is not None:
            wanted = wanted.where(runs.c.thread_id == thread_id)
        if state is not None:
            wanted = wanted.where(runs.c.state == state)
        if driven is not None:
            wanted = wanted.where((runs.c.lease_until > self._dialect.now) == driven)
        return [_status(row) for row in await self._query(wanted)]

    async def close(self) -> None:
        """As `RunLog.close`."""
        with suppress(RuntimeError):  # it is closed
            await asyncio.wrap_future(self._readers.submit(self._writer.close))
        self._readers.shutdown()
        if self._connection is not None:
            self._connection.close()
        self._write_engine.dispose()
        self._read_engine.dispose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def _commit(self, changes: Sequence[Any]) -> list[Any]:
        """In the writer's thread. One change that the database refuses must not undo those of others: each is then tried alone."""
        self._open()
        try:
            self.commits += 1
            connection = self._connection = self._connection or self._write_engine.connect()
            with connection.begin():
                return write(connection, changes)
        except (SQLAlchemyError, ValueError, TypeError) as error:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            if len(changes) == 1 or not _is_of_one(error):
                return [_failure(error)] * len(changes)
            return [result for change in changes for result in self._commit([change])]

    async def _query(self, statement: Executable) -> Sequence[Any]:
        def rows() -> Sequence[Any]:
            self._open()
            try:
                with self._read_engine.connect() as connection:
                    return connection.execute(statement).all()
            except SQLAlchemyError as error:
                raise _failure(error) from error

        try:
            future = self._readers.submit(rows)
        except RuntimeError as error:
            raise _closed() from error
        return await asyncio.wrap_future(future)

    def _open(self) -> None:
        """Brings the tables up to date, before anything else is done."""
        if self._opened:
            return
        with self._opening:
            if not self._opened:
                try:
                    migrate(self._write_engine)
                except SQLAlchemyError as error:
                    raise _failure(error) from error
                self._opened = True


def _status(row: Any) -> RunStatus:
    return RunStatus(
        row.run_id,
        row.thread_id,
        row.state,
        row.end,
        row.posts,
        row.owner,
        row.token,
        driven=row.lease_until > row.now,
        started_at=row.started_at,
    )


def _closed() -> RunLogError:
    return RunLogError("the log is closed: open it again with open_log()")


def _is_of_one(error: Exception) -> bool:
    """Whether what one change holds was refused, by the driver or the database, before anything was committed."""
    return isinstance(error, (DataError, IntegrityError)) or not isinstance(error, SQLAlchemyError)


def _failure(error: Exception) -> RunLogError:
    cause = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
    failure = RunLogError(
        f"the database of the run log failed: {cause}. Whether the last append was stored, read() tells"
    )
    failure.__cause__ = error
    return failure
