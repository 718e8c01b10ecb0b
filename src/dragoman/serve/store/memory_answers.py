"""Kept answers in this process.

Each owner has its answers in order of their latest change, with indexes by key and by task.
Answers are held as JSON, so that their size is known and no caller can change them. When there
are too many answers or bytes, the oldest answer of the largest owner goes, so that one owner
cannot displace the others. `_remove_answer` keeps indexes and totals right; every deletion uses it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import count
from typing import NamedTuple

import msgspec

from dragoman.arguments import wrong_type_error
from dragoman.json_bytes import Json, JsonMap
from dragoman.serve.http.limits import check_conversation
from dragoman.serve.store.answer_store import AnswerStore, NoAnswers, TaskPage, TaskQuery
from dragoman.serve.store.stored_answer import Answered, DecodedAnswers, Stage
from dragoman.sql.address import check_address

__all__ = ["open_answers", "MemoryAnswers"]

_MOST_ANSWERS = 10_000
_MOST_BYTES = 256 * 1024 * 1024
_LONGEST_CHAIN = 10_000


class _StoredAnswer(NamedTuple):
    """An answer as it is held."""

    number: int
    data: bytes
    keys: tuple[str, ...]
    parent: str | None
    created_at: datetime
    task: str | None
    thread: str | None
    stage: Stage
    updated_at: datetime


class _OwnerAnswers:
    """What one owner has."""

    def __init__(self) -> None:
        """Starts without stored answers of this owner."""
        self.answers: OrderedDict[str, _StoredAnswer] = OrderedDict()
        """The latest last."""
        self.by_key: dict[str, dict[str, None]] = {}
        """Key → ids, the latest last."""
        self.by_task: dict[str, dict[str, None]] = {}
        """The same of tasks; that with the latest change last."""
        self.bytes = 0


class MemoryAnswers:
    """Answers in this process. Beyond so many, or so many bytes, the oldest go of whoever has most:
    nobody drives others' out."""

    def __init__(self, *, most: int = _MOST_ANSWERS, most_bytes: int = _MOST_BYTES) -> None:
        """Creates the store. `most`: how many answers it holds. `most_bytes`: how many bytes of
        them, as JSON."""
        self._most, self._most_bytes = most, most_bytes
        self._shares: dict[str, _OwnerAnswers] = {}
        self._push: OrderedDict[tuple[str, str], dict[str, Json]] = OrderedDict()
        """Owner and task → where notifications go."""
        self._count = self._bytes = 0
        self._numbers, self._decoded = count(), DecodedAnswers()

    async def save(self, answered: Answered, keys: Sequence[str] = ()) -> None:
        """Saves an answer in memory. See `AnswerStore`."""
        share = self._shares.setdefault(answered.owner, _OwnerAnswers())
        before = share.answers.get(answered.id)
        all_keys = tuple(dict.fromkeys([*(before.keys if before else ()), *keys]))
        # Removed and added again, so that the latest state is also the latest in order.
        self._remove_answer(answered.owner, answered.id, replaced=True)
        # Held as JSON: that is what an answer weighs, and nobody can change it.
        data = msgspec.json.encode(answered)
        if len(data) > self._most_bytes:
            return
        share = self._shares.setdefault(answered.owner, share)
        number = next(self._numbers)
        self._decoded.keep(number, answered, len(data))
        share.answers[answered.id] = _StoredAnswer(
            number,
            data,
            all_keys,
            answered.parent,
            answered.created_at,
            answered.task_id,
            answered.thread_id,
            answered.stage,
            answered.updated_at or answered.created_at,
        )
        share.bytes += len(data)
        self._bytes += len(data)
        self._count += 1
        for key in all_keys:
            share.by_key.setdefault(key, {})[answered.id] = None
        if answered.task_id is not None:
            runs = share.by_task.pop(answered.task_id, {})
            share.by_task[answered.task_id] = {**runs, answered.id: None}
        while self._count > self._most:
            self._remove_oldest(
                max(self._shares, key=lambda owner: len(self._shares[owner].answers))
            )
        while self._bytes > self._most_bytes:
            self._remove_oldest(max(self._shares, key=lambda owner: self._shares[owner].bytes))

    async def get(self, owner: str, id: str) -> Answered | None:  # noqa: A002 the protocol's
        """Returns an answer from memory. See `AnswerStore`."""
        share = self._shares.get(owner)
        stored = None if share is None else share.answers.get(id)
        return None if stored is None else self._decode(stored)

    async def find(self, owner: str, keys: Iterable[str]) -> Answered | None:
        """Finds in memory the latest answer of a key. See `AnswerStore`."""
        if owner in self._shares:
            by_key = self._shares[owner].by_key
        else:
            by_key = {}
        ids = next((ids for key in keys if (ids := by_key.get(key))), None)
        if ids is None:
            return None
        return await self.get(owner, next(reversed(ids)))

    async def chain(self, owner: str, id: str, *, most_bytes: int | None = None) -> list[Answered]:  # noqa: A002 the protocol's
        """Returns a conversation's answers from memory. See `AnswerStore`."""
        answers = self._shares.get(owner, _OwnerAnswers()).answers
        stored: dict[str, _StoredAnswer] = {}
        next_id: str | None = id
        while next_id is not None and next_id not in stored and len(stored) < _LONGEST_CHAIN:
            if (answer := answers.get(next_id)) is None:
                break
            stored[next_id] = answer
            next_id = answer.parent
        check_conversation(sum([len(answer.data) for answer in stored.values()]), most_bytes)
        return [self._decode(answer) for answer in reversed(stored.values())]

    async def task(self, owner: str, task_id: str) -> list[Answered]:
        """See `AnswerStore`."""
        share = self._shares.get(owner, _OwnerAnswers())
        return [self._decode(share.answers[run]) for run in share.by_task.get(task_id, {})]

    async def tasks(self, owner: str, wanted: TaskQuery) -> TaskPage:
        """Returns a page of tasks from memory. See `AnswerStore`."""
        share = self._shares.get(owner, _OwnerAnswers())
        latest = [share.answers[next(reversed(runs))] for runs in reversed(share.by_task.values())]
        matches = sorted(
            [run for run in latest if _is_wanted(run, wanted)], key=lambda run: -run.number
        )
        after = [run for run in matches if wanted.after is None or run.number < wanted.after]
        page = [(run.number, self._decode(run)) for run in after[: wanted.most]]
        return TaskPage(page, len(matches), more=len(after) > len(page))

    async def save_push(self, owner: str, task_id: str, config: JsonMap) -> None:
        """Keeps a push configuration in memory. See `AnswerStore`."""
        self._push.setdefault((owner, task_id), {})[config["id"]] = dict(config)
        # Addresses go with their tasks, of which there are at most half as many.
        while len(self._push) > 2 * self._most:
            self._push.popitem(last=False)

    async def push_configs(self, owner: str, task_id: str) -> list[Json]:
        """See `AnswerStore`."""
        return [dict(config) for config in self._push.get((owner, task_id), {}).values()]

    async def delete_push(self, owner: str, task_id: str, id: str) -> None:  # noqa: A002 the protocol's
        """Drops a push configuration from memory. See `AnswerStore`."""
        configs = self._push.get((owner, task_id), {})
        configs.pop(id, None)
        if not configs:
            self._push.pop((owner, task_id), None)

    async def prune(self, before: datetime) -> int:
        """Drops old answers from memory. See `AnswerStore`."""
        count = self._count
        for owner, share in list(self._shares.items()):
            needed: set[str | None] = set()
            # Newest first: an answer comes before the one that it goes on from.
            for answer, stored in reversed(list(share.answers.items())):
                if stored.created_at >= before or answer in needed:
                    needed.add(stored.parent)
                else:
                    self._remove_answer(owner, answer)
        return count - self._count

    async def delete(self, owner: str, id: str) -> bool:  # noqa: A002 the protocol's
        """See `AnswerStore`."""
        return self._remove_answer(owner, id)

    async def close(self) -> None:
        """Closes the store, which holds nothing that must be released."""

    def _decode(self, stored: _StoredAnswer) -> Answered:
        return self._decoded.decode(stored.number, stored.data)

    def _remove_oldest(self, owner: str) -> None:
        self._remove_answer(owner, next(iter(self._shares[owner].answers)))

    def _remove_answer(self, owner: str, id: str, *, replaced: bool = False) -> bool:  # noqa: A002 what it is
        """Removes an answer from memory. Returns False if there was none."""
        share = self._shares.get(owner)
        if share is None:
            stored = None
        else:
            stored = share.answers.pop(id, None)
        if share is None or stored is None:
            return False
        share.bytes -= len(stored.data)
        self._bytes -= len(stored.data)
        self._count -= 1
        for key in stored.keys:
            ids = share.by_key[key]
            ids.pop(id, None)
            if not ids:
                del share.by_key[key]
        if stored.task is not None:
            self._leave_task(owner, share.by_task, stored.task, id, replaced=replaced)
        if not share.answers:
            del self._shares[owner]
        return True

    def _leave_task(
        self,
        owner: str,
        by_task: dict[str, dict[str, None]],
        task: str,
        run: str,
        *,
        replaced: bool,
    ) -> None:
        """Removes a run from its task, and with the task's last run its push configurations."""
        by_task[task].pop(run)
        if not by_task[task]:
            del by_task[task]
            if not replaced:
                self._push.pop((owner, task), None)


def _is_wanted(stored: _StoredAnswer, wanted: TaskQuery) -> bool:
    """Returns whether a stored answer matches a query for tasks."""
    return (
        wanted.thread in (None, stored.thread)
        and (wanted.stages is None or stored.stage in wanted.stages)
        and (wanted.since is None or stored.updated_at >= wanted.since)
    )


def open_answers(store: str | AnswerStore | None) -> AnswerStore:
    """Opens the store of a URL: `memory:`, `sqlite:///file` or `postgresql://…`. A store is
    returned as it is; for `None` a store that keeps nothing.

    Raises:
        SettingsError: the URL is of another kind, or a package is missing.
        TypeError: it is no store.
    """
    if store is None:
        return NoAnswers()
    if not isinstance(store, str):
        if not callable(getattr(store, "chain", None)):
            raise wrong_type_error(
                "store",
                store,
                "the URL of a database, or a store of answers",
                'give "memory:" or "sqlite:///FILE"',
            )
        return store
    if store == "memory:":
        return MemoryAnswers()
    check_address(store, "store of answers", "store of answers")
    from dragoman.serve.store.sql_answers import SqlAnswers

    return SqlAnswers(store)
