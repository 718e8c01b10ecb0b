"""What a store in a database does beside what every store does: its tables, how it finds, how much
it writes."""

from __future__ import annotations

import asyncio
import re
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.dialects import postgresql, sqlite

from dragoman.errors import HistoryError, StoreError
from dragoman.memory import Memory, MessageQuery
from dragoman.memory.sql_reading import make_selection
from dragoman.memory.sql_store import SqlStore
from dragoman.memory.sql_tables import MIGRATIONS, metadata
from dragoman.message import DataPart, Message, ToolResultPart
from dragoman.sql.engine import open_engine
from dragoman.sql.migrate import migrate
from dragoman.sql.prepared import PreparedStatement

pytestmark = pytest.mark.anyio


def messages(*numbers: int, start: str = "m") -> list[Message]:
    return [Message.user(f"{start}{number}").replace(id=f"{start}{number}") for number in numbers]


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[tuple[Memory, SqlStore]]:
    async with Memory(url) as memory:
        assert isinstance(memory.store, SqlStore)
        yield memory, memory.store


async def counted(store: SqlStore, *tables: str) -> list[int]:
    def rows(connection: Connection) -> list[int]:
        return [
            connection.execute(text(f"SELECT count(*) FROM dragoman_{table}")).scalar_one()
            for table in tables
        ]

    return await store.database.read(rows)


def test_the_newest_migration_is_the_one_that_is_asked_for() -> None:
    config = Config()
    config.set_main_option("script_location", MIGRATIONS.location)
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_heads() == [MIGRATIONS.head]


def test_the_migrations_make_the_tables_that_the_code_knows(shared_url: str) -> None:
    engine = open_engine(shared_url, connections=1, writes=True)
    migrate(engine, MIGRATIONS)
    migrate(engine, MIGRATIONS)
    with engine.connect() as connection:

        def ours(_object: Any, name: str | None, kind: str, _reflected: bool, _other: Any) -> bool:
            return (
                not str(name).startswith(("dragoman_words", "ix_dragoman_bodies_text"))
                and kind != "foreign_key_constraint"
            )

        opts = {"version_table": MIGRATIONS.versions, "include_object": ours}
        assert compare_metadata(MigrationContext.configure(connection, opts=opts), metadata) == []
    engine.dispose()


async def test_b7_a_body_is_written_once_and_attachments_never_inlined(shared_url: str) -> None:
    """B7: re-sent histories, forks and clones share bodies; bytes stand apart, once."""
    data = DataPart(b"\x89PNG-some-bytes" * 50, "image/png")
    result = ToolResultPart("c", "look", (data,))
    history = [Message.user("look", data), Message.user(result), Message.user("twice", data, data)]
    async with opened(shared_url) as (memory, store):
        await memory.save(history, "t1")
        await memory.save(history, "t2")
        await memory.clone_thread("t1")
        await memory.save(history[2:], "t1", after="")
        assert await counted(store, "messages", "bodies", "attachments", "files") == [10, 3, 4, 1]

        def bodies(connection: Connection) -> list[str]:
            return [*connection.execute(text("SELECT body FROM dragoman_bodies")).scalars()]

        assert all(len(body) < 300 for body in await store.database.read(bodies))
        assert [each.content for each in (await memory.recall("t2")).items] == [
            each.content for each in history
        ]
        for thread in (await memory.threads()).items:
            await memory.delete_thread(thread.id)
        assert (
            await counted(
                store, "messages", "bodies", "attachments", "files", "threads", "branches"
            )
            == [0] * 6
        )


async def test_a_body_that_is_replaced_is_gone(shared_url: str) -> None:
    async with opened(shared_url) as (memory, store):
        await memory.save(messages(1, 2), "t")
        await memory.save([Message.user("other").replace(id="m1")], "t")
        assert await counted(store, "bodies") == [2]
        assert (await memory.search("m1")).items == ()


class Statements:
    """The statements that stores run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.writes: list[tuple[str, int]] = []
        run = PreparedStatement._run

        def note(statement: Any, connection: Any, compiled: Any, rows: Any) -> Any:
            self.writes.append((compiled.text, len(rows)))
            return run(statement, connection, compiled, rows)

        monkeypatch.setattr(PreparedStatement, "_run", note)


async def test_saving_a_turn_writes_what_is_new_alone(
    shared_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the thread is, a message costs the same few statements, with one row in each."""
    async with opened(shared_url) as (memory, _):
        await memory.save(messages(*range(5)), "t")
        noted = Statements(monkeypatch)
        await memory.save(messages(1000), "t")
        few = noted.writes[:]
        await memory.save(messages(*range(10, 900)), "t")
        noted.writes.clear()
        await memory.save(messages(1001), "t")
        assert noted.writes == few
        assert len(few) <= 5
        assert all(rows == 1 for _, rows in few)
        assert len([1 for statement, _ in few if "INSERT" in statement]) == 2


async def test_the_newest_messages_are_found_by_an_index(shared_url: str) -> None:
    """Also by a database that has no statistics yet, as after many messages were saved at once:
    nothing else is read, neither messages nor bodies."""
    queries = [
        MessageQuery(thread_id="t", branch=0, newest_first=True, limit=10),
        MessageQuery(thread_id="t", branch=0, newest_first=True, limit=10, after=100, before=900),
    ]
    async with opened(shared_url) as (memory, store):
        is_sqlite = store.database.dialect == "sqlite"
        await memory.save(messages(*range(400 if is_sqlite else 20_000)), "t")
        for query in queries:
            found = await store.database.read(lambda c, query=query: plan(c, query))
            if is_sqlite:
                index = "SEARCH dragoman_messages USING INDEX sqlite_autoindex_dragoman_messages_1"
                assert f"{index} (thread_id=? AND position>? AND position<?)\nSCAN found\n" in found
            else:
                assert re.search(
                    r"Index Scan Backward using dragoman_messages_pkey .*actual.* rows=10\b", found
                )
                assert re.search(
                    r"Index Scan using dragoman_bodies_pkey .*actual.* rows=1\b.* loops=10\b", found
                )
                assert "Sort" not in found
        one = await store.database.read(
            lambda c: plan(c, MessageQuery(thread_id="t", branch=0, ids=("m7",)))
        )
        assert "(thread_id=? AND message_id=?)" in one if is_sqlite else "Rows Removed" not in one


def plan(connection: Connection, query: MessageQuery) -> str:
    """How the database finds messages; in Postgres with what it read then."""
    is_sqlite = connection.dialect.name == "sqlite"
    dialect = sqlite.dialect() if is_sqlite else postgresql.dialect()
    statement, values = make_selection(connection, query)
    sql = statement.statement.params(values).compile(
        dialect=dialect, compile_kwargs={"literal_binds": True}
    )
    if is_sqlite:
        return "\n".join(row[3] for row in connection.execute(text(f"EXPLAIN QUERY PLAN {sql}")))
    return "\n".join(
        row[0] for row in connection.execute(text(f"EXPLAIN (ANALYZE, TIMING OFF) {sql}"))
    )


async def test_what_is_refused_of_one_save_fails_no_other(shared_url: str) -> None:
    async with opened(shared_url) as (memory, _):
        await memory.save_thread("t3", resource_id="ann")
        saves = [
            memory.save(messages(number), f"t{number}", resource_id="bob") for number in range(6)
        ]
        done = await asyncio.gather(*saves, return_exceptions=True)
        assert [isinstance(each, Exception) for each in done] == [
            number == 3 for number in range(6)
        ]
        assert [len((await memory.recall(f"t{number}")).items) for number in range(6)] == [
            1,
            1,
            1,
            0,
            1,
            1,
        ]


async def test_saves_that_come_together_are_committed_together(shared_url: str) -> None:
    async with opened(shared_url) as (memory, store):
        await memory.save(messages(0), "t")
        before = store.database.commits
        await asyncio.gather(*[memory.save(messages(number), "t") for number in range(1, 50)])
        assert store.database.commits - before < 10
        assert len((await memory.recall("t", per_page=None)).items) == 50


@pytest.mark.parametrize(
    "url", ["sqlite:////proc/nowhere/chats.db", "postgresql://u:secret@127.0.0.1:9/d"]
)
@pytest.mark.slow
async def test_a_database_that_is_not_there_is_told_and_no_password(url: str) -> None:
    store = SqlStore(url)
    for work in (store.delete_thread("t"), store.messages(MessageQuery(thread_id="t"))):
        with pytest.raises(StoreError, match="the database of the message store failed") as failed:
            await work
        assert "secret" not in str(failed.value)
    await store.close()


async def test_a_file_is_its_owners_alone(tmp_path: Path) -> None:
    async with Memory(f"sqlite:///{tmp_path}/chats.db") as memory:
        await memory.save(messages(1), "t")
        assert stat.S_IMODE((tmp_path / "chats.db").stat().st_mode) == 0o600


async def test_what_was_stored_is_there_when_it_is_opened_again(shared_url: str) -> None:
    async with Memory(shared_url) as memory:
        saved = await memory.save(messages(1, 2), "t", resource_id="ann")
    async with Memory(shared_url) as memory:
        assert [*(await memory.recall("t", resource_id="ann")).items] == saved


async def test_damage_is_told(shared_url: str) -> None:
    """Bytes that were changed or lost in the database give an error of ours that names thread and
    message, and not another message; where problems are collected, the rest of the thread is
    read."""
    async with opened(shared_url) as (memory, store):
        await memory.save(
            [Message.user("x", DataPart(b"x", "image/png")).replace(id="f1"), *messages(2)], "t"
        )
        await memory.save(messages(1, 2, 3), "u")

        async def execute(sql: str, **values: Any) -> None:
            await store.database.write(lambda c: c.execute(text(sql), values))

        async def damaged(thread_id: str, message_id: str) -> None:
            wanted = f'the message "{message_id}" of the thread "{thread_id}" is damaged'
            with pytest.raises(HistoryError, match=wanted):
                await memory.recall(thread_id)
            problems: list[str] = []
            left = (await memory.recall(thread_id, problems=problems)).items
            assert [each.startswith(wanted) for each in problems] == [True]
            assert message_id not in [each.id for each in left]
            assert "m2" in [each.id for each in left]

        await execute("DELETE FROM dragoman_attachments")
        await damaged("t", "f1")
        for wrong in (
            "{",
            "null",
            "[]",
            '{"v": 9}',
            '{"v": 2, "role": "model", "content": 7}',
            "[" * 100_000,
        ):
            await execute("UPDATE dragoman_bodies SET body = :body WHERE text = 'm1'", body=wrong)
            await damaged("u", "m1")
        await memory.delete_messages(["m1"], "u")
        await execute("UPDATE dragoman_messages SET created_at = 'never' WHERE message_id = 'm3'")
        await damaged("u", "m3")
        for change in (
            "metadata = '{'",
            "metadata = '[]'",
            "metadata = '{}', created_at = 'never'",
        ):
            await execute(f"UPDATE dragoman_threads SET {change} WHERE thread_id = 'u'")
            for work in (memory.recall("u"), memory.threads(), memory.save(messages(9), "u")):
                with pytest.raises(HistoryError, match='the thread "u" is damaged'):
                    await work
        assert len((await memory.recall("t", problems=[])).items) == 1
        assert await memory.delete_thread("u")


@pytest.mark.parametrize("wrong", ["x" * 1_000_000, "a\0b", "\ud800"], ids=["long", "zero", "half"])
async def test_ids_that_no_store_has_are_refused(memory: Memory, wrong: str) -> None:
    """Wherever one is given, before the store is asked; errors stay short."""
    await memory.save(messages(1), "t", resource_id="ann")
    works = [
        memory.recall(wrong), memory.thread(wrong), memory.delete_thread(wrong), memory.save(messages(2), wrong),
        memory.save(messages(2), "t", after=wrong), memory.save([Message.user("x").replace(id=wrong)], "t"),
        memory.save([Message.user("x").replace(turn=wrong)], "t"), memory.save(messages(2), "t", resource_id=wrong),
        memory.recall("t", resource_id=wrong), memory.delete_messages([wrong], "t"), memory.clone_thread("t", ids=[wrong]),
        memory.clone_thread("t", new_id=wrong), memory.update_messages([Message.user("x").replace(id=wrong)], "t"),
        memory.search("x", thread_id=wrong), memory.threads(resource_id=wrong),
    ]  # fmt: skip
    for work in works:
        with pytest.raises(HistoryError) as failed:
            await work
        assert len(str(failed.value)) < 2000
    assert [each.id for each in (await memory.recall("t")).items] == ["m1"]
