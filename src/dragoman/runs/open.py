"""A log of runs by its URL."""

from __future__ import annotations

from importlib.util import find_spec

from dragoman.errors import SettingsError
from dragoman.runs.log import RunLog

__all__ = ["open_log"]

_EXTRAS = {
    "sqlite": ("sql", ("sqlalchemy", "alembic")),
    "postgresql": ("postgres", ("sqlalchemy", "alembic", "psycopg")),
}
"""Scheme → the extra that it needs, and the packages of that."""


def open_log(url: str) -> RunLog:
    """A log of runs: `memory:` (gone with the process), `sqlite:///path`, or `postgresql://user:password@host/database`. Its tables are
    made or brought up to date with the first use.

    Raises:
        SettingsError: the URL is of another kind, or a package is missing.
    """
    if url == "memory:":
        from dragoman.runs.memory_log import MemoryLog

        return MemoryLog()
    scheme, _, rest = url.partition("://")
    if scheme not in _EXTRAS or not rest.strip("/"):
        kind = scheme if rest else url.partition(":")[0]  # a URL may hold a password
        raise SettingsError(
            f'"{kind}" is no log of runs: give "memory:", "sqlite:///PATH" or "postgresql://USER:PASSWORD@HOST/DATABASE"'
        )
    extra, packages = _EXTRAS[scheme]
    if lacking := [package for package in packages if find_spec(package) is None]:
        raise SettingsError(f"a log in {scheme} needs {', '.join(lacking)}: pip install 'dragoman[{extra}]'")
    from dragoman.runs.sql_log import SqlLog

    return SqlLog(url)
