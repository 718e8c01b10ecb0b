"""The stores that the tests of memory are about: memory, SQLite and Postgres."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from dragoman.memory import Memory
from support import postgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    if postgres.programs() is None:
        pytest.skip("Postgres is not installed: apt-get install postgresql")
    with postgres.postgres() as server:
        yield server


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.service)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store."""
    return make_url(request, tmp_path)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.service)])
def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store that several processes can open."""
    return make_url(request, tmp_path)


@pytest.fixture
async def memory(url: str) -> AsyncIterator[Memory]:
    async with Memory(url) as memory:
        yield memory


def make_url(request: pytest.FixtureRequest, folder: Path) -> str:
    if request.param == "memory":
        return "memory:"
    if request.param == "sqlite":
        return f"sqlite:///{folder}/chats.db"
    return postgres.new_database(request.getfixturevalue("postgres_server"))
