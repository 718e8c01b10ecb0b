"""All that a store in memory keeps of an owner, which no client can ask for."""

from __future__ import annotations

from dragoman.serve.store.memory_answers import MemoryAnswers
from dragoman.serve.store.stored_answer import Answered

__all__ = ["kept_keys", "kept_under"]


def kept_keys(store: MemoryAnswers, owner: str, prefix: str = "") -> list[str]:
    """The keys that begin so."""
    share = store._shares.get(owner)  # pyright: ignore[reportPrivateUsage]
    return [] if share is None else [key for key in share.by_key if key.startswith(prefix)]


async def kept_under(store: MemoryAnswers, owner: str, prefix: str) -> list[Answered]:
    """The latest answer under each of them, the latest first."""
    found = [await store.find(owner, [key]) for key in kept_keys(store, owner, prefix)]
    return [one for one in reversed(found) if one is not None]
