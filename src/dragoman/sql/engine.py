"""Opens connections to SQLite and Postgres, by SQLAlchemy with the synchronous drivers."""

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
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.elements import ColumnElement

from dragoman.sql.prepared import PreparedStatement

__all__ = [
    "DIALECTS",
    "SqlDialect",
    "open_engine",
]


class SqlDialect(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between the databases."""

    driver: str
    """SQLAlchemy's name of the database and its driver."""
    insert: Callable[[Table], Any]
    """Makes an INSERT that has `on_conflict_do_nothing`."""
    now: ColumnElement[float]
    """The time in seconds since 1970, by the clock of the database that all processes share."""
    lock: str
    """Statement that lets only one process change the tables at a time."""
    connect_args: Mapping[str, Any]
    """Arguments for the driver."""


DIALECTS = {
    "sqlite": SqlDialect(
        driver="sqlite+pysqlite",
        insert=sqlite.insert,
        now=literal_column("((julianday('now') - 2440587.5) * 86400.0)", Float),
        # Nothing to do: BEGIN IMMEDIATE has locked the file already.
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
"""With WAL, NORMAL keeps all commits if a process is killed. If power fails the last commits may be
lost, but none is damaged."""
_LOCK_ERRORS = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_LOCK_SECONDS = 30
"""Seconds to wait for another process that writes."""


def open_engine(url: str, *, connections: int, writes: bool) -> Engine:
    """Returns a database engine (SQLAlchemy) for one purpose: transactions of one writer, or single
    statements that read."""
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
    """Prepares a new SQLite connection: lock timeout, WAL and pragmas."""
    # The driver begins no transaction by itself.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {1000 * _LOCK_SECONDS}")
    _use_wal(cursor)
    for pragma in _PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _use_wal(cursor: sqlite3.Cursor) -> None:
    """Switches a SQLite file to write-ahead logging, and waits while another process does the
    same."""
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


_BEGIN = PreparedStatement(text("BEGIN IMMEDIATE"))


def _begin_immediate(connection: Connection) -> None:
    _BEGIN.write(connection, [{}])
