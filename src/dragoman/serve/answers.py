"""Where a server keeps the answers that it gave: what such a store can do, and one that keeps none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol

from dragoman.serve.records import Answered
from dragoman.sql.address import check_address

__all__ = ["AnswerStore", "NoAnswers", "open_answers"]


class AnswerStore(Protocol):
    """Keeps answers. Each is seen by its owner alone: to anybody else it is as if it were not there."""

    async def save(self, answered: Answered, keys: Sequence[str] = ()) -> None:
        """Keeps an answer, in the place of one with its id. `keys`: under which it is found beside its id."""
        ...

    async def get(self, owner: str, id: str) -> Answered | None:  # noqa: A002 what it is
        """An answer by its id."""
        ...

    async def find(self, owner: str, keys: Iterable[str]) -> Answered | None:
        """The latest answer under the first of these keys that one is kept under."""
        ...

    async def chain(self, owner: str, id: str, *, most_bytes: int | None = None) -> list[Answered]:  # noqa: A002 what it is
        """An answer and those that it goes on from, the oldest first, as far as they are kept; `[]`: there is none.

        Raises:
            ContextLengthError: together they have more than `most_bytes` as JSON.
        """
        ...

    async def latest(self, owner: str, prefix: str, *, after: str = "", most: int = 50) -> list[tuple[str, Answered]]:
        """The keys of an owner that begin so, each with its latest answer: the latest of all first. `after`: the last key of the page
        before."""
        ...

    async def prune(self, before: datetime) -> int:
        """Forgets answers that were given before a time, unless a later one goes on from them → how many."""
        ...

    async def delete(self, owner: str, id: str) -> bool:  # noqa: A002 what it is
        """Takes an answer from its client: it cannot be asked for, and nothing goes on from it. → whether it was there."""
        ...

    async def close(self) -> None:
        """Gives back what the store holds."""
        ...


def open_answers(store: str | AnswerStore | None) -> AnswerStore:
    """The store of a URL: `memory:`, `sqlite:///file` or `postgresql://…`; a store is itself; `None`: one that keeps nothing.

    Raises:
        SettingsError: the URL is of another kind, or a package is missing.
    """
    if store is None:
        return NoAnswers()
    if not isinstance(store, str):
        return store
    if store == "memory:":
        from dragoman.serve.memory_answers import MemoryAnswers

        return MemoryAnswers()
    check_address(store, "store of answers", "store of answers")
    from dragoman.serve.sql_answers import SqlAnswers

    return SqlAnswers(store)


class NoAnswers:
    """A store that keeps nothing."""

    async def save(self, answered: Answered, keys: Sequence[str] = ()) -> None:
        """See `AnswerStore`."""

    async def get(self, owner: str, id: str) -> Answered | None:  # noqa: A002, ARG002 the protocol's
        """See `AnswerStore`."""
        return None

    async def find(self, owner: str, keys: Iterable[str]) -> Answered | None:  # noqa: ARG002 the protocol's
        """See `AnswerStore`."""
        return None

    async def chain(self, owner: str, id: str, *, most_bytes: int | None = None) -> list[Answered]:  # noqa: A002, ARG002 the protocol's
        """See `AnswerStore`."""
        return []

    async def latest(self, owner: str, prefix: str, *, after: str = "", most: int = 50) -> list[tuple[str, Answered]]:  # noqa: ARG002 the protocol's
        """See `AnswerStore`."""
        return []

    async def prune(self, before: datetime) -> int:  # noqa: ARG002 the protocol's
        """See `AnswerStore`."""
        return 0

    async def delete(self, owner: str, id: str) -> bool:  # noqa: A002, ARG002 the protocol's
        """See `AnswerStore`."""
        return False

    async def close(self) -> None:
        """See `AnswerStore`."""
