"""The tables of a log of runs brought up to date."""

from __future__ import annotations

from sqlalchemy import Connection, Engine, inspect, text

from dragoman.runs.sql_tables import HEAD, VERSIONS
from dragoman.sql.dialects import DIALECTS

__all__ = ["migrate"]


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
