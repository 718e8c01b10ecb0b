"""What the checks of a message store work with: stores as they are made, and short ways to write and read."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from dragoman.errors import HistoryError
from dragoman.memory.store import Batch, MessageQuery, Store, ThreadChange, ThreadQuery
from dragoman.memory.thread import StoredMessage, Thread
from dragoman.message import Message
from dragoman.testing.check import Bench, CheckFailed, Maker, check_maker, demand

__all__ = [
    "START",
    "StoreBench",
    "changed",
    "read_branch",
    "refused",
    "save_texts",
    "store_check",
    "texts",
]

START = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
"""When the first thing is written."""


class StoreBench(Bench):
    """A message store on the bench.

    Args:
        maker: makes the store.
        shared: whether two that are made hold the same, as processes do that share a database.
    """

    def __init__(self, maker: Maker[Store], *, shared: bool = False) -> None:
        self.maker, self.name, self.shared = maker, maker.name, shared

    def lacks(self, needs: tuple[str, ...], *, live: bool) -> str | None:  # noqa: ARG002 - a store has no server
        """See `Bench.lacks`."""
        return (
            "stores of one process share nothing" if "shared" in needs and not self.shared else None
        )

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Store, None]:
        """A store, closed behind the check."""
        store = self.maker.make()
        try:
            yield store
        finally:
            await store.close()

    @asynccontextmanager
    async def thread(self) -> AsyncGenerator[tuple[Store, str], None]:
        """A store, and the id of a thread that it does not have; it is deleted behind the check."""
        thread_id = f"kit-{uuid4().hex}"
        async with self.open() as store:
            try:
                yield store, thread_id
            finally:
                await store.delete_thread(thread_id)


store_check = check_maker(StoreBench, "store ")
"""Makes a check of a function on a store's bench."""


async def save_texts(
    store: Store, thread_id: str, *words: str, seconds: int = 0, **how: Any
) -> Thread:
    """Writes a message for each of these texts, whose id is the text."""
    at = START + timedelta(seconds=seconds)
    messages = tuple([Message.user(each).replace(id=each, created_at=at) for each in words])
    return await store.save(Batch(thread_id=thread_id, messages=messages, at=at, **how))


async def changed(store: Store, thread_id: str, seconds: int = 0, **change: Any) -> Thread:
    """Changes a thread, which is made where it is missing."""
    at = START + timedelta(seconds=seconds)
    return await store.save(
        Batch(thread_id=thread_id, messages=(), at=at, change=ThreadChange(**change))
    )


async def texts(store: Store, thread_id: str | None, **how: Any) -> list[str]:
    """The texts of messages. Of a thread: as it is shown, where no branch is given."""
    if thread_id is not None and "branch" not in how:
        threads = await store.threads(ThreadQuery(ids=(thread_id,)))
        how["branch"] = threads[0].branch if threads else None
    return [
        each.message.text for each in await store.messages(MessageQuery(thread_id=thread_id, **how))
    ]


async def read_branch(store: Store, thread_id: str) -> list[StoredMessage]:
    """Returns the stored messages of a thread's first branch."""
    return list(await store.messages(MessageQuery(thread_id=thread_id, branch=0)))


async def refused(work: Awaitable[Any], what: str, words: Sequence[str] = ()) -> HistoryError:
    """Fails the check where work is not refused with a `HistoryError` that has these words → that error."""
    try:
        await work
    except HistoryError as error:
        for word in words:
            demand(word in str(error), f"the error for {what} must name {word!r}: {error}")
        return error
    raise CheckFailed(f"no HistoryError is raised for {what}")
