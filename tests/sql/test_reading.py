"""The connections of the threads that read a database."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from dragoman import Message
from dragoman.errors import StoreError
from dragoman.memory import Memory
from dragoman.memory.sql_store import SqlStore

pytestmark = pytest.mark.anyio


async def test_each_thread_keeps_its_connection_and_sees_what_was_written_since(
    tmp_path: Path,
) -> None:
    used: list[Connection] = []

    def count(connection: Connection) -> int:
        used.append(connection)
        return connection.execute(text("SELECT count(*) FROM dragoman_messages")).scalar_one()

    store = SqlStore(f"sqlite:///{tmp_path}/chats.db")
    async with Memory(store) as memory:
        for number in range(1, 11):
            await memory.save([Message.user("hi")], "t")
            counts = await asyncio.gather(*[store.database.read(count) for _ in range(3)])
            assert counts == [number] * 3
        assert len({*map(id, used)}) <= 2  # as many as threads that read
    assert all(connection.closed for connection in used)


async def test_a_connection_that_failed_is_not_used_again(tmp_path: Path) -> None:
    used: list[Connection] = []

    def fail(connection: Connection) -> None:
        used.append(connection)
        connection.execute(text("SELECT 1 FROM nowhere"))

    def read(connection: Connection) -> int:
        assert all(connection is not failed for failed in used)
        return connection.execute(text("SELECT 1")).scalar_one()

    store = SqlStore(f"sqlite:///{tmp_path}/chats.db")
    for _ in range(5):
        with pytest.raises(StoreError, match="no such table: nowhere"):
            await store.database.read(fail)
        assert await asyncio.gather(*[store.database.read(read) for _ in range(4)]) == [1] * 4
    await store.close()
    assert all(connection.closed for connection in used)
