"""Tables brought up to date by Alembic."""

from __future__ import annotations

import msgspec
from sqlalchemy import Connection, Engine, inspect, text

from dragoman.sql.dialects import DIALECTS

__all__ = ["Migrations", "migrate"]


class Migrations(msgspec.Struct, frozen=True):
    """The tables of one purpose, through their versions. Several may share a database."""

    place: str
    """Where Alembic finds them: a package and a folder of it, such as `dragoman.runs:migrations`."""
    head: str
    """The newest one."""
    versions: str
    """The table that says which one the database is at."""


def migrate(engine: Engine, migrations: Migrations) -> None:
    """Makes the tables, or brings them up to date; one process at a time does so. `engine`: that of the writer."""
    with engine.connect() as connection:
        if _version(connection, migrations.versions) == migrations.head:
            return
    with engine.begin() as connection:
        connection.execute(text(DIALECTS[engine.dialect.name].lock))
        if _version(connection, migrations.versions) == migrations.head:
            return
        from alembic import command
        from alembic.config import Config

        config = Config()
        config.set_main_option("script_location", migrations.place)
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _version(connection: Connection, versions: str) -> str | None:
    if not inspect(connection).has_table(versions):
        return None
    return connection.execute(text(f"SELECT version_num FROM {versions}")).scalar()  # noqa: S608 - a constant
