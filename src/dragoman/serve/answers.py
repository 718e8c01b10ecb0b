"""Where a server keeps the answers that it gave: what such a store can do, and one in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from dragoman.serve.records import Answered
from dragoman.sql.address import check_address

__all__ = ["AnswerStore", "MemoryAnswers", "open_answers"]

_MOST_ANSWERS = 10_000
_MOST_BYTES = 256 * 1024 * 1024
_LONGEST_CHAIN = 10_000


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

    async def chain(self, owner: str, id: str) -> list[Answered]:  # noqa: A002 what it is
        """An answer and those that it goes on from, the oldest first, as far as they are kept; `[]`: there is none."""
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

    async def chain(self, owner: str, id: str) -> list[Answered]:  # noqa: A002, ARG002 the protocol's
        """See `AnswerStore`."""
        return []

    async def delete(self, owner: str, id: str) -> bool:  # noqa: A002, ARG002 the protocol's
        """See `AnswerStore`."""
        return False

    async def close(self) -> None:
        """See `AnswerStore`."""


class MemoryAnswers:
    """Answers in this process. Beyond so many, or so many bytes, the oldest go."""

    def __init__(self, *, most: int = _MOST_ANSWERS, most_bytes: int = _MOST_BYTES) -> None:
        """`most`: answers; `most_bytes`: of them as JSON."""
        self._most, self._most_bytes = most, most_bytes
        self._answers: OrderedDict[tuple[str, str], tuple[bytes, tuple[str, ...]]] = OrderedDict()
        self._by_key: dict[tuple[str, str], dict[str, None]] = {}
        self._bytes = 0

    async def save(self, answered: Answered, keys: Sequence[str] = ()) -> None:
        """See `AnswerStore`."""
        place = (answered.owner, answered.id)
        before = self._answers.get(place)
        kept = tuple(dict.fromkeys([*(before[1] if before else ()), *keys]))
        self._remove(place)
        data = msgspec.json.encode(answered)
        if len(data) > self._most_bytes:
            return
        self._answers[place] = (data, kept)
        self._bytes += len(data)
        for key in kept:
            self._by_key.setdefault((answered.owner, key), {})[answered.id] = None
        while len(self._answers) > self._most or self._bytes > self._most_bytes:
            self._remove(next(iter(self._answers)))

    async def get(self, owner: str, id: str) -> Answered | None:  # noqa: A002 the protocol's
        """See `AnswerStore`."""
        found = self._answers.get((owner, id))
        return None if found is None else _ANSWERED.decode(found[0])

    async def find(self, owner: str, keys: Iterable[str]) -> Answered | None:
        """See `AnswerStore`."""
        ids = next((ids for key in keys if (ids := self._by_key.get((owner, key)))), None)
        return None if ids is None else await self.get(owner, next(reversed(ids)))

    async def chain(self, owner: str, id: str) -> list[Answered]:  # noqa: A002 the protocol's
        """See `AnswerStore`."""
        found: list[Answered] = []
        at: str | None = id
        while at is not None and len(found) < _LONGEST_CHAIN and (one := await self.get(owner, at)) is not None:
            found.append(one)
            at = one.parent
        return found[::-1]

    async def delete(self, owner: str, id: str) -> bool:  # noqa: A002 the protocol's
        """See `AnswerStore`."""
        return self._remove((owner, id))

    async def close(self) -> None:
        """Nothing is held that others could use."""

    def _remove(self, place: tuple[str, str]) -> bool:
        found = self._answers.pop(place, None)
        if found is None:
            return False
        data, keys = found
        self._bytes -= len(data)
        for key in keys:
            ids = self._by_key[place[0], key]
            ids.pop(place[1], None)
            if not ids:
                del self._by_key[place[0], key]
        return True


_ANSWERED = msgspec.json.Decoder(Answered)
