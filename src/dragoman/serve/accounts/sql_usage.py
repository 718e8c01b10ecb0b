"""Usage of callers in the database: a row for each caller, UTC day and model."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
from sqlalchemy import Connection, RowMapping, delete, func, select

from dragoman.serve.accounts.usage import COUNTS, UsageRow
from dragoman.serve.http.budget import name_day
from dragoman.serve.store.sql_tables import caller_keys, usage
from dragoman.sql.engine import DIALECTS

__all__ = ["prune_usage", "read_usage", "sum_usage", "write_usage"]

_KEPT_DAYS = 400
"""So many days usage is kept, and the names of keys that were revoked."""
_MOST_ROWS = 5000


def write_usage(connection: Connection, rows: Sequence[UsageRow]) -> None:
    """Adds rows to those in the database."""
    insert = DIALECTS[connection.dialect.name].insert(usage)
    sums = {name: usage.c[name] + insert.excluded[name] for name in COUNTS}
    statement = insert.on_conflict_do_update(
        index_elements=[usage.c.owner, usage.c.day, usage.c.model],
        set_={**sums, "name": insert.excluded.name},
    )
    connection.execute(statement, [msgspec.structs.asdict(row) for row in rows])


def read_usage(connection: Connection, since: str, owner: str | None) -> list[UsageRow]:
    """Returns the rows from a day on, the latest first. `owner`: of this caller; `None`: of all."""
    wanted = select(usage).where(usage.c.day >= since)
    if owner is not None:
        wanted = wanted.where(usage.c.owner == owner)
    wanted = wanted.order_by(usage.c.day.desc(), usage.c.model, usage.c.owner).limit(_MOST_ROWS)
    return [UsageRow(**row) for row in connection.execute(wanted).mappings()]


def sum_usage(connection: Connection, since: str, by: str, name: str | None) -> list[UsageRow]:
    """Returns the sums from a day on for each `key`, `model` or `day`: the latest day first, else
    what cost most. `name`: of the key; `None`: of all."""
    column = {"key": usage.c.owner, "model": usage.c.model, "day": usage.c.day}[by]
    sums = [func.sum(usage.c[count]).label(count) for count in COUNTS]
    latest_name = func.max(usage.c.name).label("name")
    wanted = select(column, latest_name, *sums).where(usage.c.day >= since).group_by(column)
    if name is not None:
        wanted = wanted.where(usage.c.name == name)
    order = [column.desc()] if by == "day" else [func.sum(usage.c.cost).desc(), column]
    rows = connection.execute(wanted.order_by(*order).limit(_MOST_ROWS)).mappings()
    return [_load_sums(row) for row in rows]


def _load_sums(row: RowMapping) -> UsageRow:
    # Postgres sums up to decimals.
    sums = {count: int(row[count]) for count in COUNTS}
    return msgspec.convert({**{str(name): row[name] for name in row}, **sums}, UsageRow)


def prune_usage(connection: Connection, now: datetime) -> None:
    """Deletes usage, and keys that were revoked, that are older than 400 days."""
    before = now - timedelta(days=_KEPT_DAYS)
    connection.execute(delete(usage).where(usage.c.day < name_day(before)))
    revoked_before = int(before.timestamp() * 1_000_000)
    connection.execute(delete(caller_keys).where(caller_keys.c.revoked_at < revoked_before))
