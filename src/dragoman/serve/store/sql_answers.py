"""Kept answers in SQLite or Postgres.

The methods of `SqlAnswers` clean ids that clients made up, and pass a function of a connection to
the `Database`, which runs it in a transaction. The functions below the class hold the SQL.

Each state of an answer has a number that is never used again, so that decoded answers can be
cached by number and the greatest number is the latest. `save` goes on if its caller is cancelled;
a limit on the bytes that wait to be written keeps a locked database from filling memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import takewhile
from time import time_ns
from typing import Any

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal,
    select,
    tuple_,
)

from dragoman import json_bytes
from dragoman.codec.json_values import if_object
from dragoman.errors import StoreError
from dragoman.json_bytes import Json, JsonMap
from dragoman.serve.http.limits import check_conversation
from dragoman.serve.store.answer_store import TaskPage, TaskQuery
from dragoman.serve.store.sql_tables import MIGRATIONS, answers, keys, push_configs
from dragoman.serve.store.stored_answer import Answered, DecodedAnswers
from dragoman.sql.database import Database
from dragoman.sql.engine import DIALECTS, SqlDialect

__all__ = ["SqlAnswers", "read_tasks"]

_LONGEST_CHAIN = 10_000
_PRUNED_AT_ONCE = 500
"""Answers that are forgotten in one transaction."""
_MOST_QUEUED_BYTES = 64 * 1024 * 1024
_LONGEST_KEY = 400
"""Characters of a key that is kept as it is."""
_ROWS_PER_READ = 500
"""Answers that one statement reads."""
_ATTEMPTS = 3
"""How often a conversation is read again of which something was replaced meanwhile."""

_SAME = (answers.c.owner == bindparam("of_owner"), answers.c.answer_id == bindparam("of_id"))
_TAKE_KEYS = (
    delete(keys)
    .where(keys.c.number == select(answers.c.number).where(*_SAME).scalar_subquery())
    .returning(keys.c.key)
)
_GREATEST = select(func.coalesce(func.max(answers.c.number), 0)).scalar_subquery()


def _insert_answer(dialect: SqlDialect, *, replaces: bool) -> Any:
    """Returns the statement that writes an answer, and gives its number; `replaces`: in the place
    of an earlier state of it, else only if there is none."""
    statement = dialect.insert(answers).returning(answers.c.number)
    if dialect is DIALECTS["sqlite"]:
        # A number that no answer has had: SQLite would give that of the latest one again once it
        # was deleted, and processes know answers that they have read by their numbers. The time
        # goes on when the greatest number does not.
        statement = statement.values(number=func.max(_GREATEST + 1, bindparam("least")))
    if not replaces:
        return statement.on_conflict_do_nothing()
    same = [answers.c.owner, answers.c.answer_id]
    written = {
        column.name: statement.excluded[column.name]
        for column in answers.c
        if column not in set(same)
    }
    return statement.on_conflict_do_update(index_elements=same, set_=written)


_INSERT = {name: _insert_answer(dialect, replaces=False) for name, dialect in DIALECTS.items()}
_REPLACE = {name: _insert_answer(dialect, replaces=True) for name, dialect in DIALECTS.items()}
_INSERT_KEYS = insert(keys)


class SqlAnswers:
    """An `AnswerStore` in a database, which processes may share."""

    def __init__(self, url: str) -> None:
        """Creates the store. `url`: as in `open_answers`. Nothing is opened before the first
        use."""
        self._database = Database(url, MIGRATIONS, name="store of answers", failure=StoreError)
        self._decoded = DecodedAnswers()
        self._queued_bytes = 0
        """Bytes that are to be written."""

    async def save(self, answered: Answered, keys: Sequence[str] = ()) -> None:
        """Saves an answer in SQL. See `AnswerStore`. Who stops waiting does not stop the writing,
        so that what waits for a file that is locked is bounded."""
        body = msgspec.json.encode(answered)
        if self._queued_bytes and self._queued_bytes + len(body) > _MOST_QUEUED_BYTES:
            raise StoreError(
                "the store of answers has as much to write as it may: it is slow, or locked by another process"
            )
        self._queued_bytes += len(body)
        writing = asyncio.ensure_future(self._write_answer(answered, body, keys))
        writing.add_done_callback(_note_failure)
        # A caller that stops waiting does not cancel the write.
        await asyncio.shield(writing)

    async def _write_answer(self, answered: Answered, body: bytes, keys: Sequence[str]) -> None:
        """Writes an answer, and releases the bytes that were counted for it."""
        try:
            number = await self._database.write(
                lambda connection: _save_answer_rows(connection, answered, body, keys)
            )
            self._decoded.keep(number, answered, len(body))
        finally:
            self._queued_bytes -= len(body)

    async def get(self, owner: str, id: str) -> Answered | None:  # noqa: A002 the protocol's
        """Reads an answer from SQL. See `AnswerStore`."""
        same = (answers.c.owner == owner, answers.c.answer_id == _clean_text(id))
        wanted = select(answers.c.number, answers.c.body).where(*same)
        return self._decode_row(
            await self._database.read(lambda connection: connection.execute(wanted).first())
        )

    async def find(self, owner: str, keys: Iterable[str]) -> Answered | None:
        """Finds the latest answer of a key in SQL. See `AnswerStore`."""
        wanted = [_bound_key(key) for key in keys]
        return self._decode_row(
            await self._database.read(
                lambda connection: _find_answer_row(connection, owner, wanted)
            )
        )

    async def chain(self, owner: str, id: str, *, most_bytes: int | None = None) -> list[Answered]:  # noqa: A002 the protocol's
        """Reads a conversation's answers from SQL. See `AnswerStore`. Only what was not read before
        is read whole."""
        rows = await self._database.read(
            lambda connection: _load_answer_chain(
                connection, owner, _clean_text(id), self._decoded, most_bytes
            )
        )
        return [self._decoded.decode(number, data) for number, data in reversed(rows)]

    async def delete(self, owner: str, id: str) -> bool:  # noqa: A002 the protocol's
        """Deletes an answer from SQL. See `AnswerStore`."""
        return bool(
            await self._database.write(
                lambda connection: _delete_answer(connection, owner, _clean_text(id))
            )
        )

    async def prune(self, before: datetime) -> int:
        """Deletes old answers from SQL. See `AnswerStore`. So many at a time that others come
        between."""
        count, time = 0, _microseconds(before)
        while gone := await self._database.write(lambda connection: _prune(connection, time)):
            count += gone
        # The task of a younger address may be about to begin.
        is_old = push_configs.c.created_at < time
        await self._database.write(lambda connection: _forget_push(connection, is_old))
        return count

    async def task(self, owner: str, task_id: str) -> list[Answered]:
        """Reads a task from SQL. See `AnswerStore`."""
        rows = await self._database.read(
            lambda connection: _read_task(connection, owner, _clean_text(task_id))
        )
        return [self._decoded.decode(*row) for row in rows]

    async def tasks(self, owner: str, wanted: TaskQuery) -> TaskPage:
        """Reads a page of tasks from SQL. See `AnswerStore`."""
        if wanted.thread is None:
            thread = None
        else:
            thread = _bound_key(wanted.thread)
        rows, total = await self._database.read(
            lambda connection: read_tasks(connection, owner, wanted, thread)
        )
        page = [
            (number, self._decoded.decode(number, body)) for number, body in rows[: wanted.most]
        ]
        return TaskPage(page, total, more=len(rows) > len(page))

    async def save_push(self, owner: str, task_id: str, config: JsonMap) -> None:
        """Stores a push configuration in SQL. See `AnswerStore`."""
        now = datetime.now(UTC)
        await self._database.write(
            lambda connection: _save_push(connection, owner, task_id, config, now)
        )

    async def push_configs(self, owner: str, task_id: str) -> list[Json]:
        """Reads push configurations from SQL. See `AnswerStore`."""
        return await self._database.read(
            lambda connection: _read_push(connection, owner, _clean_text(task_id))
        )

    async def delete_push(self, owner: str, task_id: str, id: str) -> None:  # noqa: A002 the protocol's
        """Deletes a push configuration from SQL. See `AnswerStore`."""
        task, config_id = _clean_text(task_id), _clean_text(id)
        await self._database.write(
            lambda connection: _delete_push(connection, owner, task, config_id)
        )

    async def close(self) -> None:
        """See `AnswerStore`."""
        await self._database.close()

    def _decode_row(self, row: Row[Any, Any] | None) -> Answered | None:
        return None if row is None else self._decoded.decode(*row)


def _note_failure(writing: asyncio.Future[None]) -> None:
    if not writing.cancelled():
        # Retrieved, else the event loop reports it once nobody waits any more.
        writing.exception()


def _save_answer_rows(
    connection: Connection, answered: Answered, body: bytes, wanted_keys: Sequence[str]
) -> int:
    """Inserts an answer and its keys, or updates them. Returns the answer's number."""
    values = {
        "owner": answered.owner,
        "answer_id": answered.id,
        "parent": answered.parent,
        "created_at": _microseconds(answered.created_at),
        "body": body,
        **_task_columns(answered, _bound_key(answered.thread_id or "")),
    }
    dialect = connection.dialect.name
    if dialect == "sqlite":
        values["least"] = time_ns() // 1000
    number: int | None = None
    old_keys: Sequence[str] = ()
    # What begins, and what no run makes, is hardly ever there: it is written without looking first.
    if answered.state == "in_progress" or answered.run_id is None:
        number = connection.execute(_INSERT[dialect], values).scalar()
    if number is None:
        same = {"of_owner": answered.owner, "of_id": answered.id}
        old_keys = connection.execute(_TAKE_KEYS, same).scalars().all()
        number = int(connection.execute(_REPLACE[dialect], values).scalar_one())
    sendable = [_bound_key(key) for key in wanted_keys if _clean_text(key) == key]
    if all_keys := dict.fromkeys([*old_keys, *sendable]):
        key_rows = [{"owner": answered.owner, "key": key, "number": number} for key in all_keys]
        connection.execute(_INSERT_KEYS, key_rows)
    return number


def _find_answer_row(
    connection: Connection, owner: str, wanted: Sequence[str]
) -> Row[Any, Any] | None:
    """Returns the row of the latest answer with one of the keys, in order of preference."""
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


def _delete_answer(connection: Connection, owner: str, id: str) -> bool:  # noqa: A002 what it is
    """Deletes an answer and its task's push configurations. Returns False if there was none."""
    gone = (
        delete(answers)
        .where(answers.c.owner == owner, answers.c.answer_id == id)
        .returning(answers.c.task)
    )
    row = connection.execute(gone).first()
    if row is not None and row.task is not None:
        _forget_push(connection, push_configs.c.owner == owner, push_configs.c.task == row.task)
    return row is not None


def _prune(connection: Connection, before: int) -> int:
    """Deletes old answers that no other continues, then those that they continued. Returns how
    many."""
    later = answers.alias("later")
    goes_on = exists().where(
        later.c.owner == answers.c.owner, later.c.parent == answers.c.answer_id
    )
    old = select(answers.c.number, answers.c.owner, answers.c.parent).where(
        answers.c.created_at < before, ~goes_on
    )
    count, leaves = 0, connection.execute(old.limit(_PRUNED_AT_ONCE)).all()
    while leaves:
        connection.execute(
            delete(answers).where(answers.c.number.in_([number for number, _, _ in leaves]))
        )
        count += len(leaves)
        parents = [(owner, parent) for _, owner, parent in leaves if parent is not None]
        if not parents or count >= _PRUNED_AT_ONCE:
            break
        of_these = tuple_(answers.c.owner, answers.c.answer_id).in_(parents)
        leaves = connection.execute(old.where(of_these).limit(_PRUNED_AT_ONCE - count)).all()
    return count


def _load_answer_chain(
    connection: Connection,
    owner: str,
    id: str,  # noqa: A002 what it is
    decoded: DecodedAnswers,
    most_bytes: int | None,
) -> list[tuple[int, bytes | Answered]]:
    """Returns an answer and those that it continues, the latest first, as JSON unless already
    decoded."""
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
    # Between the two statements an answer may be replaced under a new number, so it is tried
    # again.
    bodies_by_number: dict[int, bytes | Answered | None] = {}
    for _ in range(_ATTEMPTS):
        rows = connection.execute(wanted).all()
        check_conversation(sum([size for _, size in rows]), most_bytes)
        bodies_by_number = {
            number: bodies_by_number.get(number) or decoded.get(number) for number, _ in rows
        }
        numbers = [number for number, body in bodies_by_number.items() if body is None]
        for start in range(0, len(numbers), _ROWS_PER_READ):
            some = answers.c.number.in_(numbers[start : start + _ROWS_PER_READ])
            bodies_by_number.update(
                [(number, body) for number, body in connection.execute(bodies.where(some))]
            )
        if None not in bodies_by_number.values():
            break
    readable = takewhile(lambda item: item[1] is not None, bodies_by_number.items())
    return [(number, body) for number, body in readable if body is not None]


def _task_columns(answered: Answered, thread: str) -> Json:
    """Returns the columns that describe an answer's task. `thread`: its conversation, as it is
    kept."""
    if answered.task_id is None:
        return {}
    changed = _microseconds(answered.updated_at or answered.created_at)
    return {
        "task": answered.task_id,
        "thread": thread,
        "stage": answered.stage,
        "updated_at": changed,
    }


def _read_task(connection: Connection, owner: str, task_id: str) -> Sequence[Row[Any, Any]]:
    """Reads by SQL number and body of each stored run of a task."""
    runs = select(answers.c.number, answers.c.body).where(
        answers.c.owner == owner, answers.c.task == task_id
    )
    return connection.execute(runs.order_by(answers.c.number)).all()


def read_tasks(
    connection: Connection, owner: str, wanted: TaskQuery, thread: str | None
) -> tuple[Sequence[Row[Any, Any]], int]:
    """Returns a page of tasks, number and body of the latest run of each and of one more, and how
    many match in all."""
    newer = answers.alias("newer")
    goes_on = exists().where(
        newer.c.owner == answers.c.owner,
        newer.c.task == answers.c.task,
        newer.c.number > answers.c.number,
    )
    conditions: list[ColumnElement[bool]] = [
        answers.c.owner == owner,
        answers.c.task.is_not(None),
        ~goes_on,
    ]
    if thread is not None:
        conditions.append(answers.c.thread == thread)
    if wanted.stages is not None:
        conditions.append(answers.c.stage.in_(wanted.stages))
    if wanted.since is not None:
        conditions.append(answers.c.updated_at >= _microseconds(wanted.since))
    total = connection.execute(
        select(func.count()).select_from(answers).where(*conditions)
    ).scalar_one()
    if wanted.after is not None:
        conditions.append(answers.c.number < wanted.after)
    page = select(answers.c.number, answers.c.body).where(*conditions)
    return connection.execute(
        page.order_by(answers.c.number.desc()).limit(wanted.most + 1)
    ).all(), total


def _save_push(
    connection: Connection, owner: str, task_id: str, config: JsonMap, now: datetime
) -> None:
    """Keeps in SQL where notifications of a task go."""
    values = {
        "owner": owner,
        "task": task_id,
        "config_id": config["id"],
        "created_at": _microseconds(now),
    }
    connection.execute(delete(push_configs).where(_is_config(owner, task_id, config["id"])))
    connection.execute(insert(push_configs).values(**values, body=json_bytes.encode(dict(config))))


def _read_push(connection: Connection, owner: str, task_id: str) -> list[Json]:
    """Reads by SQL the push configurations of a task, the oldest first."""
    configs = select(push_configs.c.body).where(
        push_configs.c.owner == owner, push_configs.c.task == task_id
    )
    ordered = configs.order_by(push_configs.c.created_at, push_configs.c.config_id)
    return [
        dict(if_object(json_bytes.decode(body))) for body in connection.execute(ordered).scalars()
    ]


def _delete_push(connection: Connection, owner: str, task_id: str, config_id: str) -> None:
    """Forgets one."""
    connection.execute(delete(push_configs).where(_is_config(owner, task_id, config_id)))


def _forget_push(connection: Connection, *conditions: ColumnElement[bool]) -> None:
    """Deletes by SQL those of these push configurations whose task is gone."""
    is_there = exists().where(
        answers.c.owner == push_configs.c.owner, answers.c.task == push_configs.c.task
    )
    connection.execute(delete(push_configs).where(~is_there, *conditions))


def _is_config(owner: str, task_id: str, config_id: str) -> ColumnElement[bool]:
    """Returns the SQL condition for one push configuration of a task."""
    return and_(
        push_configs.c.owner == owner,
        push_configs.c.task == task_id,
        push_configs.c.config_id == config_id,
    )


def _microseconds(time: datetime) -> int:
    """Returns a time in microseconds since 1970, as a column holds it."""
    return int(time.timestamp() * 1_000_000)


def _bound_key(text: str) -> str:
    """Returns a key for an SQL index shortened by a digest to what an index of Postgres takes
    (2,704 bytes)."""
    text = _clean_text(text)
    if len(text) <= _LONGEST_KEY:
        return text
    return f"{text[:_LONGEST_KEY]}#{blake2b(text.encode(), digest_size=16).hexdigest()}"


def _clean_text(id: str) -> str:  # noqa: A002 what it is
    """Returns for an SQL column a client's id without characters that databases refuse: NUL and
    unpaired surrogates."""
    text = id.encode("utf-8", "replace").decode()
    return "" if "\0" in text else text
