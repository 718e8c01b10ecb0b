"""Where databases are: their URLs, checked before one is opened, and the files of SQLite."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib.util import find_spec

from dragoman.errors import SettingsError
from dragoman.runtime import extra_hint

__all__ = ["check_address", "create_private_file"]

_EXTRAS = {
    "sqlite": ("sql", ("sqlalchemy", "alembic")),
    "postgresql": ("postgres", ("sqlalchemy", "alembic", "psycopg")),
}
"""Scheme → the extra that it needs, and the packages of that."""


def check_address(url: str, thing: str, short: str) -> None:
    """Checks `sqlite:///path` or `postgresql://user:password@host/database`. `thing`, `short`: what
    is kept there, in words for people.

    Raises:
        SettingsError: the URL is of another kind, or a package is missing.
    """
    scheme, _, remainder = url.partition("://")
    if scheme not in _EXTRAS or not remainder.strip("/"):
        # A URL may hold a password.
        shown_scheme = scheme if remainder else url.partition(":")[0]
        raise SettingsError(
            f'"{shown_scheme}" is no {thing}: give "memory:", "sqlite:///PATH" or "postgresql://USER:PASSWORD@HOST/DATABASE"'
        )
    extra, packages = _EXTRAS[scheme]
    if missing := [package for package in packages if find_spec(package) is None]:
        raise SettingsError(
            f"a {short} in {scheme} needs {', '.join(missing)}: {extra_hint(extra)}"
        )


def create_private_file(path: str | os.PathLike[str]) -> None:
    """Creates an empty file that only its owner can read, unless there is one. SQLite gives the
    files beside it (`-wal`, `-shm`) the same mode. Errors are left to the driver, which explains
    them when it opens the file."""
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
