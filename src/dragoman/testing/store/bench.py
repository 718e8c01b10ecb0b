"""`StoreBench`, which the checks of a message store work with, and helpers that write and read
threads."""

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
from dragoman.testing.check import Bench, CheckFailed, StoreFactory, check_maker, require

__all__ = [
    "START",
    "StoreBench",
    "change_thread",
    "read_branch",
    "expect_refusal",
    "save_texts",
    "store_check",
    "read_texts",
]

START = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
"""The time of the first message."""


class StoreBench(Bench):
    """Opens message stores for the checks.

    Args:
        factory: makes a store.
        shared: True if two stores from the factory hold the same data, as two processes with
            one database do.
    """

    def __init__(self, factory: StoreFactory[Store], *, shared: bool = False) -> None:
        self.factory, self.name, self.shared = factory, factory.name, shared

    def find_skip_reason(self, needs: tuple[str, ...], *, live: bool) -> str | None:  # noqa: ARG002 - a store has no server
        """See `Bench.lacks`."""
        if "shared" in needs and not self.shared:
            return "stores of one process share nothing"
        return None

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Store, None]:
        """Opens a store and closes it after the check."""
        store = self.factory.make()
        try:
            yield store
        finally:
            await store.close()

    @asynccontextmanager
    async def thread(self) -> AsyncGenerator[tuple[Store, str], None]:
        """Opens a store, and yields it with the id of a new thread, which is deleted after the
        check."""
        thread_id = f"kit-{uuid4().hex}"
        async with self.open() as store:
            try:
                yield store, thread_id
            finally:
                await store.delete_thread(thread_id)


store_check = check_maker(StoreBench, "store ")
"""Decorator that makes a check from a function of a `StoreBench`."""


async def save_texts(
    store: Store, thread_id: str, *message_texts: str, seconds: int = 0, **options: Any
) -> Thread:
    """Saves a user message for each text, with the text as its id."""
    time = START + timedelta(seconds=seconds)
    messages = tuple(
        [Message.user(text).replace(id=text, created_at=time) for text in message_texts]
    )
    return await store.save(Batch(thread_id=thread_id, messages=messages, at=time, **options))


async def change_thread(store: Store, thread_id: str, seconds: int = 0, **change: Any) -> Thread:
    """Changes a thread, and creates it if it does not exist."""
    time = START + timedelta(seconds=seconds)
    return await store.save(
        Batch(thread_id=thread_id, messages=(), at=time, change=ThreadChange(**change))
    )


async def read_texts(store: Store, thread_id: str | None, **options: Any) -> list[str]:
    """Returns the texts of a thread's messages, of its current branch unless `branch` is given."""
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
    """Returns the `HistoryError` that `work` raises, and fails the check if it raises none or lacks
    one of the `words`."""
    try:
        await work
    except HistoryError as error:
        for text in words:
            require(text in str(error), f"the error for {what} must name {text!r}: {error}")
        return error
    raise CheckFailed(f"no HistoryError is raised for {what}")
