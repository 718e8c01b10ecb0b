"""What a log in a database does beside what every log does: its tables, its failures, what a commit
holds."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, select, text

from dragoman.errors import RunLogError
from dragoman.event import PartDelta
from dragoman.runs import Lease, open_log
from dragoman.runs.sql_log import SqlLog
from dragoman.runs.sql_tables import MIGRATIONS, metadata, runs
from dragoman.sql.engine import open_engine
from dragoman.sql.migrate import migrate
from support import postgres

pytestmark = pytest.mark.anyio


def test_the_newest_migration_is_the_one_that_is_asked_for() -> None:
    config = Config()
    config.set_main_option("script_location", "dragoman.runs:migrations")
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_heads() == [MIGRATIONS.head]


def test_the_migrations_make_the_tables_that_the_code_knows(shared_url: str) -> None:
    engine = open_engine(shared_url, connections=1, writes=True)
    migrate(engine, MIGRATIONS)
    migrate(engine, MIGRATIONS)
    with engine.connect() as connection:
        assert {*inspect(connection).get_table_names()} == {*metadata.tables, MIGRATIONS.versions}
        context = MigrationContext.configure(
            connection, opts={"version_table": MIGRATIONS.versions}
        )
        assert compare_metadata(context, metadata) == []
    engine.dispose()


async def test_a_log_that_a_newer_release_wrote_is_refused_and_left(shared_url: str) -> None:
    engine = open_engine(shared_url, connections=1, writes=True)
    migrate(engine, MIGRATIONS)
    newer = f"UPDATE {MIGRATIONS.versions} SET version_num = '9001'"
    with engine.begin() as connection:
        connection.execute(text(newer))
    async with open_log(shared_url) as log:
        with pytest.raises(RunLogError, match="newer release of dragoman wrote its tables"):
            await log.runs()
        with pytest.raises(RunLogError, match="9001"):
            await log.lease("r", "me", 30, token=0)
    with engine.connect() as connection:
        version = f"SELECT version_num FROM {MIGRATIONS.versions}"
        assert connection.execute(text(version)).scalar() == "9001"
    engine.dispose()


async def test_what_the_database_refuses_of_one_run_fails_no_other(shared_url: str) -> None:
    async with open_log(shared_url) as log:
        done = await asyncio.gather(
            *[
                log.lease(f"r{number}", "me", 1000, thread_id="\ud83d" if number == 2 else "t")
                for number in range(5)
            ],
            return_exceptions=True,
        )
        assert [type(each) for each in done] == [Lease, Lease, RunLogError, Lease, Lease]
        assert [status.run_id for status in await log.runs(thread_id="t")] != []
        assert {status.run_id for status in await log.runs()} == {"r0", "r1", "r3", "r4"}


@pytest.mark.parametrize(
    "url", ["sqlite:////nowhere/at/all/runs.db", "postgresql://u:secret@127.0.0.1:9/d"]
)
async def test_a_database_that_is_not_there_is_told_and_no_password(url: str) -> None:
    async with open_log(url) as log:
        for work in (
            log.lease("r", "me", 1),
            log.read("r"),
            log.status(["r"]),
            log.claim("t", "i", "r"),
        ):
            with pytest.raises(RunLogError, match="the database of the run log failed") as failed:
                await work
            assert "secret" not in str(failed.value)


async def test_a_refused_change_leaves_the_others_of_its_commit(shared_url: str) -> None:
    async with open_log(shared_url) as log:
        leases = [await log.lease(f"r{number}", "me", 1000) for number in range(4)]
        appends = [
            log.append(lease.run_id, 0 if number % 2 else 7, [PartDelta("m", 0, "x")], lease=lease)
            for number, lease in enumerate(leases)
        ]
        done = await asyncio.gather(
            *appends, log.claim("t", "i", "r"), log.post("r0", 1), return_exceptions=True
        )
        assert [type(each) for each in done] == [RunLogError, int, RunLogError, int, bool, int]
        assert [
            status.end for status in (await log.status([each.run_id for each in leases])).values()
        ].count(1) == 2


async def test_a_log_is_opened_again_with_what_it_held(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    async with open_log(url) as log:
        lease = await log.lease("r", "me", 1000)
        await log.append("r", 0, [PartDelta("m", 0, "x")], lease=lease)
    await log.close()
    async with SqlLog(url) as again:
        assert await again.append("r", 1, [PartDelta("m", 0, "y")], lease=lease) == 2
        assert await again.read("r") == [PartDelta("m", 0, "x"), PartDelta("m", 0, "y")]
        assert again.commits == 1


@pytest.mark.slow
@pytest.mark.service
async def test_a_process_that_stands_still_in_a_commit_holds_up_nobody_for_ever(
    postgres_server: str,
) -> None:
    url = postgres.new_database(postgres_server)
    async with open_log(url) as log:
        lease = await log.lease("r", "me", 1000)
        engine = open_engine(url, connections=1, writes=True)
        with engine.connect() as stuck:
            stuck.execute(select(runs).with_for_update()).all()
            assert await log.append("r", 0, [PartDelta("m", 0, "x")], lease=lease) == 1
            stuck.invalidate()
        engine.dispose()
