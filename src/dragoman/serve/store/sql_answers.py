"""Kept answers in SQLite or Postgres."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import takewhile
from time import time_ns
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, delete, exists, func, insert, literal, select, tuple_

from dragoman.errors import StoreError
from dragoman.serve.http.limits import check_conversation
from dragoman.serve.store.answers import TaskPage, TaskQuery
from dragoman.serve.store.decoded_answers import DecodedAnswers
from dragoman.serve.store.records import Answered
from dragoman.serve.store.sql_tables import MIGRATIONS, answers, keys, push_configs
from dragoman.serve.store.sql_tasks import (
    delete_push,
    forget_push,
    microseconds,
    read_push,
    read_task,
    read_tasks,
    save_push,
    task_columns,
)
from dragoman.sql.database import Database

__all__ = ["SqlAnswers"]

_LONGEST_CHAIN = 10_000
_PRUNED = 500
"""Answers that are forgotten in one transaction."""
_MOST_WAITING = 64 * 1024 * 1024
_LONGEST_KEY = 400
"""Characters of a key that is kept as it is."""
_AT_ONCE = 500
"""Answers that one statement reads."""
_TRIES = 3
"""How often a conversation is read again of which something was replaced meanwhile."""


class SqlAnswers:
    """An `AnswerStore` in a database, which processes may share."""

    def __init__(self, url: str) -> None:
        """`url`: as in `open_answers`. Nothing is opened before the first use."""
        self._database = Database(url, MIGRATIONS, name="store of answers", failure=StoreError)
        self._decoded = DecodedAnswers()
        self._waiting = 0
        """Bytes that are to be written."""

    async def save(self, answered: Answered, keys: Sequence[str] = ()) -> None:
        """See `AnswerStore`. Who stops waiting does not stop the writing, so that what waits for a file that is locked is bounded."""
        body = msgspec.json.encode(answered)
        if self._waiting and self._waiting + len(body) > _MOST_WAITING:
            raise StoreError(
                "the store of answers has as much to write as it may: it is slow, or locked by another process"
            )
        self._waiting += len(body)
        writing = asyncio.ensure_future(self._write(answered, body, keys))
        writing.add_done_callback(_note_failure)
        await asyncio.shield(writing)

    async def _write(self, answered: Answered, body: bytes, keys: Sequence[str]) -> None:
        try:
            await self._database.write(lambda connection: _save(connection, answered, body, keys))
        finally:
            self._waiting -= len(body)

    async def get(self, owner: str, id: str) -> Answered | None:  # noqa: A002 the protocol's
        """See `AnswerStore`."""
        same = (answers.c.owner == owner, answers.c.answer_id == _sendable(id))
        wanted = select(answers.c.number, answers.c.body).where(*same)
        return self._one(
            await self._database.read(lambda connection: connection.execute(wanted).first())
        )

    async def find(self, owner: str, keys: Iterable[str]) -> Answered | None:
        """See `AnswerStore`."""
        wanted = [_key(key) for key in keys]
        return self._one(
            await self._database.read(lambda connection: _found(connection, owner, wanted))
        )

    async def chain(self, owner: str, id: str, *, most_bytes: int | None = None) -> list[Answered]:  # noqa: A002 the protocol's
        """See `AnswerStore`. Only what was not read before is read whole."""
        found = await self._database.read(
            lambda connection: _chain(connection, owner, _sendable(id), self._decoded, most_bytes)
        )
        return [self._decoded.of(number, data) for number, data in reversed(found)]

    async def delete(self, owner: str, id: str) -> bool:  # noqa: A002 the protocol's
        """See `AnswerStore`."""
        return bool(
            await self._database.write(
                lambda connection: _deleted(connection, owner, _sendable(id))
            )
        )

    async def prune(self, before: datetime) -> int:
        """See `AnswerStore`. So many at a time that others come between."""
        count, time = 0, microseconds(before)
        while gone := await self._database.write(lambda connection: _pruned(connection, time)):
            count += gone
        is_old = push_configs.c.created_at < time  # a younger one's task may be about to begin
        await self._database.write(lambda connection: forget_push(connection, is_old))
        return count

    async def task(self, owner: str, task_id: str) -> list[Answered]:
        """See `AnswerStore`."""
        rows = await self._database.read(
            lambda connection: read_task(connection, owner, _sendable(task_id))
        )
        return [self._decoded.of(*row) for row in rows]

    async def tasks(self, owner: str, wanted: TaskQuery) -> TaskPage:
        """See `AnswerStore`."""
        thread = None if wanted.thread is None else _key(wanted.thread)
        found, total = await self._database.read(
            lambda connection: read_tasks(connection, owner, wanted, thread)
        )
        page = [(number, self._decoded.of(number, body)) for number, body in found[: wanted.most]]
        return TaskPage(page, total, more=len(found) > len(page))

    async def save_push(self, owner: str, task_id: str, config: Mapping[str, Any]) -> None:
        """See `AnswerStore`."""
        now = datetime.now(UTC)
        await self._database.write(
            lambda connection: save_push(connection, owner, task_id, config, now)
        )

    async def push_configs(self, owner: str, task_id: str) -> list[dict[str, Any]]:
        """See `AnswerStore`."""
        return await self._database.read(
            lambda connection: read_push(connection, owner, _sendable(task_id))
        )

    async def delete_push(self, owner: str, task_id: str, id: str) -> None:  # noqa: A002 the protocol's
        """See `AnswerStore`."""
        task, one = _sendable(task_id), _sendable(id)
        await self._database.write(lambda connection: delete_push(connection, owner, task, one))

    async def close(self) -> None:
        """See `AnswerStore`."""
        await self._database.close()

    def _one(self, row: Row[Any, Any] | None) -> Answered | None:
        return None if row is None else self._decoded.of(*row)


def _note_failure(writing: asyncio.Future[None]) -> None:
    if not writing.cancelled():
        writing.exception()  # else the loop reports it where nobody waits any more


def _save(connection: Connection, answered: Answered, body: bytes, given: Sequence[str]) -> None:
    same = (answers.c.owner == answered.owner, answers.c.answer_id == answered.id)
    known = connection.execute(select(answers.c.number).where(*same)).scalar()
    kept: list[str] = []
    if known is not None:
        kept = list(connection.execute(select(keys.c.key).where(keys.c.number == known)).scalars())
        connection.execute(delete(answers).where(*same))
    values = {
        "owner": answered.owner,
        "answer_id": answered.id,
        "parent": answered.parent,
        "created_at": microseconds(answered.created_at),
        "body": body,
        **task_columns(answered, _key(answered.thread_id or "")),
    }
    if connection.dialect.name == "sqlite":
        values["number"] = _next_number(connection)
    number = connection.execute(
        insert(answers).values(values).returning(answers.c.number)
    ).scalar_one()
    sendable = [_key(key) for key in given if _sendable(key) == key]
    rows = [
        {"owner": answered.owner, "key": key, "number": number}
        for key in dict.fromkeys([*kept, *sendable])
    ]
    if rows:
        connection.execute(insert(keys), rows)


def _next_number(connection: Connection) -> int:
    """A number that no answer has had. SQLite would give that of the latest one again once it was deleted, and processes
    know answers that they have read by their numbers. The time goes on when the greatest number does not."""
    greatest = connection.execute(select(func.max(answers.c.number))).scalar() or 0
    return max(greatest + 1, time_ns() // 1000)


def _found(connection: Connection, owner: str, wanted: Sequence[str]) -> Row[Any, Any] | None:
    for key in wanted:
        latest = (
            select(answers.c.number, answers.c.body)
            .join(keys, keys.c.number == answers.c.number)
            .where(keys.c.owner == owner, keys.c.key == key)
            .order_by(keys.c.number.desc())
            .limit(1)
        )
        if (row := connection.execute(latest).first()) is not None:
            return row
    return None


def _deleted(connection: Connection, owner: str, id: str) -> bool:  # noqa: A002 what it is
    gone = (
        delete(answers)
        .where(answers.c.owner == owner, answers.c.answer_id == id)
        .returning(answers.c.task)
    )
    row = connection.execute(gone).first()
    if row is not None and row.task is not None:
        forget_push(connection, push_configs.c.owner == owner, push_configs.c.task == row.task)
    return row is not None


def _pruned(connection: Connection, before: int) -> int:
    """Forgets some answers from which none goes on, and then those that they went on from → how many."""
    later = answers.alias("later")
    goes_on = exists().where(
        later.c.owner == answers.c.owner, later.c.parent == answers.c.answer_id
    )
    old = select(answers.c.number, answers.c.owner, answers.c.parent).where(
        answers.c.created_at < before, ~goes_on
    )
    count, leaves = 0, connection.execute(old.limit(_PRUNED)).all()
    while leaves:
        connection.execute(
            delete(answers).where(answers.c.number.in_([number for number, _, _ in leaves]))
        )
        count += len(leaves)
        parents = [(owner, parent) for _, owner, parent in leaves if parent is not None]
        if not parents or count >= _PRUNED:
            break
        of_these = tuple_(answers.c.owner, answers.c.answer_id).in_(parents)
        leaves = connection.execute(old.where(of_these).limit(_PRUNED - count)).all()
    return count


def _chain(
    connection: Connection,
    owner: str,
    id: str,  # noqa: A002 what it is
    known: DecodedAnswers,
    most_bytes: int | None,
) -> list[tuple[int, bytes | Answered]]:
    """An answer and those that it goes on from, the latest first; as JSON those that are not known."""
    first = (
        select(
            answers.c.number,
            answers.c.parent,
            func.length(answers.c.body).label("size"),
            literal(1).label("depth"),
        )
        .where(answers.c.owner == owner, answers.c.answer_id == id)
        .cte("chain", recursive=True)
    )
    before = select(
        answers.c.number,
        answers.c.parent,
        func.length(answers.c.body),
        (first.c.depth + 1).label("depth"),
    ).where(
        answers.c.owner == owner,
        answers.c.answer_id == first.c.parent,
        first.c.depth < _LONGEST_CHAIN,
    )
    chain = first.union_all(before)
    wanted = select(chain.c.number, chain.c.size).order_by(chain.c.depth)
    bodies = select(answers.c.number, answers.c.body)
    found: dict[int, bytes | Answered | None] = {}
    for _ in range(_TRIES):
        rows = connection.execute(wanted).all()
        check_conversation(sum([size for _, size in rows]), most_bytes)
        found = {number: found.get(number) or known.get(number) for number, _ in rows}
        numbers = [number for number, body in found.items() if body is None]
        for start in range(0, len(numbers), _AT_ONCE):
            some = answers.c.number.in_(numbers[start : start + _AT_ONCE])
            found.update(
                [(number, body) for number, body in connection.execute(bodies.where(some))]
            )
        if None not in found.values():
            break
    there = takewhile(lambda each: each[1] is not None, found.items())
    return [(number, body) for number, body in there if body is not None]


def _key(text: str) -> str:
    """A key as one that an index of Postgres takes, which has room for 2,704 bytes."""
    text = _sendable(text)
    if len(text) <= _LONGEST_KEY:
        return text
    return f"{text[:_LONGEST_KEY]}#{blake2b(text.encode(), digest_size=16).hexdigest()}"


def _sendable(id: str) -> str:  # noqa: A002 what it is
    """An id that a client made up, as one that databases take: Postgres has no NUL, and no text has half of a pair of surrogates."""
    text = id.encode("utf-8", "replace").decode()
    return "" if "\0" in text else text
