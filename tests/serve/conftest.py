"""A database of Postgres, for the modules that want one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import postgres


@pytest.fixture(scope="module")
def postgres_server() -> Iterator[str]:
    if postgres.programs() is None:
        pytest.skip("Postgres is not installed: apt-get install postgresql")
    with postgres.postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.service)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that processes may share."""
    if request.param == "postgres":
        return postgres.new_database(request.getfixturevalue("postgres_server"))
    return f"sqlite:///{tmp_path}/accounts.db"
