"""The checks of stores can fail: for each a store that is broken so that this check says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from dragoman import testing
from dragoman.memory.memory_store import MemoryStore
from dragoman.memory.memory_vectors import MemoryVectors
from dragoman.memory.store import Batch, MessageQuery, Slot, ThreadQuery
from dragoman.message import Message
from dragoman.testing.check import CheckFailed

replace = msgspec.structs.replace


def broken(**functions: Callable[..., Any]) -> type[MemoryStore]:
    return type("Broken", (MemoryStore,), functions)


def saving(change: Callable[[Batch], Batch]) -> type[MemoryStore]:
    async def save(self: MemoryStore, batch: Batch) -> Any:
        return await MemoryStore.save(self, change(batch))

    return broken(save=save)


def reading(change: Callable[[MessageQuery], MessageQuery]) -> type[MemoryStore]:
    async def messages(self: MemoryStore, wanted: MessageQuery) -> Any:
        return await MemoryStore.messages(self, change(wanted))

    return broken(messages=messages)


def finding(change: Callable[[ThreadQuery], ThreadQuery]) -> type[MemoryStore]:
    async def threads(self: MemoryStore, wanted: ThreadQuery) -> Any:
        return await MemoryStore.threads(self, change(wanted))

    return broken(threads=threads)


def without(**fields: Any) -> Callable[[Any], Any]:
    return lambda value: replace(value, **fields)


def of_messages(change: Callable[[Message], Message]) -> Callable[[Batch], Batch]:
    return lambda batch: replace(batch, messages=tuple(map(change, batch.messages)))


async def nothing(self: MemoryStore, *_: Any) -> Any:
    return 0


async def one_by_one(self: MemoryStore, batch: Batch) -> Any:
    thread = await MemoryStore.save(self, replace(batch, messages=(), after=None))
    return (
        await MemoryStore.save(self, replace(batch, make="missing")) if batch.messages else thread
    )


async def in_time(self: MemoryStore, wanted: MessageQuery) -> Any:
    found = await MemoryStore.messages(self, wanted)
    return sorted(found, key=lambda each: str(each.message.created_at), reverse=wanted.newest_first)


async def interleaved(self: MemoryStore, batch: Batch) -> Any:
    import asyncio

    for message in batch.messages or ():
        thread = await MemoryStore.save(self, replace(batch, messages=(message,)))
        await asyncio.sleep(0)
        batch = replace(batch, make="missing", after=None)
    return thread if batch.messages else await MemoryStore.save(self, batch)


async def without_comparing(self: MemoryStore, slot: Slot, text: str, _: Any, at: Any) -> Any:
    return await MemoryStore.write_slot(self, slot, text, None, at)


async def without_owner(self: MemoryStore, slot: Slot, *written: Any) -> Any:
    return await MemoryStore.write_slot(self, replace(slot, resource_id=None), *written)


MUTANTS = {
    "messages_come_back_equal": saving(of_messages(without(turn=None))),
    "messages_keep_the_order_of_writing": broken(messages=in_time),
    "a_message_replaces_the_one_with_its_id": saving(lambda batch: replace(batch, messages=tuple(m for m in batch.messages if m.text != "new"))),
    "equal_messages_keep_their_ids": saving(lambda batch: replace(batch, messages=batch.messages[:1])),
    "a_batch_is_atomic": broken(save=one_by_one),
    "message_queries_select": reading(without(offset=0)),
    "search_finds_words": reading(lambda wanted: replace(wanted, text=wanted.text and wanted.text.split()[:1] and wanted.text.split()[0])),
    "messages_can_be_deleted": broken(delete_messages=nothing),
    "memos_lose_what_is_deleted": saving(without(quotes=())),
    "concurrent_writes_lose_nothing": broken(save=interleaved),
    "concurrent_stores_lose_nothing": MemoryStore,
    "a_thread_is_created_once": saving(without(make="missing")),
    "a_thread_belongs_to_one_resource": saving(lambda batch: replace(batch, change=replace(batch.change, resource_id=None))),
    "threads_are_changed_field_by_field": saving(lambda batch: replace(batch, change=replace(batch.change, trimmed=None))),
    "thread_queries_select": finding(without(metadata={})),
    "a_thread_is_deleted_completely": broken(delete_thread=nothing),
    "an_edit_starts_a_branch": saving(lambda batch: replace(batch, after=None if batch.after == "" else batch.after)),
    "a_branch_can_be_selected": saving(lambda batch: replace(batch, change=replace(batch.change, branch=None))),
    "a_slot_is_compared_and_set": broken(write_slot=without_comparing),
    "a_slot_belongs_to_its_thread": broken(write_slot=without_owner),
    "concurrent_slot_writes_lose_nothing": broken(write_slot=without_comparing),
}  # fmt: skip


@pytest.mark.parametrize("check", testing.STORE_CHECKS, ids=lambda check: check.name)
def test_each_check_fails_where_its_behaviour_is_not_there(check: Any) -> None:
    broken_store = MUTANTS[check.name]
    (bound,) = [
        each for each in testing.store_checks(broken_store, shared=True) if each.name == check.name
    ]
    with pytest.raises(CheckFailed):
        bound()


class Forgetful(MemoryVectors):
    """Vectors that outlive their messages, and are found by every model."""

    async def upsert(self, model: str, embedded: Any) -> None:
        self._model = (model, self._model[1])
        await MemoryVectors.upsert(self, model, embedded)

    async def query(self, query: Any) -> Any:
        return await MemoryVectors.query(self, replace(query, model=self._model[0]))

    def forget(self, digest: bytes) -> None:
        pass


def with_vectors(**functions: Callable[..., Any]) -> type[MemoryVectors]:
    return type("Broken", (MemoryVectors,), functions)


def asking(**fields: Any) -> type[MemoryVectors]:
    async def query(self: MemoryVectors, wanted: Any) -> Any:
        return await MemoryVectors.query(self, replace(wanted, **fields))

    return with_vectors(query=query)


async def oldest_first(self: MemoryVectors, model: str, *, limit: int) -> Any:
    return [*reversed(await MemoryVectors.missing(self, model, limit=limit))]


async def anything(self: MemoryVectors, model: str, embedded: Any) -> None:
    for item in embedded:
        self._vectors.pop(item.key, None)
        self._texts.setdefault(item.key, "late")  # type: ignore[attr-defined]
    await MemoryVectors.upsert(self, model, embedded)


VECTOR_MUTANTS: dict[str, type[MemoryVectors]] = {
    "texts_without_vectors_are_listed": with_vectors(missing=oldest_first),
    "the_nearest_are_found": asking(exclude=frozenset()),
    "a_query_keeps_to_its_scope": asking(resource_id=None),
    "vectors_go_with_their_messages": with_vectors(query=nothing),
    "late_vectors_are_dropped": with_vectors(upsert=anything),
    "models_are_never_compared": Forgetful,
}


@pytest.mark.parametrize("check", testing.VECTOR_STORE_CHECKS, ids=lambda check: check.name)
def test_each_vector_check_fails_where_its_behaviour_is_not_there(check: Any) -> None:
    def opened() -> Any:
        store = MemoryStore()
        broken_vectors = VECTOR_MUTANTS[check.name]
        store.vectors = broken_vectors(store._texts, store._iterate_bodies, store._lock)
        return store, store.vectors

    (bound,) = [each for each in testing.vector_store_checks(opened) if each.name == check.name]
    with pytest.raises((CheckFailed, TypeError)):
        bound()
