"""The checks that every vector store must pass, one function per behaviour.

A vector store (`dragoman.memory.VectorStore`) holds the vectors of the texts of a message store.
The checks write messages into that store and delete them again. They make vectors of models that
they name, so they delete those of any other: run them against an empty database.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from uuid import uuid4

import msgspec

from dragoman.memory.store import Batch, Store, ThreadChange
from dragoman.memory.vectors import Embedded, VectorQuery, VectorStore
from dragoman.message import Message
from dragoman.testing.check import Bench, Check, StoreFactory, check_maker, require, require_equal
from dragoman.testing.store.bench import START

__all__ = ["CHECKS", "VectorStoreBench", "VectorStores"]

VectorStores = tuple[Store, VectorStore]
"""A message store, and the vectors of its texts."""
_DIMENSIONS = 64


class VectorStoreBench(Bench):
    """Opens vector stores for the checks.

    Args:
        factory: makes a message store and its vector store.
    """

    def __init__(self, factory: StoreFactory[VectorStores]) -> None:
        self.factory, self.name = factory, factory.name

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[_Texts]:
        """Opens the stores, and deletes what the check wrote."""
        store, vectors = self.factory.make()
        texts = _Texts(store, vectors)
        try:
            yield texts
        finally:
            await vectors.delete(texts.model)
            for thread_id in texts.threads:
                await store.delete_thread(thread_id)
            await vectors.close()
            await store.close()


class _Texts:
    """Both stores, with texts whose vectors each point another way."""

    def __init__(self, store: Store, vectors: VectorStore) -> None:
        self.store, self.vectors = store, vectors
        self.key = uuid4().hex
        self.model = f"kit:{self.key}"
        self.owner, self.other = f"kit-{self.key}-a", f"kit-{self.key}-b"
        self.threads: list[str] = []

    def text(self, number: int) -> str:
        """Returns a text of this check alone."""
        return f"{self.key} {number}"

    async def save(self, name: str, *numbers: int, owner: str | None = None) -> None:
        """Saves a message for each number into a thread."""
        messages = [
            Message.user(self.text(number)).replace(id=f"{number}", created_at=START)
            for number in numbers
        ]
        await self.write(name, *messages, owner=owner)

    async def write(self, name: str, *messages: Message, owner: str | None = None) -> None:
        """Saves messages into a thread."""
        thread_id = f"kit-{self.key}-{name}"
        self.threads.append(thread_id)
        change = ThreadChange(resource_id=owner or self.owner)
        await self.store.save(
            Batch(thread_id=thread_id, messages=messages, at=START, change=change)
        )

    async def missing(self, model: str = "") -> list[str]:
        """Returns the texts of this check that have no vector."""
        bodies = await self.vectors.missing(model or self.model, limit=1000)
        return [body.text for body in bodies if self.key in body.text]

    async def embed(self, model: str = "") -> None:
        """Gives each text that has no vector its own."""
        bodies = await self.vectors.missing(model or self.model, limit=1000)
        numbers = [int(body.text.split(" ")[1]) for body in bodies if self.key in body.text]
        embedded = [
            Embedded(body.key, [_direction(number)])
            for body, number in zip(bodies, numbers, strict=False)
        ]
        await self.vectors.upsert(model or self.model, embedded)

    async def find(self, number: int, **fields: object) -> list[str]:
        """Returns the ids of the messages that are similar to a text, best first."""
        query = VectorQuery(model=self.model, vector=_direction(number), resource_id=self.owner)
        matches = await self.vectors.query(msgspec.structs.replace(query, **fields))
        return [match.message_id for match in matches if match.score > 0.3]


def _direction(number: int) -> Sequence[float]:
    """Returns a vector that is near those of its neighbours, and of no other number."""
    vector = [0.0] * _DIMENSIONS
    vector[number % _DIMENSIONS] = 1.0
    vector[(number + 1) % _DIMENSIONS] = 0.8
    return vector


vector_store_check = check_maker(VectorStoreBench, "vector store ")
"""Decorator that makes a check from a function of a `VectorStoreBench`."""


@vector_store_check(look="VectorStore.missing")
async def texts_without_vectors_are_listed(bench: VectorStoreBench) -> None:
    """Texts of users and models have no vector until one is stored, newest first; also if they
    cannot be embedded. Memos, system messages and empty texts have nothing to embed."""
    async with bench.open() as texts:
        memo = Message.user(texts.text(8)).replace(id="memo", metadata={"recalled": []})
        system = Message.system(texts.text(9)).replace(id="system")
        await texts.save("t", 1)
        await texts.save("t", 2)
        await texts.write("t", memo, system, Message.model().replace(id="empty"))
        await texts.write("t", Message.model(texts.text(3)).replace(id="3"))
        wanted = [texts.text(number) for number in (3, 2, 1)]
        require_equal(await texts.missing(), wanted, "what has no vector")
        bodies = await texts.vectors.missing(texts.model, limit=1000)
        await texts.vectors.upsert(texts.model, [Embedded(bodies[0].key, [])])
        require_equal(await texts.missing(), wanted[1:], "what is left after a refused text")
        await texts.embed()
        require_equal(await texts.missing(), [], "what is left")


@vector_store_check(look="VectorStore.query")
async def the_nearest_are_found(bench: VectorStoreBench) -> None:
    """A query finds the messages whose vectors are nearest, best first, as many as it wants and
    none that it excludes."""
    async with bench.open() as texts:
        await texts.save("t", 10, 11, 12, 30)
        await texts.embed()
        require_equal((await texts.find(10))[:1], ["10"], "the nearest")
        require_equal(sorted(await texts.find(11)), ["10", "11", "12"], "all that are near")
        require_equal(await texts.find(11, limit=1), ["11"], "the only one")
        without = await texts.find(11, exclude=frozenset(["11", "12"]))
        require_equal(without, ["10"], "what is not excluded")


@vector_store_check(look="VectorStore.query")
async def a_query_keeps_to_its_scope(bench: VectorStoreBench) -> None:
    """A query finds messages of its owner and its thread alone, also if another owner has the same
    text, which is embedded once."""
    async with bench.open() as texts:
        await texts.save("t", 20)
        await texts.save("u", 21)
        await texts.save("v", 20, 40, owner=texts.other)
        require_equal(len(await texts.missing()), 3, "the number of texts to embed")
        await texts.embed()
        require_equal(sorted(await texts.find(20)), ["20", "21"], "what its owner has")
        require_equal(await texts.find(20, thread_id=texts.threads[1]), ["21"], "its thread")
        require_equal(await texts.find(40), [], "what another owner has")
        require_equal(await texts.find(20, resource_id=texts.other), ["20"], "of the other")
        foreign = await texts.find(20, resource_id=texts.other, thread_id=texts.threads[0])
        require_equal(foreign, [], "another owner's thread")


@vector_store_check(look="VectorStore.query")
async def vectors_go_with_their_messages(bench: VectorStoreBench) -> None:
    """A deleted message is not found, a changed one by its new text; a text that another message
    shares stays."""
    async with bench.open() as texts:
        await texts.save("t", 1, 5, 10)
        await texts.save("u", 5)
        await texts.embed()
        await texts.store.delete_messages(texts.threads[0], ["1", "5"], START)
        require_equal(await texts.find(1), [], "the deleted message")
        require_equal(await texts.find(5), ["5"], "the message with the same text")
        await texts.write("t", Message.user(texts.text(30)).replace(id="10"))
        require_equal(await texts.find(10), [], "the text before it was changed")
        require_equal(await texts.missing(), [texts.text(30)], "the new text")
        await texts.embed()
        require_equal(await texts.find(30), ["10"], "the changed message")
        await texts.store.delete_thread(texts.threads[1])
        require_equal(await texts.find(5), [], "a message of a deleted thread")


@vector_store_check(look="VectorStore.upsert")
async def late_vectors_are_dropped(bench: VectorStoreBench) -> None:
    """Vectors for a text that was deleted meanwhile, or embedded by another process, are dropped
    without an error."""
    async with bench.open() as texts:
        await texts.save("t", 1, 2)
        bodies = await texts.vectors.missing(texts.model, limit=1000)
        await texts.store.delete_messages(texts.threads[0], ["1"], START)
        late = [Embedded(body.key, [_direction(50)]) for body in bodies]
        await texts.embed()
        await asyncio.gather(*[texts.vectors.upsert(texts.model, late) for _ in range(4)])
        require_equal(await texts.find(50), [], "what came late")
        require_equal(await texts.find(2), ["2"], "what was embedded first")


@vector_store_check(look="VectorStore.missing")
async def models_are_never_compared(bench: VectorStoreBench) -> None:
    """Vectors of one model are not found by another. Once another model is used, all texts have no
    vector."""
    async with bench.open() as texts:
        await texts.save("t", 1, 20)
        await texts.embed()
        other = f"{texts.model}-2"
        require_equal(await texts.find(1, model=other), [], "what another model finds")
        require_equal(len(await texts.missing(other)), 2, "the texts that it has to embed")
        await texts.embed(other)
        require_equal(await texts.find(1), [], "what the former model finds")
        require_equal(await texts.find(1, model=other), ["1"], "what the new model finds")
        require_equal(await texts.vectors.delete(texts.model), 0, "vectors of the former model")
        require(await texts.vectors.delete(other) == 2, "delete must say how many there were")
        require_equal(len(await texts.missing(other)), 2, "the texts without vectors")


CHECKS: tuple[Check[VectorStoreBench], ...] = (
    texts_without_vectors_are_listed,
    the_nearest_are_found,
    a_query_keeps_to_its_scope,
    vectors_go_with_their_messages,
    late_vectors_are_dropped,
    models_are_never_compared,
)
"""In the order of a report."""
