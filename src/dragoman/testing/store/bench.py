"""What the checks of a message store work with: stores as they are made, and short ways to write
and read."""

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
    "change_thread",
    "read_branch",
    "expect_refusal",
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
        """Opens a store, which is closed behind the check."""
        store = self.maker.make()
        try:
            yield store
        finally:
            await store.close()

    @asynccontextmanager
    async def thread(self) -> AsyncGenerator[tuple[Store, str], None]:
        """Gives a store, and the id of a thread that it does not have; it is deleted behind the
        check."""
        thread_id = f"kit-{uuid4().hex}"
        async with self.open() as store:
            try:
                yield store, thread_id
            finally:
                await store.delete_thread(thread_id)


store_check = check_maker(StoreBench, "store ")
"""Makes a check of a function on a store's bench."""


async def save_texts(
    store: Store, thread_id: str, *message_texts: str, seconds: int = 0, **options: Any
) -> Thread:
    """Writes a message for each of these texts, whose id is the text."""
    time = START + timedelta(seconds=seconds)
    messages = tuple(
        [Message.user(text).replace(id=text, created_at=time) for text in message_texts]
    )
    return await store.save(Batch(thread_id=thread_id, messages=messages, at=time, **options))


async def change_thread(store: Store, thread_id: str, seconds: int = 0, **change: Any) -> Thread:
    """Changes a thread, which is made where it is missing."""
    time = START + timedelta(seconds=seconds)
    return await store.save(
        Batch(thread_id=thread_id, messages=(), at=time, change=ThreadChange(**change))
    )


async def texts(store: Store, thread_id: str | None, **options: Any) -> list[str]:
    """Returns the texts of messages; of a thread as it is shown, if no branch is given."""
    if thread_id is not None and "branch" not in options:
        threads = await store.threads(ThreadQuery(ids=(thread_id,)))
        options["branch"] = threads[0].branch if threads else None
    return [
        stored.message.text
        for stored in await store.messages(MessageQuery(thread_id=thread_id, **options))
    ]


async def read_branch(store: Store, thread_id: str) -> list[StoredMessage]:
    """Returns the stored messages of a thread's first branch."""
    return list(await store.messages(MessageQuery(thread_id=thread_id, branch=0)))


async def expect_refusal(
    work: Awaitable[Any], what: str, words: Sequence[str] = ()
) -> HistoryError:
    """Fails the check where work is not refused with a `HistoryError` that has these words → that
    error."""
    try:
        await work
    except HistoryError as error:
        for text in words:
            demand(text in str(error), f"the error for {what} must name {text!r}: {error}")
        return error
    raise CheckFailed(f"no HistoryError is raised for {what}")
