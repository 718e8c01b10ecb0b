"""Defines the tables of a log of runs."""

from __future__ import annotations

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
)

from dragoman.sql.migrate import Migrations

__all__ = ["MIGRATIONS", "claims", "events", "metadata", "posts", "requests", "runs"]

metadata = MetaData()
MIGRATIONS = Migrations("dragoman.runs:migrations", "0004", "dragoman_runs_version", metadata)

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
    Column("agent", String),
    Column("queue", String),
    Column("lost", Integer, nullable=False, server_default="0"),
    Column("caller", String),
    Column("priority", Integer, nullable=False, server_default="0"),
    Column("calls", Integer),
    Column("tokens", BigInteger),
    Column("cost", BigInteger),
    Index("ix_dragoman_runs_caller_started_at", "caller", "started_at"),
    Index("ix_dragoman_runs_started_at", "started_at"),
    Index("ix_dragoman_runs_state_started_at", "state", "started_at"),
    Index("ix_dragoman_runs_queue", "state", "queue", "priority", "started_at"),
)
"""One row for each run: its state, its last lease, and what it spent. The cost is in billionths of a
thousandth of a dollar, so that the database adds exactly."""


def _run_id_column() -> Column[str]:
    """Returns a column that refers to a run."""
    return Column(
        "run_id", String, ForeignKey("dragoman_runs.run_id", ondelete="CASCADE"), primary_key=True
    )


events = Table(
    "dragoman_run_events",
    metadata,
    _run_id_column(),
    Column("end", BigInteger, primary_key=True, autoincrement=False),
    Column("data", Text, nullable=False),
)
"""Events, several in a row: the run's end after them, and one line of JSON for each event."""

posts = Table(
    "dragoman_run_posts",
    metadata,
    _run_id_column(),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("message", Text, nullable=False),
)
"""Control messages to the process that drives a run."""

requests = Table(
    "dragoman_run_requests",
    metadata,
    _run_id_column(),
    Column("request", Text, nullable=False),
)
"""What the agent of a run that was enqueued is asked, as JSON."""

claims = Table(
    "dragoman_run_claims",
    metadata,
    Column("thread_id", String, primary_key=True),
    Column("interrupt_id", String, primary_key=True),
    Column("run_id", String, nullable=False),
)
"""Interrupts that were answered, each once. They are kept when a run is deleted: without them its
answers could be used again."""
