"""Threads and messages read from a database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    false,
    func,
    literal_column,
    or_,
    select,
    text,
)
from sqlalchemy.sql.expression import TextualSelect

from dragoman.errors import HistoryError
from dragoman.memory.changing import split_words
from dragoman.memory.packing import microseconds, unpacked
from dragoman.memory.path import Span, path
from dragoman.memory.sql_tables import attachments, bodies, branches, files, messages, threads
from dragoman.memory.store import MessageQuery, ThreadQuery
from dragoman.memory.thread import Branch, StoredMessage, Thread
from dragoman.message import Message

__all__ = [
    "THREAD",
    "branches_of",
    "date",
    "messages_of",
    "of_spans",
    "selection",
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
"""A position behind all. Between two bounds a database without statistics, too, goes along the index that has the order."""
_TRIES = 3
"""How often is read anew what somebody deleted in the middle of it."""


def date(at: datetime | None) -> str | None:
    """A date as it is stored, with its zone."""
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
            metadata=msgspec.json.decode(row.metadata, type=dict[str, Any]),
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
    """See `Store.threads`."""
    found = select(*THREAD)
    if wanted.ids is not None:
        found = found.where(threads.c.thread_id.in_(wanted.ids))
    if wanted.resource_id is not None:
        found = found.where(threads.c.resource_id == wanted.resource_id)
    for number, (name, value) in enumerate(wanted.metadata.items()):
        found = found.where(_has(connection.dialect.name, number, name, value))
    order = (threads.c.changed_at, threads.c.thread_id)
    found = found.order_by(*[each.desc() for each in order] if wanted.newest_first else order)
    return [
        thread_of(row) for row in connection.execute(_limited(found, wanted.offset, wanted.limit))
    ]


def branches_of(connection: Connection, thread_id: str) -> dict[int, Branch]:
    """The branches of a thread by their numbers."""
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
    """See `Store.messages`."""
    if wanted.text is not None and not split_words(wanted.text):
        return []
    for _ in range(_TRIES):
        rows = connection.execute(selection(connection, wanted)).all()
        data = _data(connection, [row.body_id for row in rows if row.files])
        if all(len(data[row.body_id]) == row.files for row in rows):
            break
    return [_stored(row, data[row.body_id], damaged=wanted.damaged) for row in rows]  # type: ignore[possibly-undefined]


def selection(connection: Connection, wanted: MessageQuery) -> Select[Any]:
    """The statement that finds messages. The rows are chosen before their bodies are joined, so that a database without statistics reads no
    more bodies than it gives."""
    found = select(*[messages.c[name] for name in _COLUMNS])
    at, place = messages.c.made_at, messages.c.position
    if wanted.thread_id is not None:
        spans = _spans(connection, wanted.thread_id, wanted.branch)
        found = found.where(of_spans(wanted.thread_id, spans))
    if wanted.resource_id is not None:
        of_resource = threads.c.resource_id == wanted.resource_id
        found = found.join(threads, threads.c.thread_id == messages.c.thread_id).where(of_resource)
    if wanted.ids is not None:
        found = found.where(messages.c.message_id.in_(wanted.ids))
    if wanted.text is not None:
        found = found.where(messages.c.body_id.in_(_holding(connection.dialect.name, wanted.text)))
    newest = (
        wanted.thread_id is not None
        and wanted.limit is not None
        and wanted.ids is None
        and wanted.text is None
    )
    after, before = (
        (wanted.after or 0, wanted.before or _END) if newest else (wanted.after, wanted.before)
    )
    if after is not None:
        found = found.where(place > after)
    if before is not None:
        found = found.where(place < before)
    if wanted.since is not None:
        found = found.where(at >= microseconds(wanted.since))
    if wanted.until is not None:
        found = found.where(at < microseconds(wanted.until))
    own = _limited(_ordered(found, messages.c, wanted), wanted.offset, wanted.limit).subquery(
        "found"
    )
    whole = select(*[own.c[name] for name in _COLUMNS], bodies.c.body, bodies.c.files)
    return _ordered(whole.join(bodies, bodies.c.body_id == own.c.body_id), own.c, wanted)


def of_spans(thread_id: str, spans: tuple[Span, ...] | None) -> ColumnElement[bool]:
    """Messages of a thread in these spans; `None`: in any."""
    own = messages.c.thread_id == thread_id
    if spans is None:
        return own
    branch = messages.c.branch + literal_column(
        "0"
    )  # a sum is looked up in no index: one that begins with the thread has all its rows
    each = [
        branch == span.branch
        if span.until is None
        else and_(branch == span.branch, messages.c.position <= span.until)
        for span in spans
    ]
    return and_(own, or_(false(), *each))


def _spans(connection: Connection, thread_id: str, branch: int | None) -> tuple[Span, ...] | None:
    if branch is None:
        return None
    return path(thread_id, branch, branches_of(connection, thread_id) if branch else {})


def _ordered(found: Select[Any], columns: Any, wanted: MessageQuery) -> Select[Any]:
    names = ("position",) if wanted.thread_id is not None else ("made_at", "thread_id", "position")
    keys = [columns[name] for name in names]
    if wanted.ids is not None:
        keys[-1] += literal_column(
            "0"
        )  # SQLite would go along the order instead of looking the ids up
    return found.order_by(*[key.desc() if wanted.newest_first else key for key in keys])


def _limited(found: Select[Any], offset: int, limit: int | None) -> Select[Any]:
    if limit is not None:
        found = found.limit(limit)
    return found.offset(offset) if offset else found


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


def _holding(dialect: str, words: str) -> Select[Any] | TextualSelect:
    """The bodies whose text has these words."""
    if dialect == "postgresql":
        own = func.to_tsvector(literal_column("'simple'"), bodies.c.text)
        query = func.plainto_tsquery(literal_column("'simple'"), " ".join(split_words(words)))
        found = (
            select(bodies.c.body_id)
            .where(own.op("@@")(query))
            .cte("matched")
            .prefix_with("MATERIALIZED")
        )
        return select(found.c.body_id)
    quoted = " ".join([f'"{word}"' for word in split_words(words)])
    matched = text(
        "SELECT rowid FROM dragoman_words WHERE dragoman_words MATCH :matched"
    ).bindparams(matched=quoted)
    return matched.columns(bodies.c.body_id)


def _data(connection: Connection, body_ids: Sequence[int]) -> defaultdict[int, list[bytes]]:
    """The bytes of these bodies' files, in order."""
    found: defaultdict[int, list[bytes]] = defaultdict(list)
    own = select(attachments.c.body_id, files.c.data).join(
        files, files.c.digest == attachments.c.digest
    )
    own = own.order_by(attachments.c.body_id, attachments.c.number)
    wanted = sorted({*body_ids})
    for start in range(0, len(wanted), _CHUNK):
        for body_id, data in connection.execute(
            own.where(attachments.c.body_id.in_(wanted[start : start + _CHUNK]))
        ):
            found[body_id].append(bytes(data))
    return found


def _stored(row: Any, data: Sequence[bytes], *, damaged: bool) -> StoredMessage:
    place: dict[str, Any] = {
        "thread_id": row.thread_id,
        "position": row.position,
        "branch": row.branch,
    }
    try:
        made = None if row.created_at is None else datetime.fromisoformat(row.created_at)
        message = unpacked(
            row.body, data, message_id=row.message_id, created_at=made, turn=row.turn
        )
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
