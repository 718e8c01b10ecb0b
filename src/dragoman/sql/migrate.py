"""Creates tables, brings them up to date, and repairs files that an earlier release broke.

Alembic keeps what it works on in module globals (`alembic.op`, `alembic.context`). Two databases
that migrate at once would run their statements on each other's connections, so one lock for the
whole process surrounds every call of Alembic. It is taken inside the database's own transaction,
which is safe: who holds it waits for no database.

Versions and tables change in one transaction. Releases before the lock could leave a file whose
version is the newest while its tables are missing, or tables of one purpose in the file of
another, without a version. Both are repaired here, without touching a row.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, MetaData, inspect, text

from dragoman.logs import logger
from dragoman.sql.engine import DIALECTS

__all__ = ["Migrations", "NewerTablesError", "migrate"]

_ALEMBIC = threading.Lock()
"""Held while Alembic works, whichever database it works on."""


class Migrations(msgspec.Struct, frozen=True):
    """The tables of one purpose, through their versions. Several purposes may share a database."""

    location: str
    """A package and its folder of Alembic scripts, such as `dragoman.runs:migrations`."""
    head: str
    """The newest version."""
    versions: str
    """Name of the table that holds the version of a database."""
    tables: MetaData
    """The tables as they are at `head`."""


class NewerTablesError(Exception):
    """A newer release of dragoman wrote the tables."""


def migrate(engine: Engine, migrations: Migrations) -> None:
    """Migrates a database: creates the tables or brings them up to date. One thread of one process
    does so at a time.

    Args:
        engine: the writer's, whose transactions lock the database.
        migrations: what the database should hold.

    Raises:
        NewerTablesError: this release does not know the version of the tables.
    """
    with engine.connect() as connection:
        if _is_current(connection, migrations):
            return
    with engine.begin() as connection:
        connection.execute(text(DIALECTS[engine.dialect.name].lock))
        if _is_current(connection, migrations):
            return
        version = _read_version(connection, migrations.versions)
        if version is not None and version > migrations.head:
            raise NewerTablesError(
                f"a newer release of dragoman wrote its tables (version {version}; this release knows {migrations.head}): "
                "upgrade dragoman here"
            )
        if version == migrations.head:
            _restore_tables(connection, migrations)
        elif version is None and _has_stray_tables(connection, migrations):
            _restore_tables(connection, migrations)
            _run_alembic("stamp", connection, migrations)
        else:
            _run_alembic("upgrade", connection, migrations)


def _is_current(connection: Connection, migrations: Migrations) -> bool:
    """True if the database needs no migration: the version is the newest and no table is
    missing."""
    if _read_version(connection, migrations.versions) != migrations.head:
        return False
    return migrations.tables.tables.keys() <= set(inspect(connection).get_table_names())


def _has_stray_tables(connection: Connection, migrations: Migrations) -> bool:
    """True if a database to migrate has some tables without a version, each with the columns of
    `head`."""
    inspector = inspect(connection)
    present = set(inspector.get_table_names())
    tables = [table for name, table in migrations.tables.tables.items() if name in present]
    columns = [{column["name"] for column in inspector.get_columns(table.name)} for table in tables]
    return bool(tables) and columns == [set(table.columns.keys()) for table in tables]


def _restore_tables(connection: Connection, migrations: Migrations) -> None:
    """Creates the tables that are missing."""
    logger("sql").warning("tables of %s were missing; they are created again", migrations.versions)
    migrations.tables.create_all(connection, checkfirst=True)


def _run_alembic(command_name: str, connection: Connection, migrations: Migrations) -> None:
    """Runs a migration command of Alembic on a connection, one at a time."""
    with _ALEMBIC:
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", migrations.location)
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        run: Callable[[Any, str], None] = getattr(command, command_name)
        run(config, "head")


def _read_version(connection: Connection, versions: str) -> str | None:
    if not inspect(connection).has_table(versions):
        return None
    return connection.execute(text(f"SELECT version_num FROM {versions}")).scalar()  # noqa: S608 - a constant
