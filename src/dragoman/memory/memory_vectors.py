"""Vectors beside a message store in process memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from dragoman.memory.sign_codes import (
    compare,
    find_bodies,
    make_sign_code,
    pack_vector,
    unpack_vector,
)
from dragoman.memory.store import MessageQuery
from dragoman.memory.vectors import Embedded, Unembedded, VectorMatch, VectorQuery

__all__ = ["MemoryVectors", "SharedBody"]


_Coded = tuple[bytes, bytes]
"""A sign code, and its vector."""


class SharedBody(NamedTuple):
    """A message, and the content that it may share with others."""

    thread_id: str
    """The thread's id."""
    message_id: str
    """The message's id."""
    digest: bytes
    """The key of its content."""


class MemoryVectors:
    """A `VectorStore` beside a `MemoryStore`."""

    def __init__(
        self,
        texts: Mapping[bytes, str],
        read: Callable[[MessageQuery], Iterable[SharedBody]],
        lock: threading.Lock,
    ) -> None:
        """Creates the vector store in the process's memory. `texts`: the texts of all contents, in
        the order of writing. `read`: finds messages. `lock`: held while the store changes."""
        self._texts, self._read, self._lock = texts, read, lock
        self._vectors: dict[bytes, list[_Coded]] = {}
        self._model = ("", 0)
        self.vectors_read = 0
        """Number of vectors that searches have compared exactly."""

    async def missing(self, model: str, *, limit: int) -> list[Unembedded]:
        """Returns in-memory contents without vectors, as `VectorStore.missing`."""
        with self._lock:
            if self._model[0] != model:
                self._vectors.clear()
                self._model = (model, 0)
            missing = [
                Unembedded(digest, self._texts[digest])
                for digest in reversed([*self._texts])
                if digest not in self._vectors
            ]
        return missing[:limit]

    async def upsert(self, model: str, embedded: Sequence[Embedded]) -> None:
        """Stores vectors in memory, as `VectorStore.upsert`."""
        packed = [(item.key, [*_pack_all(item.vectors)]) for item in embedded]
        lengths = [len(vector) for _, vectors in packed for _, vector in vectors]
        with self._lock:
            if self._model[0] != model:
                return
            if lengths and self._model[1] != lengths[0]:
                if self._model[1]:
                    self._vectors.clear()
                self._model = (model, lengths[0])
            for key, vectors in packed:
                if isinstance(key, bytes) and key in self._texts:
                    self._vectors.setdefault(key, vectors)

    async def query(self, query: VectorQuery) -> list[VectorMatch]:
        """Searches the in-memory vectors, as `VectorStore.query`."""
        vector = pack_vector(query.vector)
        # Held for the whole search, so that no message is deleted meanwhile.
        with self._lock:
            if vector is None or self._model != (query.model, len(vector)):
                return []
            scope = MessageQuery(thread_id=query.thread_id, resource_id=query.resource_id)
            messages = [*self._read(scope)]
            codes = [
                (message.digest, code)
                for message in messages
                for code, _ in self._vectors.get(message.digest, ())
            ]
            keys = find_bodies(make_sign_code(vector), [codes])
            self.vectors_read += sum(len(self._vectors[key]) for key in keys)
            numbers = unpack_vector(vector).tolist()
            scores = {
                key: max(compare(numbers, other) for _, other in self._vectors[key]) for key in keys
            }
        return [*_find_matches(query, messages, scores)]

    async def delete(self, model: str) -> int:
        """Deletes in-memory vectors, as `VectorStore.delete`."""
        with self._lock:
            if self._model[0] != model:
                return 0
            count = sum(map(len, self._vectors.values()))
            self._vectors.clear()
            return count

    async def close(self) -> None:
        """Does nothing: what the message store holds stays."""

    def forget(self, digest: bytes) -> None:
        """Drops the vectors of a content that is deleted. The caller holds the lock."""
        self._vectors.pop(digest, None)


def _pack_all(several: Iterable[Sequence[float]]) -> Iterator[_Coded]:
    """Yields vectors as the in-memory store has them, without those that have no direction."""
    for numbers in several:
        if (packed := pack_vector(numbers)) is not None:
            yield make_sign_code(packed), packed


def _find_matches(
    query: VectorQuery, messages: Sequence[SharedBody], scores: Mapping[bytes, float]
) -> Iterator[VectorMatch]:
    """Yields the messages of the in-memory vectors' best contents, as many contents as the query
    wants."""
    best = sorted(scores, key=lambda key: -scores[key])
    count = 0
    for key in best:
        matches = [
            VectorMatch(message.thread_id, message.message_id, scores[key])
            for message in messages
            if message.digest == key and message.message_id not in query.exclude
        ]
        yield from matches
        count += bool(matches)
        if count == query.limit:
            return
