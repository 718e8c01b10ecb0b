"""Applies changes to a log of runs in one transaction of a database.

The rows concerned are locked and read, changed by a `Ledger`, and written. The number of statements
does not grow with the number of changes. Rows are always locked in the same order, so two processes
never wait for each other.

A single change is first tried without reading (`_change_blindly`): its statement contains the
conditions. The run is read only if they do not hold, to find out why the change is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec
from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    String,
    bindparam,
    case,
    delete,
    insert,
    select,
    update,
)

from dragoman.errors import RunLogError
from dragoman.json_bytes import Json
from dragoman.runs.ledger import Append, Change, Enqueue, Ledger, TakeLease, new_run
from dragoman.runs.log import Lease, RunStatus
from dragoman.runs.sql_tables import claims, events, posts, requests, runs
from dragoman.sql.engine import DIALECTS, SqlDialect

__all__ = ["Claim", "Prune", "read_status", "write"]


class Claim(msgspec.Struct, frozen=True):
    """The request to claim an interrupt."""

    thread_id: str
    """Id of the conversation."""
    interrupt_id: str
    """Id of the interrupt."""
    run_id: str
    """Id of the run that claims it."""


class Prune(msgspec.Struct, frozen=True):
    """The request to forget some finished runs."""

    before: float
    """Runs that began before this time, in seconds since 1970."""


_PRUNED_AT_ONCE = 100
"""Runs that one transaction forgets at most."""
_ENQUEUED_COLUMNS = ("run_id", "thread_id", "agent", "queue", "caller", "priority")
_UPDATED_COLUMNS = ("state", "end", "posts", "owner", "token", "lost", "calls", "tokens", "cost")
_COST_PARTS = Decimal(10) ** 12
"""Parts of a dollar in which the column `cost` counts."""
_UPDATE = (
    update(runs)
    .where(runs.c.run_id == bindparam("_run_id"))
    .values({name: bindparam(f"_{name}") for name in (*_UPDATED_COLUMNS, "lease_until")})
)
_INSERT_EVENTS = insert(events)
_INSERT_POSTS = insert(posts)
_INSERT_REQUEST = insert(requests)


class RunStatements(msgspec.Struct, frozen=True):
    """The statements that differ between databases. They are made once, because making one costs as
    much as running it."""

    begin: Any
    """Inserts runs that do not exist yet."""
    lock: Any
    """Locks and reads runs."""
    claim: Any
    """Inserts a claim unless it exists, and returns the run that holds it."""
    start: Any
    """Inserts a new run with its lease."""
    append: Any
    """Moves the end of a run, if its lease and its end are what the driver expects."""


def _make_statements(dialect: SqlDialect) -> RunStatements:
    """Returns the SQL statements for a run log, for one database."""
    has_run_id = runs.c.run_id.in_(bindparam("run_ids", expanding=True))
    is_driven = (
        runs.c.run_id == bindparam("_run_id"),
        runs.c.state == "running",
        runs.c.token == bindparam("_token"),
        runs.c.end == bindparam("_expected"),
        runs.c.lease_until > dialect.now,
    )
    goes_on = bindparam("_state", type_=String) == "running"
    return RunStatements(
        dialect.insert(runs)
        .values(started_at=dialect.now)
        .on_conflict_do_nothing()
        .execution_options(preserve_rowcount=True),
        select(runs, dialect.now.label("now"))
        .where(has_run_id)
        .order_by(runs.c.run_id)
        .with_for_update(),
        dialect.insert(claims)
        .on_conflict_do_update(
            index_elements=[claims.c.thread_id, claims.c.interrupt_id],
            set_={
                "run_id": claims.c.run_id
                # Sets the value that is there: DO NOTHING would return no row.
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
            calls=runs.c.calls + bindparam("_calls", type_=Integer),
            tokens=runs.c.tokens + bindparam("_tokens", type_=BigInteger),
            # NULL, which is an unknown cost, stays so.
            cost=runs.c.cost + bindparam("_cost", type_=BigInteger),
            lease_until=case((goes_on, runs.c.lease_until), else_=0.0),
        ),
    )


_STATEMENTS = {name: _make_statements(dialect) for name, dialect in DIALECTS.items()}
_NEW_RUN = {
    **{name: getattr(new_run("", None, 0.0), name) for name in _UPDATED_COLUMNS},
    "cost": 0,
    "lease_until": 0.0,
}


AnyChange = Change | Claim | Prune | Enqueue
"""What `write` applies."""


def write(connection: Connection, changes: Sequence[AnyChange]) -> list[Any]:
    """Applies changes in order. Returns the result of each, or the `RunLogError` that refuses it."""
    statements = _STATEMENTS[connection.dialect.name]
    if len(changes) == 1 and (result := _change_blindly(connection, statements, changes[0])):
        return [result]
    results = _claim_interrupts(connection, statements, changes)
    # Before the runs are locked: a lease may be that of a run which is enqueued here.
    results |= _enqueue_runs(connection, statements, changes)
    on_runs = [change for change in changes if not isinstance(change, Claim | Prune | Enqueue)]
    ledger, now = Ledger(), 0.0
    if on_runs:
        ledger, now = _load_runs(connection, statements, on_runs)
    for number, change in enumerate(changes):
        if isinstance(change, Prune):
            results[number] = _prune_runs(connection, change.before)
        elif not isinstance(change, Claim | Enqueue):
            try:
                results[number] = ledger.apply(change, now)
            except RunLogError as error:
                results[number] = error
    _store(connection, ledger)
    return [results[number] for number in range(len(changes))]


def _claim_interrupts(
    connection: Connection, statements: RunStatements, changes: Sequence[AnyChange]
) -> dict[int, Any]:
    """Applies the claims among the changes. Returns their results by the number of the change."""
    claims = [
        (number, change) for number, change in enumerate(changes) if isinstance(change, Claim)
    ]
    # Sorted, so that two processes lock the rows of claims in the same order.
    claims.sort(key=lambda item: (item[1].thread_id, item[1].interrupt_id, item[0]))
    results: dict[int, Any] = {}
    for number, claim in claims:
        holder = connection.execute(statements.claim, msgspec.structs.asdict(claim)).scalar_one()
        results[number] = holder == claim.run_id
    return results


def _enqueue_runs(
    connection: Connection, statements: RunStatements, changes: Sequence[AnyChange]
) -> dict[int, Any]:
    """Creates the runs that are enqueued, if they are new. Returns the results by the number of the
    change."""
    enqueued = [
        (number, change) for number, change in enumerate(changes) if isinstance(change, Enqueue)
    ]
    enqueued.sort(key=lambda item: (item[1].run_id, item[0]))
    results: dict[int, Any] = {}
    for number, change in enqueued:
        run = msgspec.structs.asdict(change.status(0.0))
        names = (*_ENQUEUED_COLUMNS, *_UPDATED_COLUMNS)
        values = {**{name: run[name] for name in names}, "cost": 0, "lease_until": 0.0}
        results[number] = connection.execute(statements.begin, values).rowcount == 1
        if results[number]:
            row = {"run_id": change.run_id, "request": change.request}
            connection.execute(_INSERT_REQUEST, row)
    return results


def _change_blindly(
    connection: Connection, statements: RunStatements, change: AnyChange
) -> Lease | int | None:
    """Applies a change without reading its run first. That works for a new run, and for the next
    events of a run that the caller drives. Returns the result, or None if the run must be read."""
    if isinstance(change, TakeLease) and change.token == 0:
        names = ("run_id", "thread_id", "owner", "caller")
        run = {name: getattr(change, name) for name in names}
        values = {**_NEW_RUN, **run, "token": 1, "_seconds": change.seconds}
        # The database computes the end of the lease by its own clock.
        del values["lease_until"]
        is_new = connection.execute(statements.start, values).rowcount == 1
        if is_new:
            return Lease(change.run_id, change.owner, 1)
        return None
    if not isinstance(change, Append) or not change.rows:
        return None
    rows: list[Json] = []
    end = change.expected_offset
    for count, lines in change.rows:
        end += count
        rows.append({"run_id": change.run_id, "end": end, "data": lines})
    expected = {
        "_run_id": change.run_id,
        "_token": change.lease.token,
        "_expected": change.expected_offset,
    }
    # What the calls took is added by the database, so that nobody has to read it before.
    spent = change.spent
    changes = {"_state": change.state, "_end": end, "_calls": spent.calls, "_tokens": spent.tokens}
    values = {**expected, **changes, "_cost": _count_parts(spent.cost)}
    if connection.execute(statements.append, values).rowcount != 1:
        return None
    connection.execute(_INSERT_EVENTS, rows)
    return end


def _load_runs(
    connection: Connection, statements: RunStatements, changes: Sequence[Change]
) -> tuple[Ledger, float]:
    """Locks the SQL rows of the changed runs, and inserts new ones. Returns them in a ledger, and
    the time by the clock of the database."""
    new_runs = {
        change.run_id: {"thread_id": change.thread_id, "caller": change.caller}
        for change in changes
        if isinstance(change, TakeLease) and not change.token
    }
    if new_runs:
        rows = [{**_NEW_RUN, "run_id": run_id, **new_runs[run_id]} for run_id in sorted(new_runs)]
        connection.execute(statements.begin, rows)
    ledger, now = Ledger(), 0.0
    rows: Sequence[Any] = connection.execute(
        statements.lock, {"run_ids": list({change.run_id for change in changes})}
    ).all()
    for row in rows:
        ledger.statuses[row.run_id] = read_status(row)
        ledger.lease_ends[row.run_id], now = row.lease_until, row.now
    return ledger, now


def read_status(row: Any) -> RunStatus:
    """Returns the status in a row of the table `runs`. The row also has the database's time."""
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
        agent=row.agent,
        queue=row.queue,
        lost=row.lost,
        caller=row.caller,
        priority=row.priority,
        calls=row.calls,
        tokens=row.tokens,
        cost=None if row.cost is None else (row.cost / _COST_PARTS).normalize(),
    )


def _count_parts(cost: Decimal | None) -> int | None:
    """Returns a cost as the column of the run holds it."""
    return None if cost is None else round(cost * _COST_PARTS)


def _store(connection: Connection, ledger: Ledger) -> None:
    """Writes by SQL the events and states that a ledger has collected."""
    updates: list[Json] = []
    for run_id in sorted(ledger.changed_runs):
        status = ledger.statuses[run_id]
        values: Json = {f"_{name}": getattr(status, name) for name in ("run_id", *_UPDATED_COLUMNS)}
        values |= {"_cost": _count_parts(status.cost), "_lease_until": ledger.lease_ends[run_id]}
        updates.append(values)
    if updates:
        connection.execute(_UPDATE, updates)
    if ledger.new_rows:
        rows = [
            {"run_id": run_id, "end": end, "data": data} for run_id, end, data in ledger.new_rows
        ]
        connection.execute(_INSERT_EVENTS, rows)
    if ledger.new_messages:
        rows = [msgspec.structs.asdict(message) for message in ledger.new_messages]
        connection.execute(_INSERT_POSTS, rows)


def _prune_runs(connection: Connection, before: float) -> int:
    """Forgets some finished runs that began before a time. Returns how many."""
    old = (
        select(runs.c.run_id)
        .where(runs.c.state.not_in(("queued", "running")), runs.c.started_at < before)
        .limit(_PRUNED_AT_ONCE)
    )
    run_ids = list(connection.execute(old.with_for_update(skip_locked=True)).scalars())
    for table in (events, posts, requests, runs) if run_ids else ():
        connection.execute(delete(table).where(table.c.run_id.in_(run_ids)))
    return len(run_ids)
