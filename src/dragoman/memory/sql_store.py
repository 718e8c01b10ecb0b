"""A store in SQLite or Postgres."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

import msgspec
from sqlalchemy import Connection

from dragoman.errors import HistoryError, StoreError
from dragoman.memory import sql_reading, sql_saving, sql_slots
from dragoman.memory.sql_tables import MIGRATIONS
from dragoman.memory.sql_vectors import SqlVectors
from dragoman.memory.store import Batch, MessageQuery, Slot, SlotText, ThreadContent, ThreadQuery
from dragoman.memory.stored_message import pack
from dragoman.memory.thread import Branch, StoredMessage, Thread
from dragoman.sql.database import Database

__all__ = ["SqlStore"]


class SqlStore:
    """A `Store` in a database, which processes may share."""

    def __init__(self, url: str) -> None:
        """Creates the SQL store of messages. `url`: as for `open_store`. Nothing is opened before
        the first use."""
        self.database = Database(url, MIGRATIONS, name="message store", failure=StoreError)
        """Its connections."""
        self.vectors = SqlVectors(self.database)
        """The vectors of its texts."""

    async def save(self, batch: Batch) -> Thread:
        """Saves a batch in the SQL store, as `Store.save`."""
        parts = [pack(message) for message in batch.messages]
        return await self.database.write(
            lambda connection: sql_saving.save(connection, batch, parts)
        )

    async def messages(self, query: MessageQuery) -> list[StoredMessage]:
        """Returns messages of the SQL store, as `Store.messages`."""
        return await self.database.read(
            lambda connection: sql_reading.select_messages(connection, query)
        )

    async def threads(self, query: ThreadQuery) -> list[Thread]:
        """Returns threads of the SQL store, as `Store.threads`."""
        return await self.database.read(
            lambda connection: sql_reading.select_threads(connection, query)
        )

    async def read_content(self, query: MessageQuery, slot: Slot | None) -> ThreadContent:
        """Reads a thread of the SQL store with messages and a slot, for `Memory`."""
        return await self.database.read(lambda connection: _select_content(connection, query, slot))

    async def branches(self, thread_id: str) -> list[Branch]:
        """Returns a thread's branches from the SQL store, as `Store.branches`."""
        branches = await self.database.read(
            lambda connection: sql_reading.select_branches(connection, thread_id)
        )
        return list(branches.values())

    async def delete_thread(self, thread_id: str) -> bool:
        """Deletes a thread from the SQL store, as `Store.delete_thread`."""
        return await self.database.write(
            lambda connection: sql_saving.delete_thread(connection, thread_id)
        )

    async def delete_messages(self, thread_id: str, ids: Sequence[str], at: datetime) -> int:
        """Deletes messages from the SQL store, as `Store.delete_messages`."""
        return await self.database.write(
            lambda connection: sql_saving.delete_messages(connection, thread_id, ids, at)
        )

    async def read_slot(self, slot: Slot) -> SlotText:
        """As `Store.read_slot`."""
        return await self.database.read(lambda connection: sql_slots.read_slot(connection, slot))

    async def write_slot(
        self, slot: Slot, text: str, version: int | None, time: datetime
    ) -> SlotText:
        """Writes a slot of the SQL store, as `Store.write_slot`."""
        return await self.database.write(
            lambda connection: sql_slots.write_slot(connection, slot, text, version, time)
        )

    async def close(self) -> None:
        """Closes the store, as `Store.close`."""
        await self.database.close()


def _select_content(
    connection: Connection, query: MessageQuery, slot: Slot | None
) -> ThreadContent:
    """Reads by SQL a query's thread, its messages and a slot."""
    threads = sql_reading.select_threads(connection, ThreadQuery(ids=(query.thread_id or "",)))
    if not threads:
        return ThreadContent(None)
    if query.branch is None:
        query = msgspec.structs.replace(query, branch=threads[0].branch)
    messages: list[StoredMessage] | None = None
    if query.limit != 0:
        # What is wrong is told to the thread's owner alone, who asks for them again.
        with suppress(HistoryError):
            messages = sql_reading.select_messages(connection, query)
    state = None if slot is None else sql_slots.read_slot(connection, slot)
    return ThreadContent(threads[0], messages, state)
