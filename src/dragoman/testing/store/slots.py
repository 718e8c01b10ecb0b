"""Checks of the texts that a store holds beside messages: a working memory, the state of runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any
from uuid import uuid4

from dragoman.errors import ConflictError, ThreadNotFoundError
from dragoman.memory.store import Slot, SlotText, Store
from dragoman.testing.check import CheckFailed, require_equal
from dragoman.testing.samples import TEXT
from dragoman.testing.store.bench import START, StoreBench, change_thread, store_check

__all__ = [
    "a_slot_is_compared_and_set",
    "a_slot_belongs_to_its_thread",
    "concurrent_slot_writes_lose_nothing",
]

_WRITE = "Store.write_slot"


@store_check(look=_WRITE)
async def a_slot_is_compared_and_set(bench: StoreBench) -> None:
    """A write names the version that it replaces, or `None` for any, and each write makes the next
    version. Another version is a `ConflictError`, which changes nothing."""
    async with bench.thread() as (store, thread_id):
        await change_thread(store, thread_id)
        for slot in (
            Slot(name="working", resource_id=f"kit-{uuid4().hex}"),
            Slot(name="working", thread_id=thread_id),
        ):
            require_equal(await store.read_slot(slot), SlotText("", 0), "a slot that is empty")
            written = await store.write_slot(slot, TEXT, 0, START)
            require_equal(written, SlotText(TEXT, 1), "what the first write returns")
            for version in (0, 2):
                await _expect(ConflictError, store.write_slot(slot, "x", version, START))
            require_equal(await store.read_slot(slot), written, "the slot")
            await store.write_slot(slot, "b", 1, START)
            await store.write_slot(slot, "", None, START)
            require_equal(await store.read_slot(slot), SlotText("", 3), "the slot in the end")


@store_check(look=_WRITE)
async def a_slot_belongs_to_its_thread(bench: StoreBench) -> None:
    """The slots of a thread have names, and are deleted with it. A thread that does not exist, or
    is another resource's, is refused."""
    async with bench.thread() as (store, thread_id), bench.thread() as (_, other_id):
        state, working = (Slot(name=name, thread_id=thread_id) for name in ("state", "working"))
        await _expect(ThreadNotFoundError, store.write_slot(state, "x", None, START))
        await change_thread(store, thread_id, resource_id="ann")
        await change_thread(store, other_id)
        foreign = Slot(name="state", thread_id=thread_id, resource_id="bob")
        await _expect(ThreadNotFoundError, store.write_slot(foreign, "x", 0, START))
        owned = Slot(name="state", thread_id=thread_id, resource_id="ann")
        await store.write_slot(owned, "a", 0, START)
        await store.write_slot(working, "b", 0, START)
        texts = [await _read(store, slot) for slot in (state, working)]
        texts.append(await _read(store, Slot(name="state", thread_id=other_id)))
        require_equal(texts, ["a", "b", ""], "the slots of two threads")
        await store.delete_thread(thread_id)
        await change_thread(store, thread_id)
        require_equal(await store.read_slot(state), SlotText("", 0), "a slot of a deleted thread")


@store_check(look=_WRITE)
async def concurrent_slot_writes_lose_nothing(bench: StoreBench) -> None:
    """Of writes that replace one version, one succeeds."""
    async with bench.open() as store:
        slot = Slot(name="working", resource_id=f"kit-{uuid4().hex}")
        for version in range(3):
            writes = [store.write_slot(slot, str(n), version, START) for n in range(8)]
            results = await asyncio.gather(*writes, return_exceptions=True)
            written = [result for result in results if isinstance(result, SlotText)]
            require_equal(written, [await store.read_slot(slot)], "the writes that succeeded")


async def _read(store: Store, slot: Slot) -> str:
    return (await store.read_slot(slot)).text


async def _expect(error_class: type[Exception], work: Awaitable[Any]) -> None:
    """Fails the check if `work` raises no error of this class."""
    try:
        await work
    except error_class:
        return
    raise CheckFailed(f"no {error_class.__name__} is raised by write_slot")
