"""Checks the URLs of databases before they are opened, and creates the files of SQLite."""

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
"""The extra that each scheme needs, and the packages of that extra."""


def check_address(url: str, thing: str, short: str) -> None:
    """Checks the address (URL) of a database, such as `sqlite:///path` or
    `postgresql://user:password@host/database`.

    Args:
        url: the URL.
        thing: what the database holds, for errors about the URL.
        short: a shorter name of that, for errors about packages.

    Raises:
        SettingsError: the URL has another scheme, or a package is missing.
    """
    scheme, _, remainder = url.partition("://")
    if scheme not in _EXTRAS or not remainder.strip("/"):
        # A URL may hold a password.
        if remainder:
            shown_scheme = scheme
        else:
            shown_scheme = url.partition(":")[0]
        raise SettingsError(
            f'"{shown_scheme}" is no {thing}: give "memory:", "sqlite:///PATH" or "postgresql://USER:PASSWORD@HOST/DATABASE"'
        )
    extra, packages = _EXTRAS[scheme]
    if missing := [package for package in packages if find_spec(package) is None]:
        raise SettingsError(
            f"a {short} in {scheme} needs {', '.join(missing)}: {extra_hint(extra)}"
        )


def create_private_file(path: str | os.PathLike[str]) -> None:
    """Creates an empty database file that only its owner can read, unless the file exists.

    SQLite gives the files beside it (`-wal`, `-shm`) the same mode. Errors are ignored: the driver
    reports them when it opens the file.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
