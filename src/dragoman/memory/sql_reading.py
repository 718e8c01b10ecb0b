"""Reads threads and messages from a database.

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
from dragoman.memory.sql_tables import attachments, bodies, branches, files, messages, threads
from dragoman.memory.store import MessageQuery, ThreadQuery
from dragoman.memory.stored_message import to_microseconds, unpack
from dragoman.memory.thread import Branch, Span, StoredMessage, Thread, find_spans
from dragoman.memory.thread_rules import split_words
from dragoman.message import Message
from dragoman.sql.prepared import PreparedStatement

__all__ = [
    "THREAD_COLUMNS",
    "select_branches",
    "dump_date",
    "select_messages",
    "span_condition",
    "make_selection",
    "dump_spans",
    "load_thread_row",
    "select_threads",
]

THREAD_COLUMNS = tuple([column for column in threads.c if column.name not in ("changed_at", "end")])
"""The columns of a `Thread`."""
_MESSAGE_COLUMNS = (
    "thread_id",
    "position",
    "branch",
    "message_id",
    "created_at",
    "made_at",
    "turn",
    "body_id",
)
_CHUNK_SIZE = 500
_LAST_POSITION = 1 << 62
"""A position after all others."""
_READ_ATTEMPTS = 3
"""Attempts to read messages while another process deletes some of them."""


def dump_date(at: datetime | None) -> str | None:
    """Returns a date in its stored form, with its zone."""
    return None if at is None else at.isoformat()


def load_thread_row(row: Any) -> Thread:
    """Returns the thread in a row of `THREAD_COLUMNS`.

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


def select_threads(connection: Connection, query: ThreadQuery) -> list[Thread]:
    """Reads by SQL the threads that a query finds."""
    ids = query.ids or ()
    values = _without_none(
        {
            # One id is what every turn of a conversation asks for.
            "thread_id": ids[0] if len(ids) == 1 else None,
            "ids": [*ids] if len(ids) > 1 else None,
            "resource_id": query.resource_id,
            "limit": query.limit,
            "offset": query.offset or None,
        }
    )
    if query.ids is not None and not query.ids:
        return []
    selection = _thread_selection(frozenset(values), query.newest_first)
    if not query.metadata:
        return [load_thread_row(row) for row in selection.rows(connection, values)]
    statement = selection.statement
    for number, (name, value) in enumerate(query.metadata.items()):
        statement = statement.where(
            _metadata_condition(connection.dialect.name, number, name, value)
        )
    return [load_thread_row(row) for row in connection.execute(statement, values)]


@lru_cache(64)
def _thread_selection(names: frozenset[str], newest_first: bool) -> PreparedStatement:
    """Returns the SELECT statement for a thread query with parameters of these names."""
    statement = select(*THREAD_COLUMNS)
    if "thread_id" in names:
        statement = statement.where(threads.c.thread_id == bindparam("thread_id"))
    if "ids" in names:
        statement = statement.where(threads.c.thread_id.in_(bindparam("ids", expanding=True)))
    if "resource_id" in names:
        statement = statement.where(threads.c.resource_id == bindparam("resource_id"))
    order = (threads.c.changed_at, threads.c.thread_id)
    statement = statement.order_by(*[key.desc() for key in order] if newest_first else order)
    return PreparedStatement(_add_limit(statement, names))


def select_branches(connection: Connection, thread_id: str) -> dict[int, Branch]:
    """Reads by SQL the branches of a thread, by their numbers."""
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


def select_messages(connection: Connection, query: MessageQuery) -> list[StoredMessage]:
    """Reads by SQL the messages that a query finds."""
    if query.text is not None and not split_words(query.text):
        return []
    statement, values = make_selection(connection, query)
    rows: Sequence[Any] = ()
    data: Mapping[int, Sequence[bytes]] = {}
    # Files are read after their messages: one that was deleted meanwhile is missing then.
    for _ in range(_READ_ATTEMPTS):
        rows = statement.rows(connection, values)
        data = _load_files(connection, [row.body_id for row in rows if row.files])
        if all(len(data[row.body_id]) == row.files for row in rows):
            break
    return [_load_message(row, data[row.body_id], damaged=query.damaged) for row in rows]


def make_selection(
    connection: Connection, query: MessageQuery
) -> tuple[PreparedStatement, JsonMap]:
    """Returns the SELECT statement for a message query and the values of its parameters."""
    spans: JsonMap = {}
    if query.thread_id is not None:
        spans = dump_spans(query.thread_id, _find_spans(connection, query.thread_id, query.branch))
    by_position = query.ids is None and query.text is None
    after, before = query.after, query.before
    if query.thread_id is not None and query.limit is not None and by_position:
        # Between two bounds a database without statistics, too, goes along the index of the order.
        after, before = after or 0, before or _LAST_POSITION
    fields: Json = {
        "resource_id": query.resource_id,
        "after": after,
        "before": before,
        "limit": query.limit,
        "offset": query.offset or None,
    }
    if query.ids is not None:
        fields["ids"] = list(query.ids)
    if query.text is not None:
        fields["words"] = _quote_words(connection, query.text)
    if query.since is not None:
        fields["since"] = to_microseconds(query.since)
    if query.until is not None:
        fields["until"] = to_microseconds(query.until)
    values = {**spans, **_without_none(fields)}
    dialect = connection.dialect.name
    return _message_selection(dialect, frozenset(values), query.newest_first), values


@lru_cache(256)
def _message_selection(
    dialect: str, names: frozenset[str], newest_first: bool
) -> PreparedStatement:
    """Returns the SELECT statement for a message query with parameters of these names. Cached,
    because building one takes longer than running it.

    The rows are chosen before their bodies are joined, so that a database without statistics reads
    no more bodies than it gives.
    """
    rows = select(*[messages.c[name] for name in _MESSAGE_COLUMNS])
    if "thread_id" in names:
        rows = rows.where(span_condition(names))
    if "resource_id" in names:
        of_resource = threads.c.resource_id == bindparam("resource_id")
        rows = rows.join(threads, threads.c.thread_id == messages.c.thread_id).where(of_resource)
    conditions: Mapping[str, Callable[[], ColumnElement[bool]]] = {
        "ids": lambda: messages.c.message_id.in_(bindparam("ids", expanding=True)),
        "words": lambda: messages.c.body_id.in_(_select_bodies(dialect)),
        "after": lambda: messages.c.position > bindparam("after"),
        "before": lambda: messages.c.position < bindparam("before"),
        "since": lambda: messages.c.made_at >= bindparam("since"),
        "until": lambda: messages.c.made_at < bindparam("until"),
    }
    for name, condition in conditions.items():
        if name in names:
            rows = rows.where(condition())
    chosen = _add_limit(_add_order(rows, messages.c, names, newest_first), names).subquery("found")
    columns = select(*[chosen.c[name] for name in _MESSAGE_COLUMNS], bodies.c.body, bodies.c.files)
    joined = columns.join(bodies, bodies.c.body_id == chosen.c.body_id)
    return PreparedStatement(_add_order(joined, chosen.c, names, newest_first))


def span_condition(names: Collection[str]) -> ColumnElement[bool]:
    """Returns the SQL condition that a message is in the thread, and in one of its spans if there
    are names for spans. `names`: of the parameters, as `dump_spans` gives them."""
    in_thread = messages.c.thread_id == bindparam("thread_id")
    # A sum is looked up in no index: one that begins with the thread has all its rows.
    branch = messages.c.branch + literal_column("0")
    spans: list[ColumnElement[bool]] = []
    while (name := f"branch_{len(spans)}") in names:
        span = branch == bindparam(name)
        until = f"until_{len(spans)}"
        if until in names:
            span = and_(span, messages.c.position <= bindparam(until))
        spans.append(span)
    return and_(in_thread, or_(false(), *spans)) if spans else in_thread


def dump_spans(thread_id: str, spans: tuple[Span, ...] | None) -> Json:
    """Returns the SQL parameters of `span_condition`. `spans=None`: all branches of the thread."""
    values: Json = {"thread_id": thread_id}
    for number, span in enumerate(spans or ()):
        values[f"branch_{number}"] = span.branch
        if span.until is not None:
            values[f"until_{number}"] = span.until
    return values


def _find_spans(
    connection: Connection, thread_id: str, branch: int | None
) -> tuple[Span, ...] | None:
    """Reads by SQL the spans that a branch shows; None for all branches."""
    if branch is None:
        return None
    # Branch 0 has no parents: nothing need be read.
    branches = select_branches(connection, thread_id) if branch else {}
    return find_spans(thread_id, branch, branches)


def _add_order(
    statement: Select[Any], columns: Any, names: Collection[str], newest_first: bool
) -> Select[Any]:
    """Returns the SELECT statement with its order: by position in a thread, by time across
    threads."""
    order = ["position"]
    if "thread_id" not in names:
        order = ["made_at", "thread_id", "position"]
    keys = [columns[name] for name in order]
    if "ids" in names:  # SQLite would go along the order instead of looking the ids up
        keys[-1] += literal_column("0")
    return statement.order_by(*[key.desc() if newest_first else key for key in keys])


def _add_limit(statement: Select[Any], names: Collection[str]) -> Select[Any]:
    """Returns the SELECT statement with the limit and offset that the names contain."""
    if "limit" in names:
        statement = statement.limit(bindparam("limit", type_=Integer))
    if "offset" in names:
        statement = statement.offset(bindparam("offset", type_=Integer))
    return statement


def _without_none(values: JsonMap) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def _metadata_condition(dialect: str, number: int, name: str, value: Any) -> ColumnElement[bool]:
    """Returns the SQL condition that a thread's metadata has this value under this name."""
    if dialect == "postgresql":
        wanted = msgspec.json.encode({name: value}).decode()
        return text(f"dragoman_threads.metadata::jsonb @> CAST(:has_{number} AS jsonb)").bindparams(
            **{f"has_{number}": wanted}
        )  # pyright: ignore[reportReturnType]
    field = func.json_each(threads.c.metadata).table_valued(
        "key", "value", "type", name=f"each_{number}"
    )
    if value is None or isinstance(value, bool):
        is_same = field.c.type == {None: "null", True: "true", False: "false"}[value]
    else:
        # SQLite compares 1 and true, and 1 and "1", as equal: the JSON type must fit too.
        json_types = ("text",) if isinstance(value, str) else ("integer", "real")
        is_same = and_(field.c.type.in_(json_types), field.c.value == value)
    return select(field.c.key).select_from(field).where(field.c.key == name, is_same).exists()


def _quote_words(connection: Connection, words: str) -> str:
    """Returns the words of a text in the syntax of the database's search."""
    if connection.dialect.name == "postgresql":
        return " ".join(split_words(words))
    return " ".join([f'"{word}"' for word in split_words(words)])


def _select_bodies(dialect: str) -> Select[Any] | TextualSelect:
    """Returns the SELECT statement that finds bodies whose text contains the parameter `words`."""
    if dialect == "postgresql":
        # Materialized, so that the search runs first and once, by its index.
        vector = func.to_tsvector(literal_column("'simple'"), bodies.c.text)
        query = func.plainto_tsquery(literal_column("'simple'"), bindparam("words"))
        matched = (
            select(bodies.c.body_id)
            .where(vector.op("@@")(query))
            .cte("matched")
            .prefix_with("MATERIALIZED")
        )
        return select(matched.c.body_id)
    matched = text("SELECT rowid FROM dragoman_words WHERE dragoman_words MATCH :words")
    return matched.columns(bodies.c.body_id)


_SELECT_FILES = (
    select(attachments.c.body_id, files.c.data)
    .join(files, files.c.digest == attachments.c.digest)
    .where(attachments.c.body_id.in_(bindparam("body_ids", expanding=True)))
    .order_by(attachments.c.body_id, attachments.c.number)
)


def _load_files(connection: Connection, body_ids: Sequence[int]) -> defaultdict[int, list[bytes]]:
    """Reads by SQL the file contents of these bodies, in order, by body id."""
    files_by_body: defaultdict[int, list[bytes]] = defaultdict(list)
    unique_ids = sorted({*body_ids})
    for start in range(0, len(unique_ids), _CHUNK_SIZE):
        chunk = {"body_ids": unique_ids[start : start + _CHUNK_SIZE]}
        for body_id, data in connection.execute(_SELECT_FILES, chunk):
            files_by_body[body_id].append(bytes(data))
    return files_by_body


def _load_message(row: Any, data: Sequence[bytes], *, damaged: bool) -> StoredMessage:
    """Returns the message of an SQL row with its place. `damaged`: an unreadable one comes back
    empty, with its problem, instead of raising."""
    location: Json = {
        "thread_id": row.thread_id,
        "position": row.position,
        "branch": row.branch,
    }
    try:
        created_at = row.created_at and datetime.fromisoformat(row.created_at)
        message = unpack(
            row.body, data, message_id=row.message_id, created_at=created_at, turn=row.turn
        )
    except (HistoryError, ValueError, TypeError) as error:
        problem = (
            f'the message "{row.message_id}" of the thread "{row.thread_id}" is damaged in the store: {error}. '
            "Restore it from a backup, or delete it"
        )
        if not damaged:
            raise HistoryError(problem) from error
        return StoredMessage(
            message=Message.user().replace(id=row.message_id), problem=problem, **location
        )
    return StoredMessage(message=message, **location)
