"""A log of runs in SQLite or Postgres."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Self

from sqlalchemy import Executable, select

from dragoman import json_bytes
from dragoman.errors import RunLogError
from dragoman.event import Event
from dragoman.runs.batch import batches, events_of
from dragoman.runs.ledger import Append, Post, Take
from dragoman.runs.log import ControlMessage, Lease, RunState, RunStatus, state_after
from dragoman.runs.sql_changes import Claim, Prune, write
from dragoman.runs.sql_tables import MIGRATIONS, events, posts, runs
from dragoman.sql.database import Database
from dragoman.sql.engine import DIALECTS

__all__ = ["SqlLog"]

_PAUSE = 0.02
"""Seconds from one commit of this process to the next at least."""
_ROWS = 8
"""That are read at once, of 64 kB each."""


class SqlLog:
    """A `RunLog` in a database. All that a process writes goes through one thread and one
    connection, a commit every 20 ms at most."""

    def __init__(self, url: str) -> None:
        """`url`: as in `open_log`. Nothing is opened before the first use."""
        self._database = Database(
            url, MIGRATIONS, name="run log", failure=_failure, carry_out=write, pause=_PAUSE
        )
        self._dialect = DIALECTS[self._database.dialect]

    @property
    def commits(self) -> int:
        """How many transactions were written."""
        return self._database.commits

    async def append(
        self, run_id: str, expected_offset: int, events: Sequence[Event], *, lease: Lease
    ) -> int:
        """As `RunLog.append`."""
        rows, state = batches(events), state_after(run_id, events)
        return await self._database.submit(Append(run_id, expected_offset, rows, state, lease))

    async def read(self, run_id: str, from_offset: int = 0) -> list[Event]:
        """As `RunLog.read`."""
        wanted = select(events.c.end, events.c.data).where(
            events.c.run_id == run_id, events.c.end > from_offset
        )
        rows = await self._query(wanted.order_by(events.c.end).limit(_ROWS))
        stored_events = [event for _, data in rows for event in events_of(data)]
        return (
            stored_events[max(0, from_offset - (rows[-1][0] - len(stored_events))) :]
            if rows
            else []
        )

    async def lease(
        self,
        run_id: str,
        owner: str,
        seconds: float,
        *,
        token: int | None = None,
        thread_id: str | None = None,
    ) -> Lease:
        """As `RunLog.lease`."""
        return await self._database.submit(Take(run_id, owner, seconds, token, thread_id))

    async def post(self, run_id: str, message: Any) -> int:
        """As `RunLog.post`."""
        return await self._database.submit(Post(run_id, json_bytes.encode(message).decode()))

    async def posted(self, run_id: str, after: int = 0) -> list[ControlMessage]:
        """As `RunLog.posted`."""
        wanted = select(posts.c.number, posts.c.message).where(
            posts.c.run_id == run_id, posts.c.number > after
        )
        rows = await self._query(wanted.order_by(posts.c.number))
        return [
            ControlMessage(run_id, number, json_bytes.decode(message)) for number, message in rows
        ]

    async def claim(self, thread_id: str, interrupt_id: str, run_id: str) -> bool:
        """As `RunLog.claim`."""
        return await self._database.submit(Claim(thread_id, interrupt_id, run_id))

    async def prune(self, before: datetime) -> int:
        """Forgets runs that were begun before a time and are over → how many; so many at a time
        that others come between. Claims stay, else what they allowed could be done again."""
        count = 0
        while gone := await self._database.submit(Prune(before.timestamp())):
            count += gone
        return count

    async def status(self, run_ids: Iterable[str]) -> dict[str, RunStatus]:
        """As `RunLog.status`."""
        rows = await self._query(
            select(runs, self._dialect.now.label("now")).where(runs.c.run_id.in_(list(run_ids)))
        )
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
        wanted = (
            select(runs, self._dialect.now.label("now"))
            .order_by(runs.c.started_at.desc())
            .limit(most)
        )
        if thread_id is not None:
            wanted = wanted.where(runs.c.thread_id == thread_id)
        if state is not None:
            wanted = wanted.where(runs.c.state == state)
        if driven is not None:
            wanted = wanted.where((runs.c.lease_until > self._dialect.now) == driven)
        return [_status(row) for row in await self._query(wanted)]

    async def close(self) -> None:
        """As `RunLog.close`."""
        await self._database.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _query(self, statement: Executable) -> Sequence[Any]:
        return await self._database.read(lambda connection: connection.execute(statement).all())


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


def _failure(message: str) -> RunLogError:
    return RunLogError(f"{message}. If an append failed, read() tells whether it was stored")
