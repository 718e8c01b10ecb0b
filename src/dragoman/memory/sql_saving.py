"""Messages written into a database: a batch, in few statements, in the transaction of whoever
calls."""

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
from dragoman.memory.changing import change_thread
from dragoman.memory.packing import Packed, digest_data, to_microseconds
from dragoman.memory.sql_reading import (
    THREAD,
    branches_of,
    date,
    of_spans,
    span_values,
    thread_of,
)
from dragoman.memory.sql_tables import attachments, bodies, branches, files, messages, threads
from dragoman.memory.store import Batch
from dragoman.memory.thread import Branch, Span, Thread, path
from dragoman.sql.engine import DIALECTS

__all__ = ["delete_messages", "delete_thread", "save"]

T = TypeVar("T")
_WHEN = ("updated_at", "changed_at")
_CHUNK = 500
"""Values in one statement; databases bound them."""


class Statements(NamedTuple):
    """Those of every batch, made once, since making one costs as much as running it."""

    make: Any
    """Makes a thread that is not there."""
    take: Any
    """Locks and reads a thread, and takes positions."""
    write: Any
    """Writes a thread."""
    bodies: Any
    """Writes bodies that are not there."""
    files: Any
    """The same for bytes."""
    attachments: Any
    """Which bytes a body has."""
    messages: Any
    """Writes messages that branch 0 does not have by their ids; the others it leaves out."""
    replace: Any
    """Writes messages in place of others."""


@cache
def _statements(dialect: str) -> Statements:
    put = DIALECTS[dialect].insert
    body = select(bodies.c.body_id).where(bodies.c.digest == bindparam("_digest")).scalar_subquery()
    own = threads.c.thread_id == bindparam("_thread_id")
    written = ("resource_id", "title", "metadata", "updated_at", "changed_at", "branch", "trimmed")
    held: Json = {
        name: bindparam(f"_{name}") for name in ("thread_id", "position", "branch", "message_id")
    }
    new: Json = {
        "body_id": body,
        **{name: bindparam(f"_{name}") for name in ("created_at", "made_at", "turn")},
    }
    return Statements(
        put(threads).on_conflict_do_nothing().returning(threads.c.thread_id),
        update(threads)
        .where(own)
        .values(
            end=threads.c.end + bindparam("_count"),
            **{name: bindparam(f"_{name}") for name in _WHEN},
        )
        .returning(*THREAD, threads.c.end),
        update(threads).where(own).values({name: bindparam(f"_{name}") for name in written}),
        put(bodies).on_conflict_do_nothing(),
        put(files).on_conflict_do_nothing(),
        put(attachments)
        .values(body_id=body, number=bindparam("_number"), digest=bindparam("_file"))
        .on_conflict_do_nothing(),
        put(messages)
        .values({**held, **new})
        .on_conflict_do_nothing()
        .execution_options(preserve_rowcount=True),
        update(messages)
        .where(messages.c.thread_id == held["thread_id"], messages.c.position == held["position"])
        .values(new),
    )


def save(connection: Connection, batch: Batch, parts: Sequence[Packed]) -> Thread:
    """Writes a batch → the thread. `parts`: of each message its parts.

    Raises:
        HistoryError: see `Store.save`.
    """
    statements = _statements(connection.dialect.name)
    thread, end, written = _taken(connection, statements, batch)
    spans = (Span(0, None),)
    if thread.branch or batch.after is not None or batch.change.branch is not None:
        known = branches_of(connection, thread.id)
        spans = path(thread.id, thread.branch, known)
        if (branch := _branch(connection, thread, known, spans, batch)) is not None:
            row = {
                "thread_id": thread.id,
                **msgspec.structs.asdict(branch),
                "created_at": date(batch.at),
            }
            connection.execute(insert(branches), row)
            thread = msgspec.structs.replace(thread, branch=branch.number)
            spans = path(thread.id, branch.number, known | {branch.number: branch})
    if thread != written:
        connection.execute(statements.write, _thread_row(thread))
    if batch.messages:
        _write_bodies(connection, statements, parts)
        first = end - len(parts) + 1
        rows: list[Json] = [
            {
                "_thread_id": thread.id,
                "_position": first + number,
                "_branch": thread.branch,
                "_message_id": message.id,
                "_created_at": date(message.created_at),
                "_made_at": to_microseconds(message.created_at or batch.at),
                "_turn": message.turn,
                "_digest": row["digest"],
            }
            for number, (message, (row, _)) in enumerate(zip(batch.messages, parts, strict=True))
        ]
        _write_messages(connection, statements, rows, spans)
    return thread


def _write_messages(
    connection: Connection,
    statements: Statements,
    rows: Sequence[Json],
    spans: tuple[Span, ...],
) -> None:
    """Writes messages at their positions, or in place of those of their ids that the thread
    shows."""
    there: Json = {}
    if len(spans) > 1:  # a message of another branch may have the place: no index tells of it
        there = _there(connection, rows, spans)
    new = [row for row in rows if row["_message_id"] not in there]
    if new and connection.execute(statements.messages, new).rowcount != len(new):
        there = _there(connection, rows, spans)
    old = [
        {**row, "_position": shown.position, "_body_id": shown.body_id}
        for row in rows
        if (shown := there.get(row["_message_id"])) and shown.position != row["_position"]
    ]
    if old:
        connection.execute(statements.replace, old)
        _sweep(connection, [row["_body_id"] for row in old])


def delete_thread(connection: Connection, thread_id: str) -> bool:
    """Deletes a thread with all that no other has → whether there was one."""
    take = select(threads.c.thread_id).where(threads.c.thread_id == thread_id).with_for_update()
    if connection.execute(take).first() is None:
        return False
    gone = delete(messages).where(messages.c.thread_id == thread_id).returning(messages.c.body_id)
    held = connection.execute(gone).scalars().all()
    connection.execute(delete(threads).where(threads.c.thread_id == thread_id))
    _sweep(connection, held)
    return True


def delete_messages(
    connection: Connection, thread_id: str, ids: Sequence[str], at: datetime
) -> int:
    """Deletes messages of a thread → how many."""
    held: list[int] = []
    for some in _chunks(ids):
        gone = delete(messages).where(
            messages.c.thread_id == thread_id, messages.c.message_id.in_(some)
        )
        held += connection.execute(gone.returning(messages.c.body_id)).scalars().all()
    if held:
        changed = {"updated_at": date(at), "changed_at": to_microseconds(at)}
        connection.execute(update(threads).where(threads.c.thread_id == thread_id).values(changed))
        _sweep(connection, held)
    return len(held)


def _taken(
    connection: Connection, statements: Statements, batch: Batch
) -> tuple[Thread, int, Thread]:
    """Locks the thread and takes positions in it. Returns the thread as it is to be, the last
    position that is given now, and the thread as it is written by now."""
    when = {"_updated_at": date(batch.at), "_changed_at": to_microseconds(batch.at)}
    take = {"_thread_id": batch.thread_id, "_count": len(batch.messages), **when}
    row = connection.execute(statements.take, take).first()
    if row is not None:
        written = thread_of(row)
        return change_thread(batch, written), row.end, written
    thread = change_thread(batch, None)
    first = {name.removeprefix("_"): value for name, value in _thread_row(thread).items()}
    values = {**first, "created_at": date(batch.at), "end": 0}
    is_new = connection.execute(statements.make, values).first() is not None
    row = connection.execute(statements.take, take).one()
    written = thread_of(row)
    return (thread if is_new else change_thread(batch, written)), row.end, written


def _thread_row(thread: Thread) -> Json:
    return {
        "_thread_id": thread.id,
        "_resource_id": thread.resource_id,
        "_title": thread.title,
        "_metadata": msgspec.json.encode(thread.metadata).decode(),
        "_updated_at": date(thread.updated_at),
        "_changed_at": to_microseconds(thread.updated_at),
        "_branch": thread.branch,
        "_trimmed": thread.trimmed,
    }


def _branch(
    connection: Connection,
    thread: Thread,
    known: dict[int, Branch],
    spans: tuple[Span, ...],
    batch: Batch,
) -> Branch | None:
    """Returns the branch that begins; `None`: none does."""
    if batch.after is None:
        return None
    shown = span_values(thread.id, spans)
    of_shown = of_spans(shown)
    place = select(messages.c.position, messages.c.branch).where(of_shown)
    at = connection.execute(
        place.where(messages.c.message_id == bindparam("after")), {**shown, "after": batch.after}
    ).first()
    if at is None and batch.after:
        raise HistoryError(
            f'the thread "{thread.id}" shows no message "{batch.after}" to go on from'
        )
    latest = select(func.max(messages.c.position)).where(of_shown)
    last = connection.execute(latest, shown).scalar()
    if last == (None if at is None else at.position):
        return None
    parent, position = (0, 0) if at is None else (at.branch, at.position)
    return Branch(
        number=max(known, default=0) + 1, parent=parent, position=position, created_at=batch.at
    )


def _there(connection: Connection, rows: Sequence[Json], spans: tuple[Span, ...]) -> Json:
    """Returns the messages with the ids of these rows that the thread shows, by id."""
    shown = span_values(rows[0]["_thread_id"], spans)
    statement = _shown_messages(frozenset(shown))
    found: Json = {}
    for ids in _chunks([row["_message_id"] for row in rows]):
        for row in connection.execute(statement, {**shown, "ids": ids}):
            found[row.message_id] = row
    return found


@cache
def _shown_messages(names: frozenset[str]) -> Any:
    columns = (messages.c.message_id, messages.c.position, messages.c.body_id)
    wanted = messages.c.message_id.in_(bindparam("ids", expanding=True))
    return select(*columns).where(of_spans(names), wanted)


def _write_bodies(connection: Connection, statements: Statements, parts: Sequence[Packed]) -> None:
    """In the order of their digests, so that two processes wait for each other seldom."""
    own = {row["digest"]: (row, attached) for row, attached in sorted(parts, key=_digest)}
    connection.execute(statements.bodies, [row for row, _ in own.values()])
    data = {digest_data(item): item for _, attached in own.values() for item in attached}
    if not data:
        return
    rows = [{"digest": digest, "data": data[digest]} for digest in sorted(data)]
    connection.execute(statements.files, rows)
    uses = [
        {"_digest": digest, "_number": number, "_file": digest_data(item)}
        for digest, (_, attached) in own.items()
        for number, item in enumerate(attached)
    ]
    connection.execute(statements.attachments, uses)


def _digest(part: Packed) -> bytes:
    return part[0]["digest"]


def _sweep(connection: Connection, held: Sequence[int]) -> None:
    """Deletes those of these bodies that no message has, and the bytes that no body has then."""
    for some in _chunks(sorted({*held})):
        unused = bodies.c.body_id.in_(some) & ~exists().where(
            messages.c.body_id == bodies.c.body_id
        )
        own = (
            select(attachments.c.digest)
            .distinct()
            .join(bodies, bodies.c.body_id == attachments.c.body_id)
        )
        data = connection.execute(own.where(unused)).scalars().all()
        connection.execute(delete(bodies).where(unused))
        for each in _chunks(data):
            lost = files.c.digest.in_(each) & ~exists().where(
                attachments.c.digest == files.c.digest
            )
            connection.execute(delete(files).where(lost))


def _chunks(values: Sequence[T]) -> Iterator[list[T]]:
    each = iter(values)
    while some := list(islice(each, _CHUNK)):
        yield some
