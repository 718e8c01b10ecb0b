"""`VectorStore`: the vectors of a memory's texts, and the search in them.

A vector belongs to the content of messages, not to one message: equal messages share it, and it
goes with the last of them. A search returns matches, which are no more than candidates: a memory
reads each message again through its `Store`, for its owner and in the visible branch. So a vector
store that lags behind may miss a message, but never shows one that the caller may not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import msgspec

__all__ = ["BodyKey", "Embedded", "Unembedded", "VectorMatch", "VectorQuery", "VectorStore"]

BodyKey = int | bytes
"""What a vector store calls the content that equal messages share."""


class Unembedded(msgspec.Struct, frozen=True):
    """A content that has no vector yet."""

    key: BodyKey
    """Its key."""
    text: str
    """Its text; empty if nothing is to be embedded, such as a system message's."""


class Embedded(msgspec.Struct, frozen=True):
    """A content with its vectors."""

    key: BodyKey
    """Its key."""
    vectors: Sequence[Sequence[float]]
    """A vector for each piece of its text. None: it cannot be embedded, and is not asked for
    again."""


class VectorQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Selects messages by the meaning of their text."""

    model: str
    """The embedding model. Vectors of another one are never compared."""
    vector: Sequence[float]
    """The vector to compare with."""
    resource_id: str | None = None
    """Owner of the threads to search; `None`: any."""
    thread_id: str | None = None
    """Thread to search; `None`: all."""
    exclude: frozenset[str] = frozenset()
    """Ids of messages to leave out."""
    limit: int = 4
    """Most contents to return messages of."""


class VectorMatch(msgspec.Struct, frozen=True):
    """A message whose text may be similar."""

    thread_id: str
    """The thread's id."""
    message_id: str
    """The message's id."""
    score: float
    """The cosine of both vectors: 1 for the same direction."""


@runtime_checkable
class VectorStore(Protocol):
    """Stores vectors, and finds the nearest. `dragoman.testing.vector_store_checks` tests whether
    one complies. The stores of dragoman have one each, in the same database."""

    async def missing(self, model: str, *, limit: int) -> list[Unembedded]:
        """Returns the store's contents that have no vector of this model yet, newest first. If the
        stored vectors are another model's, they are deleted.

        Args:
            model: the embedding model.
            limit: most contents to return.
        """
        ...

    async def upsert(self, model: str, embedded: Sequence[Embedded]) -> None:
        """Stores vectors, all or none. Nothing is stored for a content that was deleted meanwhile,
        or that another process has embedded."""
        ...

    async def query(self, query: VectorQuery) -> list[VectorMatch]:
        """Returns the messages whose vectors are nearest, best first. A content that several
        messages share comes with some of them."""
        ...

    async def delete(self, model: str) -> int:
        """Deletes the vectors of a model and returns how many there were. Their contents have none
        then, and are embedded again."""
        ...

    async def close(self) -> None:
        """Closes what it opened."""
        ...
