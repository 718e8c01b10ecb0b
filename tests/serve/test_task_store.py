"""Tasks as a store keeps them: pages that it answers itself, and where notifications of them go."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import event, text

from dragoman import Message
from dragoman.interrupt import Interrupt
from dragoman.request import ModelRequest
from dragoman.serve.store.answer_store import AnswerStore, TaskQuery
from dragoman.serve.store.memory_answers import open_answers
from dragoman.serve.store.sql_answers import read_tasks
from dragoman.serve.store.sql_tables import MIGRATIONS, metadata
from dragoman.serve.store.stored_answer import Answered, DecodedAnswers
from dragoman.sql.engine import open_engine
from dragoman.sql.migrate import migrate
from support import postgres

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 1, 2, tzinfo=UTC)
STATES: dict[str, dict[str, Any]] = {
    "working": {"state": "in_progress"},
    "waiting": {"pending": (Interrupt("i", "auth"), Interrupt("j", "input"))},
    "signing_in": {"pending": (Interrupt("i", "auth"),)},
    "completed": {},
    "failed": {"state": "failed"},
    "refused": {"state": "failed", "refused": True},
    "cancelled": {"state": "cancelled"},
}


def run(id: str, task: str | None, owner: str = "me", **fields: Any) -> Answered:
    request = ModelRequest("m", (Message.user("Hi."),))
    made = Answered(id=id, owner=owner, wire="a2a", request=request, task_id=task, created_at=NOW)
    return msgspec.structs.replace(made, **fields)


@pytest.fixture(scope="module")
def postgres_server() -> Iterator[str]:
    if postgres.programs() is None:
        pytest.skip("Postgres is not installed: apt-get install postgresql")
    with postgres.postgres() as server:
        yield server


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.service)])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AnswerStore]:
    url = "memory:" if request.param == "memory" else f"sqlite:///{tmp_path}/answers.db"
    if request.param == "postgres":
        url = postgres.new_database(request.getfixturevalue("postgres_server"))
    made = open_answers(url)
    yield made
    await made.close()


async def listed(store: AnswerStore, owner: str = "me", **wanted: Any) -> list[str | None]:
    return [each.task_id for _, each in (await store.tasks(owner, TaskQuery(**wanted))).runs]


async def test_a_page_is_of_the_latest_runs_and_of_those_that_are_wanted_alone(
    store: AnswerStore,
) -> None:
    for name, fields in STATES.items():
        await store.save(run(f"{name}-1", name, state="in_progress"))
        await store.save(
            run(f"{name}-2", name, thread_id="odd" if len(name) % 2 else "even", **fields)
        )
    await store.save(run("answer", None, thread_id="odd"))
    await store.save(run("theirs", "theirs", owner="you"))
    assert await listed(store) == list(STATES)[::-1]
    for name in STATES:
        assert await listed(store, stages=(name,)) == [name]
        assert [each.id for each in await store.task("me", name)] == [f"{name}-1", f"{name}-2"]
    assert await listed(store, stages=("failed", "refused"), thread="even") == ["failed"]
    assert (
        await listed(store, stages=())
        == await listed(store, thread="none")
        == await listed(store, "nobody")
        == []
    )
    assert await store.task("you", "working") == await store.task("me", "\0") == []


async def test_pages_go_on_where_the_last_ended_whatever_changes_meanwhile(
    store: AnswerStore,
) -> None:
    for at in range(7):
        await store.save(run(f"r{at}", f"t{at}"))
    first = await store.tasks("me", TaskQuery(most=3))
    assert ([each.id for _, each in first.runs], first.total, first.more) == (
        ["r6", "r5", "r4"],
        7,
        True,
    )
    await store.save(run("r4", "t4", state="failed"))  # it stands before the page now
    await store.delete("me", "r2")
    second = await store.tasks("me", TaskQuery(most=3, after=first.runs[-1][0]))
    assert ([each.id for _, each in second.runs], second.total, second.more) == (
        ["r3", "r1", "r0"],
        6,
        False,
    )
    assert await listed(store, after=0) == []


async def test_tasks_since_a_time(store: AnswerStore) -> None:
    for at in range(3):
        await store.save(run(f"r{at}", f"t{at}", updated_at=NOW + timedelta(hours=at)))
    await store.save(run("r9", "t9"))
    assert await listed(store, since=NOW + timedelta(hours=1)) == ["t2", "t1"]
    for time in (datetime.min, datetime.max):
        assert len(await listed(store, since=time.replace(tzinfo=UTC))) == (
            4 if time == datetime.min else 0
        )


async def test_where_a_run_is_taken_back_the_one_before_counts(store: AnswerStore) -> None:
    await store.save(run("r1", "t", state="completed"))
    await store.save(run("r2", "t", state="in_progress"))
    await store.delete("me", "r2")
    assert await listed(store, stages=("completed",)) == ["t"]
    assert await listed(store, stages=("working",)) == []


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_page_decodes_its_own_tasks_alone(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[int] = []
    of = DecodedAnswers.decode

    def counted(self: DecodedAnswers, number: int, data: Any) -> Answered:
        decoded.append(number)
        return of(self, number, data)

    monkeypatch.setattr(DecodedAnswers, "decode", counted)
    store = open_answers("memory:" if kind == "memory" else f"sqlite:///{tmp_path}/a.db")
    for at in range(60):
        await store.save(run(f"r{at}", f"t{at}", state="failed" if at % 20 == 0 else "completed"))
    page = await store.tasks("me", TaskQuery(stages=("failed",), most=2))
    assert (len(decoded), page.total, page.more) == (2, 3, True)
    await store.close()


WANTED = {
    "all": TaskQuery(), "next": TaskQuery(after=9), "stage": TaskQuery(stages=("failed",)),
    "thread": TaskQuery(thread="odd"), "both": TaskQuery(stages=("failed",), after=9),
}  # fmt: skip


@pytest.mark.parametrize("wanted", WANTED.values(), ids=WANTED)
def test_a_page_is_found_by_an_index_in_its_order(wanted: TaskQuery, tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path}/a.db", connections=1, writes=True)
    migrate(engine, MIGRATIONS)
    queries: list[tuple[str, Any]] = []

    def noted(_connection: Any, _cursor: Any, sql: str, given: Any, *_: object) -> None:
        if sql.startswith("SELECT"):
            queries.append((sql, given))

    with engine.connect() as connection:
        event.listen(connection, "before_cursor_execute", noted)
        read_tasks(connection, "me", wanted, wanted.thread)
    engine.dispose()
    assert len(queries) == 2
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        for sql, given in queries:
            steps = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {sql}", given)]
            assert any("USING" in step for step in steps)
            assert not [step for step in steps if "SCAN" in step or "TEMP" in step], steps


async def test_configurations_are_their_owners_and_go_with_the_task(store: AnswerStore) -> None:
    def config(id: str, url: str = "https://a.example/") -> dict[str, Any]:
        return {
            "id": id,
            "url": url,
            "authentication": {"scheme": "Bearer", "credentials": "é"},
        }

    for at in range(3):
        await store.save(run(f"r{at}", f"t{at}"))
        await store.save_push("me", f"t{at}", config("b"))
    await store.save_push("me", "t0", config("a"))
    await store.save_push("me", "t0", config("b", "https://b.example/"))
    found = await store.push_configs("me", "t0")
    assert sorted(each["url"] for each in found) == ["https://a.example/", "https://b.example/"]
    assert await store.push_configs("you", "t0") == await store.push_configs("me", "none") == []
    await store.delete_push("you", "t0", "a")
    await store.delete_push("me", "t0", "b")
    assert [each["id"] for each in await store.push_configs("me", "t0")] == ["a"]
    await store.save(run("r0", "t0", state="failed"))  # the same run, further on
    assert len(await store.push_configs("me", "t0")) == 1
    await store.delete("me", "r0")
    assert await store.push_configs("me", "t0") == []
    await store.prune(datetime(2100, 1, 1, tzinfo=UTC))
    assert await store.push_configs("me", "t1") == []


async def test_a_configuration_whose_task_is_about_to_begin_stays(store: AnswerStore) -> None:
    await store.save_push("me", "t", {"id": "a", "url": "https://a.example/"})
    await store.prune(NOW)
    assert len(await store.push_configs("me", "t")) == 1


def test_the_newest_migration_is_the_one_that_is_asked_for() -> None:
    config = Config()
    config.set_main_option("script_location", MIGRATIONS.location)
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_heads() == [MIGRATIONS.head]


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.service)])
async def test_tasks_of_an_older_database_are_listed(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path}/old.db"
    if kind == "postgres":
        url = postgres.new_database(request.getfixturevalue("postgres_server"))
    engine = open_engine(url, connections=1, writes=True)
    config = Config()
    config.set_main_option("script_location", MIGRATIONS.location)
    config.set_main_option("path_separator", "os")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0002")
        wanted = "INSERT INTO dragoman_answers (number, owner, answer_id, created_at, body) VALUES (:n, 'me', :id, 0, :body)"
        for number, (name, fields) in enumerate(STATES.items(), 1):
            body = msgspec.json.encode(run(name, name, thread_id="t" * 900, **fields))
            connection.execute(text(wanted), {"n": number, "id": name, "body": body})
            keyed = {"key": f"task:{name}", "n": number}
            connection.execute(
                text("INSERT INTO dragoman_answer_keys VALUES ('me', :key, :n)"), keyed
            )
        connection.execute(
            text(wanted), {"n": 99, "id": "x", "body": msgspec.json.encode(run("x", None))}
        )
    migrate(engine, MIGRATIONS)
    with engine.connect() as connection:
        opts = {"version_table": MIGRATIONS.versions}
        assert compare_metadata(MigrationContext.configure(connection, opts=opts), metadata) == []
    engine.dispose()
    store = open_answers(url)
    assert await listed(store) == list(STATES)[::-1]
    assert await listed(store, thread="t" * 900, stages=("waiting",)) == ["waiting"]
    assert await listed(store, stages=("failed",)) == ["refused", "failed"]
    await store.close()
