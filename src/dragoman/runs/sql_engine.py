"""The tables of a log of runs brought up to date."""

from __future__ import annotations

from sqlalchemy import Engine

from dragoman.runs.sql_tables import HEAD, VERSIONS
from dragoman.sql import migrate as tables

__all__ = ["migrate"]

_MIGRATIONS = tables.Migrations("dragoman.runs:migrations", HEAD, VERSIONS)


def migrate(engine: Engine) -> None:
    """Makes the tables, or brings them up to date; one process at a time does so. `engine`: that of the writer."""
    tables.migrate(engine, _MIGRATIONS)
