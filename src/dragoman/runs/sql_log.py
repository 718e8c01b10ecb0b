"""Stores a log of runs in SQLite or Postgres.

Every write is a command (`Append`, `TakeLease`, `Post`, `Enqueue`, `Claim`, `Prune`) that is submitted to the
`Database`. Its thread collects the commands of all runs and carries them out together, so that
many runs share one commit. Reads are plain queries. Events are packed into rows of about 64 kB,
each with the offset of its end; a read returns a few rows and drops the events before its offset.
Lease times are compared with the database's clock, because the clocks of processes may differ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, Self

from sqlalchemy import Executable, func, select

from dragoman import json_bytes
from dragoman.errors import RunLogError
from dragoman.event import Event
from dragoman.request import RunRequest
from dragoman.runs.batch import pack_events, unpack_events
from dragoman.runs.ledger import Append, Enqueue, Post, TakeLease
from dragoman.runs.log import ControlMessage, Lease, RunState, RunStatus, state_after
from dragoman.runs.requests import request_from_json, request_to_json
from dragoman.runs.spending import CallMeter
from dragoman.runs.sql_changes import Claim, Prune, read_status, write
from dragoman.runs.sql_tables import MIGRATIONS, events, posts, requests, runs
from dragoman.sql.database import Database
from dragoman.sql.engine import DIALECTS

__all__ = ["SqlLog"]

_PAUSE_SECONDS = 0.02
"""Least seconds from one commit of this process to the next."""
_ROWS_PER_READ = 8
"""Rows of 64 kB that one read returns at most."""
_NOBODY = ""
"""Stands for the caller of a run that has none."""


class SqlLog:
    """A `RunLog` in a database. A process writes through one thread and one connection, with at most
    one commit every 20 ms."""

    def __init__(self, url: str) -> None:
        """Creates the log. `url`: see `open_log`. Nothing is opened before the first use."""
        self.url = url
        """As it was given; it may hold a password."""
        self._database = Database(
            url,
            MIGRATIONS,
            name="run log",
            failure=_make_error,
            carry_out=write,
            pause=_PAUSE_SECONDS,
        )
        self._dialect = DIALECTS[self._database.dialect]
        self._meter = CallMeter()

    @property
    def commits(self) -> int:
        """Returns the number of transactions that were written."""
        return self._database.commits

    async def append(
        self, run_id: str, expected_offset: int, events: Sequence[Event], *, lease: Lease
    ) -> int:
        """See `RunLog.append`."""
        rows, state = pack_events(events), state_after(run_id, events)
        spent = self._meter.feed(events)
        return await self._database.submit(
            Append(run_id, expected_offset, rows, state, lease, spent)
        )

    def hurry(self) -> None:
        """See `RunLog.hurry`."""
        self._database.hurry()

    async def read(self, run_id: str, from_offset: int = 0) -> list[Event]:
        """See `RunLog.read`."""
        query = select(events.c.end, events.c.data).where(
            events.c.run_id == run_id, events.c.end > from_offset
        )
        rows = await self._query(query.order_by(events.c.end).limit(_ROWS_PER_READ))
        if not rows:
            return []
        stored_events = [event for _, data in rows for event in unpack_events(data)]
        # A row may begin before the offset.
        first_offset = rows[-1][0] - len(stored_events)
        return stored_events[max(0, from_offset - first_offset) :]

    async def lease(
        self,
        run_id: str,
        owner: str,
        seconds: float,
        *,
        token: int | None = None,
        thread_id: str | None = None,
        caller: str | None = None,
    ) -> Lease:
        """See `RunLog.lease`."""
        return await self._database.submit(
            TakeLease(run_id, owner, seconds, token, thread_id, caller)
        )

    async def enqueue(
        self,
        run_id: str,
        agent: str,
        request: RunRequest,
        *,
        thread_id: str | None = None,
        queue: str = "default",
        owner: str | None = None,
        priority: int = 0,
    ) -> bool:
        """See `RunLog.enqueue`."""
        text = request_to_json(request)
        return await self._database.submit(
            Enqueue(run_id, agent, text, thread_id, queue, owner, priority)
        )

    async def request(self, run_id: str) -> RunRequest:
        """See `RunLog.request`."""
        rows = await self._query(select(requests.c.request).where(requests.c.run_id == run_id))
        return request_from_json(run_id, rows[0].request if rows else None)

    async def post(self, run_id: str, message: Any) -> int:
        """See `RunLog.post`."""
        return await self._database.submit(Post(run_id, json_bytes.encode(message).decode()))

    async def read_posts(self, run_id: str, after: int = 0) -> list[ControlMessage]:
        """See `RunLog.read_posts`."""
        wanted = select(posts.c.number, posts.c.message).where(
            posts.c.run_id == run_id, posts.c.number > after
        )
        rows = await self._query(wanted.order_by(posts.c.number))
        return [
            ControlMessage(run_id, number, json_bytes.decode(message)) for number, message in rows
        ]

    async def claim(self, thread_id: str, interrupt_id: str, run_id: str) -> bool:
        """See `RunLog.claim`."""
        return await self._database.submit(Claim(thread_id, interrupt_id, run_id))

    async def prune(self, before: datetime) -> int:
        """Forgets finished runs that began before a time. Returns how many.

        It works in small transactions, so that other writes come between. Claims are kept: without
        them an old approval could be used again.
        """
        count = 0
        while removed := await self._database.submit(Prune(before.timestamp())):
            count += removed
        return count

    async def status(self, run_ids: Iterable[str]) -> dict[str, RunStatus]:
        """See `RunLog.status`."""
        rows = await self._query(
            select(runs, self._dialect.now.label("now")).where(runs.c.run_id.in_(list(run_ids)))
        )
        return {row.run_id: read_status(row) for row in rows}

    async def runs(
        self,
        *,
        thread_id: str | None = None,
        state: RunState | None = None,
        driven: bool | None = None,
        queue: str | None = None,
        agent: str | None = None,
        callers: Collection[str | None] | None = None,
        oldest_first: bool = False,
        most: int = 100,
        skip: int = 0,
    ) -> list[RunStatus]:
        """See `RunLog.runs`."""
        order = (runs.c.started_at.desc(),)
        if oldest_first:
            order = (runs.c.priority, runs.c.started_at)
        query = select(runs, self._dialect.now.label("now")).order_by(*order)
        query = query.limit(most).offset(skip)
        filters = {"thread_id": thread_id, "state": state, "queue": queue, "agent": agent}
        query = query.where(
            *[runs.c[name] == value for name, value in filters.items() if value is not None]
        )
        if callers is not None:
            column = runs.c.caller
            if None in callers:
                # A condition with OR would keep SQLite from reading along the index of times.
                column = func.coalesce(column, _NOBODY)
            query = query.where(column.in_([caller or _NOBODY for caller in callers]))
        if driven is not None:
            query = query.where((runs.c.lease_until > self._dialect.now) == driven)
        return [read_status(row) for row in await self._query(query)]

    async def close(self) -> None:
        """See `RunLog.close`."""
        await self._database.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _query(self, statement: Executable) -> Sequence[Any]:
        """Returns the rows of a query."""
        return await self._database.read(lambda connection: connection.execute(statement).all())


def _make_error(message: str) -> RunLogError:
    """Returns the error for a failure of the database."""
    return RunLogError(f"{message}. If an append failed, read() tells whether it was stored")
