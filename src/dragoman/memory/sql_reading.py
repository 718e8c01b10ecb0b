"""Threads and messages read from a database.

A statement is made once for the fields of a query that are given, and kept: its values are bound
parameters. So a query is first turned into named values, and their names choose the statement.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Select,
    and_,
    bindparam,
    false,
    func,
    literal_column,
    or_,
    select,
    text,
)
from sqlalchemy.sql.expression import TextualSelect

from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.memory.changing import split_words
from dragoman.memory.packing import to_microseconds, unpack
from dragoman.memory.sql_tables import attachments, bodies, branches, files, messages, threads
from dragoman.memory.store import MessageQuery, ThreadQuery
from dragoman.memory.thread import Branch, Span, StoredMessage, Thread, path
from dragoman.message import Message

__all__ = [
    "THREAD",
    "branches_of",
    "date",
    "messages_of",
    "of_spans",
    "selection",
    "span_values",
    "thread_of",
    "threads_of",
]

THREAD = tuple([column for column in threads.c if column.name not in ("changed_at", "end")])
"""The columns of a `Thread`."""
_COLUMNS = (
    "thread_id",
    "position",
    "branch",
    "message_id",
    "created_at",
    "made_at",
    "turn",
    "body_id",
)
_CHUNK = 500
_END = 1 << 62
"""A position behind all."""
_TRIES = 3
"""How often is read anew what somebody deleted in the middle of it."""


def date(at: datetime | None) -> str | None:
    """Returns a date as it is stored, with its zone."""
    return None if at is None else at.isoformat()


def thread_of(row: Any) -> Thread:
    """A row of `THREAD` → the thread.

    Raises:
        HistoryError: it is damaged.
    """
    try:
        return Thread(
            id=row.thread_id,
            resource_id=row.resource_id,
            title=row.title,
            metadata=msgspec.json.decode(row.metadata, type=Json),
            created_at=datetime.fromisoformat(row.created_at),
            updated_at=datetime.fromisoformat(row.updated_at),
            branch=row.branch,
            trimmed=row.trimmed,
        )
    except (ValueError, TypeError) as error:
        raise HistoryError(
            f'the thread "{row.thread_id}" is damaged in the store: {error}. Restore it from a backup, or delete it'
        ) from error


def threads_of(connection: Connection, wanted: ThreadQuery) -> list[Thread]:
    """Returns the threads that `Store.threads` is asked for."""
    values = _without_none(
        {
            "ids": wanted.ids and list(wanted.ids),
            "resource_id": wanted.resource_id,
            "limit": wanted.limit,
            "offset": wanted.offset or None,
        }
    )
    if wanted.ids is not None and not wanted.ids:
        return []
    statement = _thread_selection(frozenset(values), wanted.newest_first)
    for number, (name, value) in enumerate(wanted.metadata.items()):
        statement = statement.where(_has(connection.dialect.name, number, name, value))
    return [thread_of(row) for row in connection.execute(statement, values)]


@lru_cache(64)
def _thread_selection(names: frozenset[str], newest_first: bool) -> Select[Any]:
    """Returns the statement that finds threads by the parameters of these names."""
    statement = select(*THREAD)
    if "ids" in names:
        statement = statement.where(threads.c.thread_id.in_(bindparam("ids", expanding=True)))
    if "resource_id" in names:
        statement = statement.where(threads.c.resource_id == bindparam("resource_id"))
    order = (threads.c.changed_at, threads.c.thread_id)
    statement = statement.order_by(*[key.desc() for key in order] if newest_first else order)
    return _limited(statement, names)


def branches_of(connection: Connection, thread_id: str) -> dict[int, Branch]:
    """Returns the branches of a thread by their numbers."""
    rows = connection.execute(
        select(branches).where(branches.c.thread_id == thread_id).order_by(branches.c.number)
    )
    return {
        row.number: Branch(
            number=row.number,
            parent=row.parent,
            position=row.position,
            created_at=datetime.fromisoformat(row.created_at),
        )
        for row in rows
    }


def messages_of(connection: Connection, wanted: MessageQuery) -> list[StoredMessage]:
    """Returns the messages that `Store.messages` is asked for."""
    if wanted.text is not None and not split_words(wanted.text):
        return []
    statement, values = selection(connection, wanted)
    rows: Sequence[Any] = ()
    data: Mapping[int, Sequence[bytes]] = {}
    for _ in range(_TRIES):
        rows = connection.execute(statement, values).all()
        data = _data(connection, [row.body_id for row in rows if row.files])
        if all(len(data[row.body_id]) == row.files for row in rows):
            break
    return [_stored(row, data[row.body_id], damaged=wanted.damaged) for row in rows]


def selection(connection: Connection, wanted: MessageQuery) -> tuple[Select[Any], JsonMap]:
    """Returns the statement that finds messages, and the values of its parameters."""
    spans: JsonMap = {}
    if wanted.thread_id is not None:
        spans = span_values(wanted.thread_id, _spans(connection, wanted.thread_id, wanted.branch))
    by_place = wanted.ids is None and wanted.text is None
    after, before = wanted.after, wanted.before
    if wanted.thread_id is not None and wanted.limit is not None and by_place:
        # Between two bounds a database without statistics, too, goes along the index of the order.
        after, before = after or 0, before or _END
    found = {
        "resource_id": wanted.resource_id,
        "ids": None if wanted.ids is None else list(wanted.ids),
        "words": None if wanted.text is None else _quoted(connection, wanted.text),
        "after": after,
        "before": before,
        "since": None if wanted.since is None else to_microseconds(wanted.since),
        "until": None if wanted.until is None else to_microseconds(wanted.until),
        "limit": wanted.limit,
        "offset": wanted.offset or None,
    }
    values = {**spans, **_without_none(found)}
    dialect = connection.dialect.name
    return _message_selection(dialect, frozenset(values), wanted.newest_first), values


@lru_cache(256)
def _message_selection(dialect: str, names: frozenset[str], newest_first: bool) -> Select[Any]:
    """Returns the statement that finds messages by the parameters of these names; made once, since
    making one takes longer than running it.

    The rows are chosen before their bodies are joined, so that a database without statistics reads
    no more bodies than it gives.
    """
    rows = select(*[messages.c[name] for name in _COLUMNS])
    if "thread_id" in names:
        rows = rows.where(of_spans(names))
    if "resource_id" in names:
        of_resource = threads.c.resource_id == bindparam("resource_id")
        rows = rows.join(threads, threads.c.thread_id == messages.c.thread_id).where(of_resource)
    conditions: Mapping[str, Callable[[], ColumnElement[bool]]] = {
        "ids": lambda: messages.c.message_id.in_(bindparam("ids", expanding=True)),
        "words": lambda: messages.c.body_id.in_(_holding(dialect)),
        "after": lambda: messages.c.position > bindparam("after"),
        "before": lambda: messages.c.position < bindparam("before"),
        "since": lambda: messages.c.made_at >= bindparam("since"),
        "until": lambda: messages.c.made_at < bindparam("until"),
    }
    for name, condition in conditions.items():
        if name in names:
            rows = rows.where(condition())
    own = _limited(_ordered(rows, messages.c, names, newest_first), names).subquery("found")
    whole = select(*[own.c[name] for name in _COLUMNS], bodies.c.body, bodies.c.files)
    joined = whole.join(bodies, bodies.c.body_id == own.c.body_id)
    return _ordered(joined, own.c, names, newest_first)


def of_spans(names: Collection[str]) -> ColumnElement[bool]:
    """Returns the condition that a message is in one of a thread's spans; without the names of
    spans, that it is in the thread. `names`: of the parameters, as `span_values` has them."""
    own = messages.c.thread_id == bindparam("thread_id")
    # A sum is looked up in no index: one that begins with the thread has all its rows.
    branch = messages.c.branch + literal_column("0")
    spans: list[ColumnElement[bool]] = []
    while (name := f"branch_{len(spans)}") in names:
        span = branch == bindparam(name)
        until = f"until_{len(spans)}"
        spans.append(
            and_(span, messages.c.position <= bindparam(until)) if until in names else span
        )
    return and_(own, or_(false(), *spans)) if spans else own


def span_values(thread_id: str, spans: tuple[Span, ...] | None) -> Json:
    """Returns the parameters of `of_spans`. `spans=None`: the whole thread, whatever the branch."""
    values: Json = {"thread_id": thread_id}
    for number, span in enumerate(spans or ()):
        values[f"branch_{number}"] = span.branch
        if span.until is not None:
            values[f"until_{number}"] = span.until
    return values


def _spans(connection: Connection, thread_id: str, branch: int | None) -> tuple[Span, ...] | None:
    if branch is None:
        return None
    return path(thread_id, branch, branches_of(connection, thread_id) if branch else {})


def _ordered(
    statement: Select[Any], columns: Any, names: Collection[str], newest_first: bool
) -> Select[Any]:
    order = ("position",) if "thread_id" in names else ("made_at", "thread_id", "position")
    keys = [columns[name] for name in order]
    if "ids" in names:  # SQLite would go along the order instead of looking the ids up
        keys[-1] += literal_column("0")
    return statement.order_by(*[key.desc() if newest_first else key for key in keys])


def _limited(statement: Select[Any], names: Collection[str]) -> Select[Any]:
    if "limit" in names:
        statement = statement.limit(bindparam("limit", type_=Integer))
    if "offset" in names:
        statement = statement.offset(bindparam("offset", type_=Integer))
    return statement


def _without_none(values: JsonMap) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def _has(dialect: str, number: int, name: str, value: Any) -> ColumnElement[bool]:
    """That the metadata has this value under this name."""
    if dialect == "postgresql":
        wanted = msgspec.json.encode({name: value}).decode()
        return text(f"dragoman_threads.metadata::jsonb @> CAST(:has_{number} AS jsonb)").bindparams(
            **{f"has_{number}": wanted}
        )  # pyright: ignore[reportReturnType]
    each = func.json_each(threads.c.metadata).table_valued(
        "key", "value", "type", name=f"each_{number}"
    )
    if value is None or isinstance(value, bool):
        same = each.c.type == {None: "null", True: "true", False: "false"}[value]
    else:
        kinds = ("text",) if isinstance(value, str) else ("integer", "real")
        same = and_(each.c.type.in_(kinds), each.c.value == value)
    return select(each.c.key).select_from(each).where(each.c.key == name, same).exists()


def _quoted(connection: Connection, words: str) -> str:
    """Returns the words of a text as the database's search takes them."""
    if connection.dialect.name == "postgresql":
        return " ".join(split_words(words))
    return " ".join([f'"{word}"' for word in split_words(words)])


def _holding(dialect: str) -> Select[Any] | TextualSelect:
    """Returns the statement that finds the bodies whose text has the parameter `words`."""
    if dialect == "postgresql":
        own = func.to_tsvector(literal_column("'simple'"), bodies.c.text)
        query = func.plainto_tsquery(literal_column("'simple'"), bindparam("words"))
        matched = (
            select(bodies.c.body_id)
            .where(own.op("@@")(query))
            .cte("matched")
            .prefix_with("MATERIALIZED")
        )
        return select(matched.c.body_id)
    matched = text("SELECT rowid FROM dragoman_words WHERE dragoman_words MATCH :words")
    return matched.columns(bodies.c.body_id)


_DATA = (
    select(attachments.c.body_id, files.c.data)
    .join(files, files.c.digest == attachments.c.digest)
    .where(attachments.c.body_id.in_(bindparam("body_ids", expanding=True)))
    .order_by(attachments.c.body_id, attachments.c.number)
)


def _data(connection: Connection, body_ids: Sequence[int]) -> defaultdict[int, list[bytes]]:
    """Returns the bytes of these bodies' files, in order."""
    found: defaultdict[int, list[bytes]] = defaultdict(list)
    wanted = sorted({*body_ids})
    for start in range(0, len(wanted), _CHUNK):
        some = {"body_ids": wanted[start : start + _CHUNK]}
        for body_id, data in connection.execute(_DATA, some):
            found[body_id].append(bytes(data))
    return found


def _stored(row: Any, data: Sequence[bytes], *, damaged: bool) -> StoredMessage:
    place: Json = {
        "thread_id": row.thread_id,
        "position": row.position,
        "branch": row.branch,
    }
    try:
        made = None if row.created_at is None else datetime.fromisoformat(row.created_at)
        message = unpack(row.body, data, message_id=row.message_id, created_at=made, turn=row.turn)
    except (HistoryError, ValueError, TypeError) as error:
        problem = (
            f'the message "{row.message_id}" of the thread "{row.thread_id}" is damaged in the store: {error}. '
            "Restore it from a backup, or delete it"
        )
        if not damaged:
            raise HistoryError(problem) from error
        return StoredMessage(
            message=Message.user().replace(id=row.message_id), problem=problem, **place
        )
    return StoredMessage(message=message, **place)
