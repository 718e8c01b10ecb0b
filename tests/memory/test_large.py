"""A thread of a million messages."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from dragoman.memory import Memory
from dragoman.memory.sql_store import SqlStore
from dragoman.message import Message

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.service, pytest.mark.timeout(900)]

COUNT, BATCH = 1_000_000, 20_000


async def test_the_last_ten_of_a_million(shared_url: str) -> None:
    """They are found by an index: the database says how many rows it looked at, or that it walks
    the index from its end."""
    async with Memory(shared_url) as memory:
        assert isinstance(memory.store, SqlStore)
        for first in range(0, COUNT, BATCH):
            numbers = range(first, first + BATCH)
            batch = [
                Message.user(f"number {number % 1000}").replace(id=str(number))
                for number in numbers
            ]
            await memory.save(batch, "t")
        page = await memory.recall("t", per_page=10, newest_first=True)
        assert [each.id for each in page.items] == [str(COUNT - number) for number in range(1, 11)]
        assert [each.message.id for each in (await memory.search("777", per_page=1)).items] == [
            "999777"
        ]
        if memory.store.database.dialect == "postgresql":
            newest = (
                "EXPLAIN (ANALYZE, FORMAT TEXT) SELECT * FROM dragoman_messages JOIN dragoman_bodies USING (body_id) "
                "WHERE thread_id = 't' AND branch = 0 ORDER BY position DESC LIMIT 10"
            )
            # In use, autovacuum does this; right after a million rows it may not have begun.
            await memory.store.database.read(lambda c: c.execute(text("ANALYZE")))
            rows = await memory.store.database.read(
                lambda c: [row[0] for row in c.execute(text(newest))]
            )
            assert any(
                "Index Scan Backward using dragoman_messages_pkey" in row and "rows=10" in row
                for row in rows
            )
