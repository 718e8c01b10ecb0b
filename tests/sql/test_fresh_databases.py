"""Databases that are opened for the first time, several at once, and files that an earlier release
broke."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect, text

from dragoman.errors import DragomanError, RunLogError, SettingsError, StoreError
from dragoman.event import PartDelta
from dragoman.memory import Memory
from dragoman.memory import sql_tables as memory_tables
from dragoman.message import Message
from dragoman.runs import open_log
from dragoman.runs import sql_tables as run_tables
from dragoman.serve.store import sql_tables as serve_tables
from dragoman.sql.engine import open_engine
from dragoman.sql.migrate import Migrations, migrate

pytestmark = pytest.mark.anyio

PURPOSES = {
    "memory": memory_tables.MIGRATIONS,
    "runs": run_tables.MIGRATIONS,
    "answers": serve_tables.MIGRATIONS,
}
purposes = pytest.mark.parametrize("migrations", PURPOSES.values(), ids=PURPOSES)

FIRST_USE = """
import asyncio, sys
from dragoman.event import PartDelta
from dragoman.memory import Memory
from dragoman.message import Message
from dragoman.runs import open_log

async def remember(url):
    async with Memory(url) as memory:
        await memory.save([Message.user("hello")], "t")

async def log(url):
    async with open_log(url) as runs:
        lease = await runs.lease("r", "me", 60)
        await runs.append("r", 0, [PartDelta("m", 0, "x")], lease=lease)

async def main(memory, runs):
    await asyncio.gather(*[remember(memory), log(runs)])

asyncio.run(main(*sys.argv[1:]))
"""


def first_use(memory: str, runs: str) -> subprocess.CompletedProcess[str]:
    """A fresh process that uses a memory and a log for the first time, at once."""
    source = str(Path(__file__).parents[2] / "src")
    command = [sys.executable, "-c", FIRST_USE, memory, runs]
    environment = {**os.environ, "PYTHONPATH": source}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.mend("1.1")
@pytest.mark.parametrize("shared", [False, True], ids=["two files", "one file"])
def test_two_databases_may_be_used_first_at_the_same_moment(tmp_path: Path, shared: bool) -> None:
    """Alembic's globals belong to the process: two threads of it migrated each other's
    databases."""
    for number in range(3):
        memory = f"sqlite:///{tmp_path}/memory{number}.db"
        runs = memory if shared else f"sqlite:///{tmp_path}/runs{number}.db"
        process = first_use(memory, runs)
        assert process.returncode == 0, process.stderr[-2000:]


@pytest.mark.mend("1.1")
async def test_many_databases_of_each_purpose_migrate_at_once(tmp_path: Path) -> None:
    def create(number: int, migrations: Migrations) -> set[str]:
        engine = open_engine(f"sqlite:///{tmp_path}/{number}.db", connections=1, writes=True)
        try:
            migrate(engine, migrations)
            with engine.connect() as connection:
                return set(inspect(connection).get_table_names())
        finally:
            engine.dispose()

    kinds = [migrations for _ in range(4) for migrations in PURPOSES.values()]
    created = await asyncio.gather(
        *[asyncio.to_thread(create, number, migrations) for number, migrations in enumerate(kinds)]
    )
    for names, migrations in zip(created, kinds, strict=True):
        others = {
            name
            for other in PURPOSES.values()
            if other is not migrations
            for name in other.tables.tables
        }
        assert {*migrations.tables.tables, migrations.versions} <= names
        assert not names & others


def change_tables(path: Path, change: Callable[[Any], None]) -> None:
    engine = open_engine(f"sqlite:///{path}", connections=1, writes=True)
    with engine.begin() as connection:
        change(connection)
    engine.dispose()


@pytest.mark.mend("1.1")
@purposes
def test_a_file_whose_version_is_the_newest_and_whose_tables_are_missing_is_repaired(
    tmp_path: Path, migrations: Migrations
) -> None:
    url = f"sqlite:///{tmp_path}/broken.db"
    engine = open_engine(url, connections=1, writes=True)
    migrate(engine, migrations)
    with engine.connect() as connection:
        whole = objects_of(connection)

    def drop(connection: Any) -> None:
        if "dragoman_words" in whole:
            connection.execute(text("DROP TABLE dragoman_words"))
        migrations.tables.drop_all(connection)

    change_tables(tmp_path / "broken.db", drop)
    migrate(engine, migrations)
    with engine.connect() as connection:
        assert objects_of(connection) == whole
    engine.dispose()


def objects_of(connection: Any) -> set[str]:
    """Tables, indexes and triggers, by name."""
    return set(connection.execute(text("SELECT name FROM sqlite_master")).scalars())


@pytest.mark.mend("1.1")
@purposes
def test_tables_that_another_database_left_in_a_file_are_taken_over(
    tmp_path: Path, migrations: Migrations
) -> None:
    """The other half of the fault: the tables without their version."""
    change_tables(tmp_path / "stray.db", migrations.tables.create_all)
    engine = open_engine(f"sqlite:///{tmp_path}/stray.db", connections=1, writes=True)
    migrate(engine, migrations)
    migrate(engine, migrations)
    whole = open_engine(f"sqlite:///{tmp_path}/whole.db", connections=1, writes=True)
    migrate(whole, migrations)
    with engine.connect() as connection, whole.connect() as other:
        version = connection.execute(
            text(f"SELECT version_num FROM {migrations.versions}")
        ).scalar()
        assert version == migrations.head
        assert objects_of(connection) == objects_of(other)
    engine.dispose()
    whole.dispose()


@pytest.mark.mend("1.1")
@purposes
def test_version_and_tables_are_one_transaction(
    tmp_path: Path, migrations: Migrations, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that dies in the middle leaves a file on which the next start succeeds."""
    from alembic.runtime.migration import HeadMaintainer

    engine = open_engine(f"sqlite:///{tmp_path}/cut.db", connections=1, writes=True)
    with monkeypatch.context() as patched:
        patched.setattr(
            HeadMaintainer, "update_to_step", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            migrate(engine, migrations)
    with engine.connect() as connection:
        assert inspect(connection).get_table_names() == []
    migrate(engine, migrations)
    engine.dispose()


@pytest.mark.mend("1.7")
@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
@pytest.mark.parametrize("first", ["memory", "log"])
async def test_a_database_file_is_readable_by_its_owner_alone_whoever_opens_it_first(
    tmp_path: Path, first: str
) -> None:
    path = tmp_path / "s.db"
    before = os.umask(0o022)
    try:
        if first == "memory":
            async with Memory(f"sqlite:///{path}") as memory:
                await memory.save([Message.user("hello")], "t")
                modes = modes_of(tmp_path)
        else:
            async with open_log(f"sqlite:///{path}") as log:
                lease = await log.lease("r", "me", 60)
                await log.append("r", 0, [PartDelta("m", 0, "x")], lease=lease)
                modes = modes_of(tmp_path)
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(modes, 0o600)
    assert {"s.db", "s.db-wal"} <= modes.keys()


def modes_of(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


@pytest.mark.mend("1.8")
@pytest.mark.parametrize("kind", ["missing folder", "a folder", "not a database"])
async def test_a_file_that_cannot_be_opened_fails_at_once(tmp_path: Path, kind: str) -> None:
    """Opening was tried again for 30 seconds, whatever was wrong."""
    path = tmp_path / "gone" / "s.db" if kind == "missing folder" else tmp_path / "s.db"
    if kind == "a folder":
        path.mkdir()
    if kind == "not a database":
        path.write_bytes(b"no database, but long enough to be looked at" * 40)
    async with asyncio.timeout(5):
        with pytest.raises((StoreError, SettingsError)):
            async with Memory(f"sqlite:///{path}") as memory:
                await memory.save([Message.user("hello")], "t")
        with pytest.raises(RunLogError, match=r"s\.db") as failed:
            async with open_log(f"sqlite:///{path}") as log:
                await log.lease("r", "me", 60)
    assert isinstance(failed.value, DragomanError)
