"""What SQLite and Postgres say differently."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from sqlalchemy import Float, Table, literal_column
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.elements import ColumnElement

__all__ = ["DIALECTS", "Dialect"]


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """What a database says in its own way."""

    driver: str
    """SQLAlchemy's name of it and its driver."""
    insert: Callable[[Table], Any]
    """An INSERT that knows `on_conflict_do_nothing`."""
    now: ColumnElement[float]
    """Seconds since 1970 by the clock of the database, which all processes share."""
    lock: str
    """Begins a change of the tables, which one process makes at a time."""
    connect_args: Mapping[str, Any]
    """For the driver."""


DIALECTS = {
    "sqlite": Dialect(
        driver="sqlite+pysqlite",
        insert=sqlite.insert,
        now=literal_column("((julianday('now') - 2440587.5) * 86400.0)", Float),
        lock="SELECT 1",  # BEGIN IMMEDIATE has locked it
        connect_args={"timeout": 30.0, "check_same_thread": False},
    ),
    "postgresql": Dialect(
        driver="postgresql+psycopg",
        insert=postgresql.insert,
        now=literal_column(
            "CAST(extract(epoch from clock_timestamp()) AS double precision)", Float
        ),
        lock="SELECT pg_advisory_xact_lock(4215098361)",
        connect_args={
            "connect_timeout": 30,
            "options": "-c lock_timeout=30s -c idle_in_transaction_session_timeout=5s",
        },  # a process that stands still in the middle of a commit must not hold up the others
    ),
}
