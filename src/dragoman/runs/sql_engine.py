"""Connections to the database of a log of runs, and its tables brought up to date."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, inspect, make_url, text

from dragoman.runs.sql_tables import DIALECTS, HEAD, VERSIONS

__all__ = ["migrate", "open_engine"]

_PRAGMAS = ("busy_timeout = 30000", "journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON")
"""With WAL, NORMAL keeps what was committed when a process is killed; when power fails the last commits may be gone, none is torn."""


def open_engine(url: str, *, connections: int, writes: bool) -> Engine:
    """An engine for one purpose: whole transactions of one writer, or single statements that read."""
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
        event.listen(engine, "connect", _prepare)
        if writes:
            event.listen(engine, "begin", _begin)
    return engine


def migrate(engine: Engine) -> None:
    """Makes the tables, or brings them up to date; one process at a time does so. `engine`: that of the writer."""
    with engine.connect() as connection:
        if _version(connection) == HEAD:
            return
    with engine.begin() as connection:
        connection.execute(text(DIALECTS[engine.dialect.name].lock))
        if _version(connection) == HEAD:
            return
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", "dragoman.runs:migrations")
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _version(connection: Connection) -> str | None:
    if not inspect(connection).has_table(VERSIONS):
        return None
    return connection.execute(text(f"SELECT version_num FROM {VERSIONS}")).scalar()  # noqa: S608 - a constant


def _prepare(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # the driver begins no transaction by itself
    cursor = connection.cursor()
    for pragma in _PRAGMAS:
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
