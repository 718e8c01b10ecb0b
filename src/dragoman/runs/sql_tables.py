"""The tables of a log of runs, and what SQLite and Postgres say differently."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    literal_column,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.elements import ColumnElement

__all__ = ["DIALECTS", "HEAD", "VERSIONS", "Dialect", "claims", "events", "metadata", "posts", "runs"]

HEAD = "0001"
"""The newest migration."""
VERSIONS = "dragoman_runs_version"
"""The table that says which migration the database is at."""

metadata = MetaData()

runs = Table(
    "dragoman_runs",
    metadata,
    Column("run_id", String, primary_key=True),
    Column("thread_id", String, index=True),
    Column("state", String, nullable=False),
    Column("end", BigInteger, nullable=False),
    Column("posts", Integer, nullable=False),
    Column("owner", String),
    Column("token", Integer, nullable=False),
    Column("lease_until", Float, nullable=False),
    Column("started_at", Float, nullable=False),
    Index("ix_dragoman_runs_state_started_at", "state", "started_at"),
)
"""A run: how far it is, and who may drive it until when."""


def _of_run() -> Column[str]:
    return Column("run_id", String, ForeignKey("dragoman_runs.run_id", ondelete="CASCADE"), primary_key=True)


events = Table(
    "dragoman_run_events",
    metadata,
    _of_run(),
    Column("end", BigInteger, primary_key=True, autoincrement=False),
    Column("data", Text, nullable=False),
)
"""Some events in a row: the end of the log behind them, and a line of JSON each."""

posts = Table(
    "dragoman_run_posts",
    metadata,
    _of_run(),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("message", Text, nullable=False),
)
"""Messages to whoever drives a run."""

claims = Table(
    "dragoman_run_claims",
    metadata,
    Column("thread_id", String, primary_key=True),
    Column("interrupt_id", String, primary_key=True),
    Column("run_id", String, nullable=False),
)
"""Interrupts that were answered, each once. They stay when a run is deleted, else its answers could be used again."""


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
        now=literal_column("CAST(extract(epoch from clock_timestamp()) AS double precision)", Float),
        lock="SELECT pg_advisory_xact_lock(4215098361)",
        connect_args={
            "connect_timeout": 30,
            "options": "-c lock_timeout=30s -c idle_in_transaction_session_timeout=5s",
        },  # a process that stands still in the middle of a commit must not hold up the others
    ),
}
