"""Connections to a database: SQLAlchemy's, by the synchronous drivers."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from sqlalchemy import (
    Connection,
    Engine,
    Float,
    Table,
    create_engine,
    event,
    literal_column,
    make_url,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.elements import ColumnElement

__all__ = [
    "DIALECTS",
    "SqlDialect",
    "open_engine",
]


class SqlDialect(msgspec.Struct, frozen=True, kw_only=True):
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
    "sqlite": SqlDialect(
        driver="sqlite+pysqlite",
        insert=sqlite.insert,
        now=literal_column("((julianday('now') - 2440587.5) * 86400.0)", Float),
        # BEGIN IMMEDIATE has locked it.
        lock="SELECT 1",
        connect_args={"timeout": 30.0, "check_same_thread": False},
    ),
    "postgresql": SqlDialect(
        driver="postgresql+psycopg",
        insert=postgresql.insert,
        now=literal_column(
            "CAST(extract(epoch from clock_timestamp()) AS double precision)", Float
        ),
        lock="SELECT pg_advisory_xact_lock(4215098361)",
        connect_args={
            "connect_timeout": 30,
            "options": "-c lock_timeout=30s -c idle_in_transaction_session_timeout=5s",
            # A process that stands still in the middle of a commit must not hold up the others.
        },
    ),
}


_PRAGMAS = ("synchronous = NORMAL", "foreign_keys = ON")
"""With WAL, NORMAL keeps what was committed when a process is killed; when power fails the last
commits may be gone, none is torn."""
_LOCK_ERRORS = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_LOCK_SECONDS = 30
"""How long one waits for another that writes."""


def open_engine(url: str, *, connections: int, writes: bool) -> Engine:
    """An engine for one purpose: whole transactions of one writer, or single statements that
    read."""
    address = make_url(url)
    dialect = DIALECTS[address.get_backend_name()]
    engine = create_engine(
        address.set(drivername=dialect.driver),
        pool_size=connections,
        max_overflow=0,
        connect_args=dict(dialect.connect_args),
        hide_parameters=True,
        **({} if writes else {"isolation_level": "AUTOCOMMIT"}),
    )
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
        if writes:
            event.listen(engine, "begin", _begin_immediate)
    return engine


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    # The driver begins no transaction by itself.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {1000 * _LOCK_SECONDS}")
    _use_wal(cursor)
    for pragma in _PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _use_wal(cursor: sqlite3.Cursor) -> None:
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            # Two that open a new file at once: SQLite does not wait here by itself. Any other error
            # (a read-only disk, a folder that is missing) will not go away.
            if error.sqlite_errorcode & 0xFF not in _LOCK_ERRORS or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
        else:
            return


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
