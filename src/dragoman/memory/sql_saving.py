"""Writes batches of messages into a database, in few statements, inside the caller's
transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import msgspec
from sqlalchemy import Connection, bindparam, delete, exists, func, insert, select, update

from dragoman.errors import HistoryError
from dragoman.json_bytes import Json
from dragoman.memory.sql_quotes import forget_quotes, write_quotes
from dragoman.memory.sql_reading import (
    THREAD_COLUMNS,
    dump_date,
    dump_spans,
    load_thread_row,
    select_branches,
    span_condition,
)
from dragoman.memory.sql_tables import attachments, bodies, branches, files, messages, threads
from dragoman.memory.store import Batch
from dragoman.memory.stored_message import Packed, digest_data, to_microseconds
from dragoman.memory.thread import Branch, Span, Thread, find_spans
from dragoman.memory.thread_rules import change_thread
from dragoman.sql.engine import DIALECTS
from dragoman.sql.prepared import PreparedStatement

__all__ = ["delete_messages", "delete_thread", "save"]

T = TypeVar("T")
_TIME_COLUMNS = ("updated_at", "changed_at")
_CHUNK_SIZE = 500
"""Values in one statement; databases limit them."""


class Statements(NamedTuple):
    """The statements of every batch. Built once, because building one costs as much as running
    it."""

    make: PreparedStatement
    """Creates a thread if it does not exist."""
    take: PreparedStatement
    """Locks and reads a thread, and reserves positions."""
    write: PreparedStatement
    """Updates a thread."""
    bodies: PreparedStatement
    """Writes bodies that are missing."""
    files: PreparedStatement
    """Writes file contents that are missing."""
    attachments: PreparedStatement
    """Links bodies to their files."""
    messages: PreparedStatement
    """Writes messages, skipping those whose ids their branch already has."""
    replace: PreparedStatement
    """Replaces messages at their positions."""


@cache
def _make_statements(dialect: str) -> Statements:
    """Builds the SQL statements that write a thread, for one dialect."""
    insert_into = DIALECTS[dialect].insert
    body = select(bodies.c.body_id).where(bodies.c.digest == bindparam("_digest")).scalar_subquery()
    is_thread = threads.c.thread_id == bindparam("_thread_id")
    thread_columns = (
        "resource_id",
        "title",
        "metadata",
        "updated_at",
        "changed_at",
        "branch",
        "trimmed",
    )
    key_values: Json = {
        name: bindparam(f"_{name}") for name in ("thread_id", "position", "branch", "message_id")
    }
    other_values: Json = {
        "body_id": body,
        **{name: bindparam(f"_{name}") for name in ("created_at", "made_at", "turn")},
    }
    make = insert_into(threads).on_conflict_do_nothing().returning(threads.c.thread_id)
    take = (
        update(threads)
        .where(is_thread)
        .values(
            end=threads.c.end + bindparam("_count"),
            **{name: bindparam(f"_{name}") for name in _TIME_COLUMNS},
        )
        .returning(*THREAD_COLUMNS, threads.c.end)
    )
    write = (
        update(threads)
        .where(is_thread)
        .values({name: bindparam(f"_{name}") for name in thread_columns})
    )
    attach = insert_into(attachments).values(
        body_id=body, number=bindparam("_number"), digest=bindparam("_file")
    )
    replace = (
        update(messages)
        .where(
            messages.c.thread_id == key_values["thread_id"],
            messages.c.position == key_values["position"],
        )
        .values(other_values)
    )
    return Statements(
        PreparedStatement(make, columns=threads.c.keys()),
        PreparedStatement(take),
        PreparedStatement(write),
        PreparedStatement(
            insert_into(bodies).on_conflict_do_nothing(),
            columns=("digest", "body", "text", "files", "embedded"),
        ),
        PreparedStatement(insert_into(files).on_conflict_do_nothing(), columns=("digest", "data")),
        PreparedStatement(attach.on_conflict_do_nothing()),
        PreparedStatement(
            insert_into(messages).values({**key_values, **other_values}).on_conflict_do_nothing()
        ),
        PreparedStatement(replace),
    )


def save(connection: Connection, batch: Batch, parts: Sequence[Packed]) -> Thread:
    """Saves a batch by SQL and returns the thread. `parts`: the stored form of each message.

    Raises:
        HistoryError: see `Store.save`.
    """
    statements = _make_statements(connection.dialect.name)
    thread, end, stored_thread = _take_positions(connection, statements, batch)
    spans = (Span(0, None),)
    if thread.branch or batch.after is not None or batch.change.branch is not None:
        branches_by_number = select_branches(connection, thread.id)
        spans = find_spans(thread.id, thread.branch, branches_by_number)
        if (
            branch := _begin_branch(connection, thread, branches_by_number, spans, batch)
        ) is not None:
            row = {
                "thread_id": thread.id,
                **msgspec.structs.asdict(branch),
                "created_at": dump_date(batch.at),
            }
            connection.execute(insert(branches), row)
            thread = msgspec.structs.replace(thread, branch=branch.number)
            spans = find_spans(
                thread.id, branch.number, branches_by_number | {branch.number: branch}
            )
    if thread != stored_thread:
        statements.write.write(connection, [_thread_row(thread)])
    if batch.messages:
        _write_bodies(connection, statements, parts)
        first = end - len(parts) + 1
        rows: list[Json] = [
            {
                "_thread_id": thread.id,
                "_position": first + number,
                "_branch": thread.branch,
                "_message_id": message.id,
                "_created_at": dump_date(message.created_at),
                "_made_at": to_microseconds(message.created_at or batch.at),
                "_turn": message.turn,
                "_digest": row["digest"],
            }
            for number, (message, (row, _)) in enumerate(zip(batch.messages, parts, strict=True))
        ]
        _write_messages(connection, statements, rows, spans)
    if batch.quotes:
        _delete_unused(connection, write_quotes(connection, thread.id, batch.quotes))
    return thread


def _write_messages(
    connection: Connection,
    statements: Statements,
    rows: Sequence[Json],
    spans: tuple[Span, ...],
) -> None:
    """Saves messages by SQL at their positions; a visible message with the same id is replaced."""
    shown_rows: Json = {}
    if len(spans) > 1:  # a message of another branch may have the place: no index tells of it
        shown_rows = _find_shown(connection, rows, spans)
    new_rows = [row for row in rows if row["_message_id"] not in shown_rows]
    if new_rows and statements.messages.write(connection, new_rows) != len(new_rows):
        shown_rows = _find_shown(connection, rows, spans)
    replaced_rows = [
        {**row, "_position": shown.position, "_body_id": shown.body_id}
        for row in rows
        if (shown := shown_rows.get(row["_message_id"])) and shown.position != row["_position"]
    ]
    if replaced_rows:
        statements.replace.write(connection, replaced_rows)
        _release_bodies(connection, [row["_body_id"] for row in replaced_rows])


def delete_thread(connection: Connection, thread_id: str) -> bool:
    """Deletes by SQL a thread and all content that no other thread uses. Returns False if it does
    not exist."""
    # Locked first, so that no other process appends to the thread meanwhile.
    lock = select(threads.c.thread_id).where(threads.c.thread_id == thread_id).with_for_update()
    if connection.execute(lock).first() is None:
        return False
    statement = (
        delete(messages).where(messages.c.thread_id == thread_id).returning(messages.c.body_id)
    )
    body_ids = connection.execute(statement).scalars().all()
    connection.execute(delete(threads).where(threads.c.thread_id == thread_id))
    _release_bodies(connection, body_ids)
    return True


def delete_messages(
    connection: Connection, thread_id: str, ids: Sequence[str], at: datetime
) -> int:
    """Deletes by SQL messages of a thread from all branches. Returns how many."""
    body_ids: list[int] = []
    for chunk in _split_chunks(ids):
        statement = delete(messages).where(
            messages.c.thread_id == thread_id, messages.c.message_id.in_(chunk)
        )
        body_ids += connection.execute(statement.returning(messages.c.body_id)).scalars().all()
    if body_ids:
        times = {"updated_at": dump_date(at), "changed_at": to_microseconds(at)}
        connection.execute(update(threads).where(threads.c.thread_id == thread_id).values(times))
        _release_bodies(connection, body_ids)
    return len(body_ids)


def _take_positions(
    connection: Connection, statements: Statements, batch: Batch
) -> tuple[Thread, int, Thread]:
    """Locks the thread's SQL row and reserves positions for a batch. Returns the thread as it is to
    be, the last reserved position, and the thread as it is stored now."""
    times = {"_updated_at": dump_date(batch.at), "_changed_at": to_microseconds(batch.at)}
    reserved = {"_thread_id": batch.thread_id, "_count": len(batch.messages), **times}
    row = statements.take.row(connection, reserved)
    if row is not None:
        stored_thread = load_thread_row(row)
        return change_thread(batch, stored_thread), row.end, stored_thread
    thread = change_thread(batch, None)
    columns = {name.removeprefix("_"): value for name, value in _thread_row(thread).items()}
    new_row = {**columns, "created_at": dump_date(batch.at), "end": 0}
    is_new = statements.make.row(connection, new_row) is not None
    row = statements.take.rows(connection, reserved)[0]
    stored_thread = load_thread_row(row)
    # Another process may have created the thread meanwhile: its rules then apply to this batch.
    if not is_new:
        thread = change_thread(batch, stored_thread)
    return thread, row.end, stored_thread


def _thread_row(thread: Thread) -> Json:
    """Returns a thread as parameters of the SQL statements that save it."""
    return {
        "_thread_id": thread.id,
        "_resource_id": thread.resource_id,
        "_title": thread.title,
        "_metadata": msgspec.json.encode(thread.metadata).decode(),
        "_updated_at": dump_date(thread.updated_at),
        "_changed_at": to_microseconds(thread.updated_at),
        "_branch": thread.branch,
        "_trimmed": thread.trimmed,
    }


def _begin_branch(
    connection: Connection,
    thread: Thread,
    branches_by_number: dict[int, Branch],
    spans: tuple[Span, ...],
    batch: Batch,
) -> Branch | None:
    """Saves by SQL the new branch that a batch begins and returns it, or None if it continues the
    visible one."""
    if batch.after is None:
        return None
    span_parameters = dump_spans(thread.id, spans)
    is_shown = span_condition(span_parameters)
    statement = select(messages.c.position, messages.c.branch).where(is_shown)
    fork = connection.execute(
        statement.where(messages.c.message_id == bindparam("after")),
        {**span_parameters, "after": batch.after},
    ).first()
    if fork is None and batch.after:
        raise HistoryError(
            f'the thread "{thread.id}" shows no message "{batch.after}" to go on from'
        )
    parent, position = 0, None
    if fork is not None:
        parent, position = fork.branch, fork.position
    latest = select(func.max(messages.c.position)).where(is_shown)
    # The fork is the last visible message (or both are none): nothing follows it, so no branch.
    if connection.execute(latest, span_parameters).scalar() == position:
        return None
    number = max(branches_by_number, default=0) + 1
    return Branch(number=number, parent=parent, position=position or 0, created_at=batch.at)


def _find_shown(connection: Connection, rows: Sequence[Json], spans: tuple[Span, ...]) -> Json:
    """Returns from SQL the visible messages that have the ids of these rows, by id."""
    span_parameters = dump_spans(rows[0]["_thread_id"], spans)
    statement = _shown_statement(frozenset(span_parameters))
    rows_by_id: Json = {}
    for ids in _split_chunks([row["_message_id"] for row in rows]):
        for row in connection.execute(statement, {**span_parameters, "ids": ids}):
            rows_by_id[row.message_id] = row
    return rows_by_id


@cache
def _shown_statement(names: frozenset[str]) -> Any:
    """Returns the SQL statement that finds visible messages by id."""
    columns = (messages.c.message_id, messages.c.position, messages.c.body_id)
    has_id = messages.c.message_id.in_(bindparam("ids", expanding=True))
    return select(*columns).where(span_condition(names), has_id)


def _write_bodies(connection: Connection, statements: Statements, parts: Sequence[Packed]) -> None:
    """Saves by SQL bodies and their files, sorted by digest so that two processes rarely block each
    other."""
    parts_by_digest = {
        row["digest"]: (row, attached) for row, attached in sorted(parts, key=_part_digest)
    }
    statements.bodies.write(connection, [row for row, _ in parts_by_digest.values()])
    data = {
        digest_data(item): item for _, attached in parts_by_digest.values() for item in attached
    }
    if not data:
        return
    rows = [{"digest": digest, "data": data[digest]} for digest in sorted(data)]
    statements.files.write(connection, rows)
    uses = [
        {"_digest": digest, "_number": number, "_file": digest_data(item)}
        for digest, (_, attached) in parts_by_digest.items()
        for number, item in enumerate(attached)
    ]
    statements.attachments.write(connection, uses)


def _part_digest(part: Packed) -> bytes:
    """Returns the digest of a packed message."""
    return part[0]["digest"]


def _release_bodies(connection: Connection, body_ids: Sequence[int]) -> None:
    """Deletes by SQL what is left of bodies whose messages were deleted or replaced: lines of memos
    that quote them, and those that no message uses."""
    unused = [*body_ids]
    for chunk in _split_chunks(sorted({*body_ids})):
        unused += forget_quotes(connection, chunk)
    _delete_unused(connection, unused)


def _delete_unused(connection: Connection, body_ids: Sequence[int]) -> None:
    """Deletes by SQL those of these bodies that no message uses, and the files that no body uses
    afterwards."""
    for chunk in _split_chunks(sorted({*body_ids})):
        unused = bodies.c.body_id.in_(chunk) & ~exists().where(
            messages.c.body_id == bodies.c.body_id
        )
        digests = (
            select(attachments.c.digest)
            .distinct()
            .join(bodies, bodies.c.body_id == attachments.c.body_id)
        )
        data = connection.execute(digests.where(unused)).scalars().all()
        connection.execute(delete(bodies).where(unused))
        for digest_chunk in _split_chunks(data):
            is_unused = files.c.digest.in_(digest_chunk) & ~exists().where(
                attachments.c.digest == files.c.digest
            )
            connection.execute(delete(files).where(is_unused))


def _split_chunks(values: Sequence[T]) -> Iterator[list[T]]:
    """Yields the values of an SQL statement in lists of at most `_CHUNK_SIZE`."""
    iterator = iter(values)
    while chunk := list(islice(iterator, _CHUNK_SIZE)):
        yield chunk
