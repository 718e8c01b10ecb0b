"""Where a server keeps the answers that it gave: what such a store can do, one that keeps none, and
a store by its URL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

import msgspec

from dragoman.json_bytes import Json, JsonMap
from dragoman.serve.store.stored_answer import Answered, Stage

__all__ = ["AnswerStore", "NoAnswers", "TaskPage", "TaskQuery"]


class TaskQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which tasks are wanted; the latest change comes first."""

    thread: str | None = None
    """Id of the conversation; `None`: any."""
    stages: tuple[Stage, ...] | None = None
    """How far they are; `None`: anyhow."""
    since: datetime | None = None
    """When they changed, or later; `None`: whenever."""
    after: int | None = None
    """The place of the last one of the page before; `None`: from the first."""
    most: int = 50
    """Tasks of a page."""


class TaskPage(NamedTuple):
    """Some of the tasks that are wanted."""

    runs: list[tuple[int, Answered]]
    """Of each its place and its latest run."""
    total: int
    """How many are wanted, in all pages."""
    more: bool
    """Whether there are others after these."""


class AnswerStore(Protocol):
    """Keeps answers. Each is seen by its owner alone: to anybody else it is as if it were not
    there."""

    async def save(self, answered: Answered, keys: Sequence[str] = ()) -> None:
        """Stores an answer, in place of one with its id. `keys`: further keys to find it by."""
        ...

    async def get(self, owner: str, id: str) -> Answered | None:  # noqa: A002 what it is
        """Returns an answer by its id."""
        ...

    async def find(self, owner: str, keys: Iterable[str]) -> Answered | None:
        """Returns the latest answer under the first of these keys that has one."""
        ...

    async def chain(self, owner: str, id: str, *, most_bytes: int | None = None) -> list[Answered]:  # noqa: A002 what it is
        """Returns an answer and those that it goes on from, the oldest first, as far as they are
        kept; `[]` if there is none.

        Raises:
            ContextLengthError: together they have more than `most_bytes` as JSON.
        """
        ...

    async def task(self, owner: str, task_id: str) -> list[Answered]:
        """Returns the runs of a task, the oldest first; `[]` if there is none."""
        ...

    async def tasks(self, owner: str, wanted: TaskQuery) -> TaskPage:
        """Returns a page of an owner's tasks."""
        ...

    async def save_push(self, owner: str, task_id: str, config: JsonMap) -> None:
        """Stores an address for notifications of a task, in place of one with its `id`. It goes
        with the task."""
        ...

    async def push_configs(self, owner: str, task_id: str) -> list[Json]:
        """Returns all addresses of a task, the oldest first."""
        ...

    async def delete_push(self, owner: str, task_id: str, id: str) -> None:  # noqa: A002 what it is
        """Deletes an address."""
        ...

    async def prune(self, before: datetime) -> int:
        """Deletes answers that were given before a time, unless a later one goes on from them.
        Returns how many."""
        ...

    async def delete(self, owner: str, id: str) -> bool:  # noqa: A002 what it is
        """Takes an answer from its client: it cannot be asked for, and nothing goes on from it. →
        whether it was there."""
        ...

    async def close(self) -> None:
        """Releases what the store holds."""
        ...


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

    async def task(self, owner: str, task_id: str) -> list[Answered]:  # noqa: ARG002 the protocol's
        """See `AnswerStore`."""
        return []

    async def tasks(self, owner: str, wanted: TaskQuery) -> TaskPage:  # noqa: ARG002 the protocol's
        """See `AnswerStore`."""
        return TaskPage([], 0, more=False)

    async def save_push(self, owner: str, task_id: str, config: JsonMap) -> None:
        """See `AnswerStore`."""

    async def push_configs(self, owner: str, task_id: str) -> list[Json]:  # noqa: ARG002 the protocol's
        """See `AnswerStore`."""
        return []

    async def delete_push(self, owner: str, task_id: str, id: str) -> None:  # noqa: A002 the protocol's
        """See `AnswerStore`."""

    async def prune(self, before: datetime) -> int:  # noqa: ARG002 the protocol's
        """See `AnswerStore`."""
        return 0

    async def delete(self, owner: str, id: str) -> bool:  # noqa: A002, ARG002 the protocol's
        """See `AnswerStore`."""
        return False

    async def close(self) -> None:
        """See `AnswerStore`."""
