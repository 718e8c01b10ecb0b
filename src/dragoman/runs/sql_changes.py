"""Changes of runs, some at once, in one transaction: the rows that they concern are locked and
read, changed as `Ledger` says, and written.

However many they are, these are few statements; and since rows are locked in one order, two
processes never wait for each other. A single change needs no reading first: its statement says what
must hold, and only if that does not hold is the run read, to say why the change is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, String, bindparam, case, delete, insert, select, update

from dragoman.errors import RunLogError
from dragoman.json_bytes import Json
from dragoman.runs.ledger import Append, Change, Ledger, Take, new_run
from dragoman.runs.log import Lease, RunStatus
from dragoman.runs.sql_tables import claims, events, posts, runs
from dragoman.sql.engine import DIALECTS, SqlDialect

__all__ = ["Claim", "Prune", "write"]


class Claim(msgspec.Struct, frozen=True):
    """An interrupt is to be claimed."""

    thread_id: str
    """In which conversation."""
    interrupt_id: str
    """Which one."""
    run_id: str
    """For which run."""


class Prune(msgspec.Struct, frozen=True):
    """Some runs that are over are to be forgotten."""

    before: float
    """Those that were begun before this, in seconds since 1970."""


_PRUNED = 100
"""Runs that are forgotten in one transaction."""
_UPDATED = ("state", "end", "posts", "owner", "token")
_UPDATE = (
    update(runs)
    .where(runs.c.run_id == bindparam("_run_id"))
    .values({name: bindparam(f"_{name}") for name in (*_UPDATED, "lease_until")})
)
_INSERT_EVENTS = insert(events)
_INSERT_POSTS = insert(posts)


class RunStatements(msgspec.Struct, frozen=True):
    """Those that each database words in its own way; made once, since making one costs as much as
    running it."""

    begin: Any
    """Makes runs that are not there."""
    lock: Any
    """Locks and reads runs."""
    claim: Any
    """Makes a claim that is not there, and tells which run holds it."""
    start: Any
    """Makes a run that is not there, with its lease."""
    append: Any
    """Moves the end of a run whose lease and end are as its driver says."""


def _statements(dialect: SqlDialect) -> RunStatements:
    concerned = runs.c.run_id.in_(bindparam("run_ids", expanding=True))
    is_driven = (
        runs.c.run_id == bindparam("_run_id"),
        runs.c.state == "running",
        runs.c.token == bindparam("_token"),
        runs.c.end == bindparam("_expected"),
        runs.c.lease_until > dialect.now,
    )
    goes_on = bindparam("_state", type_=String) == "running"
    return RunStatements(
        dialect.insert(runs).values(started_at=dialect.now).on_conflict_do_nothing(),
        select(runs, dialect.now.label("now"))
        .where(concerned)
        .order_by(runs.c.run_id)
        .with_for_update(),
        dialect.insert(claims)
        .on_conflict_do_update(
            index_elements=[claims.c.thread_id, claims.c.interrupt_id],
            set_={
                "run_id": claims.c.run_id
                # Unchanged; a conflict that does nothing would return no row.
            },
        )
        .returning(claims.c.run_id),
        dialect.insert(runs)
        .values(started_at=dialect.now, lease_until=dialect.now + bindparam("_seconds"))
        .on_conflict_do_nothing()
        .execution_options(preserve_rowcount=True),
        update(runs)
        .where(*is_driven)
        .values(
            state=bindparam("_state", type_=String),
            end=bindparam("_end"),
            lease_until=case((goes_on, runs.c.lease_until), else_=0.0),
        ),
    )


_STATEMENTS = {name: _statements(dialect) for name, dialect in DIALECTS.items()}
_NEW = {**{name: getattr(new_run("", None, 0.0), name) for name in _UPDATED}, "lease_until": 0.0}


def write(connection: Connection, changes: Sequence[Change | Claim | Prune]) -> list[Any]:
    """Makes the changes, in order → of each its result, or the `RunLogError` with which it is
    refused."""
    statements = _STATEMENTS[connection.dialect.name]
    if len(changes) == 1 and (result := _change_unread(connection, statements, changes[0])):
        return [result]
    on_runs = [change for change in changes if not isinstance(change, Claim | Prune)]
    ledger, now = _load(connection, statements, on_runs) if on_runs else (Ledger(), 0.0)
    results: dict[int, Any] = {}
    claimed = [
        (number, change) for number, change in enumerate(changes) if isinstance(change, Claim)
    ]
    for number, claim in sorted(
        claimed, key=lambda numbered: (numbered[1].thread_id, numbered[1].interrupt_id, numbered[0])
    ):
        holder = connection.execute(statements.claim, msgspec.structs.asdict(claim)).scalar_one()
        results[number] = holder == claim.run_id
    for number, change in enumerate(changes):
        if isinstance(change, Prune):
            results[number] = _prune(connection, change.before)
        elif not isinstance(change, Claim):
            try:
                results[number] = ledger.apply(change, now)
            except RunLogError as error:
                results[number] = error
    _store(connection, ledger)
    return [results[number] for number in range(len(changes))]


def _change_unread(
    connection: Connection, statements: RunStatements, change: Change | Claim | Prune
) -> Lease | int | None:
    """Makes a change without reading its run first, if it is a new run or the next events of one
    that is driven. Returns its result; None if it must be read why the change cannot be made."""
    if isinstance(change, Take) and change.token == 0:
        run = {"run_id": change.run_id, "thread_id": change.thread_id, "owner": change.owner}
        values = {**_NEW, **run, "token": 1, "_seconds": change.seconds}
        del values["lease_until"]
        is_new = connection.execute(statements.start, values).rowcount == 1
        return Lease(change.run_id, change.owner, 1) if is_new else None
    if not isinstance(change, Append) or not change.rows:
        return None
    rows: list[Json] = []
    end = change.expected_offset
    for count, lines in change.rows:
        end += count
        rows.append({"run_id": change.run_id, "end": end, "data": lines})
    driven = {
        "_run_id": change.run_id,
        "_token": change.lease.token,
        "_expected": change.expected_offset,
    }
    moved = {"_state": change.state, "_end": end}
    if connection.execute(statements.append, {**driven, **moved}).rowcount != 1:
        return None
    connection.execute(_INSERT_EVENTS, rows)
    return end


def _load(
    connection: Connection, statements: RunStatements, changes: Sequence[Change]
) -> tuple[Ledger, float]:
    """The runs concerned, new ones among them, and the time by the clock of the database."""
    begun = {
        change.run_id: change.thread_id
        for change in changes
        if isinstance(change, Take) and not change.token
    }
    if begun:
        rows = [{**_NEW, "run_id": run_id, "thread_id": begun[run_id]} for run_id in sorted(begun)]
        connection.execute(statements.begin, rows)
    ledger, now = Ledger(), 0.0
    rows: Sequence[Any] = connection.execute(
        statements.lock, {"run_ids": list({change.run_id for change in changes})}
    ).all()
    for row in rows:
        run_id, thread_id, state, end, count, owner, token, until, started_at, now = row
        ledger.statuses[run_id] = RunStatus(
            run_id, thread_id, state, end, count, owner, token, driven=False, started_at=started_at
        )
        ledger.until[run_id] = until
    return ledger, now


def _store(connection: Connection, ledger: Ledger) -> None:
    if ledger.changed:
        connection.execute(
            _UPDATE,
            [
                {
                    f"_{name}": getattr(ledger.statuses[run_id], name)
                    for name in ("run_id", *_UPDATED)
                }
                | {"_lease_until": ledger.until[run_id]}
                for run_id in sorted(ledger.changed)
            ],
        )
    if ledger.rows:
        rows = [{"run_id": run_id, "end": end, "data": data} for run_id, end, data in ledger.rows]
        connection.execute(_INSERT_EVENTS, rows)
    if ledger.posted:
        connection.execute(
            _INSERT_POSTS, [msgspec.structs.asdict(posted) for posted in ledger.posted]
        )


def _prune(connection: Connection, before: float) -> int:
    """Forgets some runs → how many."""
    old = (
        select(runs.c.run_id)
        .where(runs.c.state != "running", runs.c.started_at < before)
        .limit(_PRUNED)
    )
    run_ids = list(connection.execute(old.with_for_update(skip_locked=True)).scalars())
    for table in (events, posts, runs) if run_ids else ():
        connection.execute(delete(table).where(table.c.run_id.in_(run_ids)))
    return len(run_ids)
