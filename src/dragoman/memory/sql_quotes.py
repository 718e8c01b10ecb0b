"""Which body each line of a memo quotes, and what becomes of the line when that is deleted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, Executable, bindparam, delete, or_, select, update

from dragoman.memory.memo_text import remove_lines
from dragoman.memory.sql_tables import bodies, messages, quotes, threads
from dragoman.memory.store import Quote
from dragoman.memory.stored_message import pack
from dragoman.message import Message
from dragoman.sql.engine import DIALECTS

__all__ = ["forget_quotes", "write_quotes"]


class _Place(NamedTuple):
    """Where a memo stands."""

    thread_id: str
    position: int
    memo_id: int
    """The id of its body."""


def write_quotes(connection: Connection, thread_id: str, several: Sequence[Quote]) -> list[int]:
    """Writes into the SQL tables what the memos of a batch quote. Lines whose message was deleted
    meanwhile go. Returns ids of bodies that no message may use any more."""
    lost: defaultdict[_Place, set[int]] = defaultdict(set)
    statement = _insert_quotes(connection)
    for quote in several:
        memo = connection.execute(
            select(messages.c.thread_id, messages.c.position, messages.c.body_id).where(
                messages.c.thread_id == thread_id, messages.c.message_id == quote.memo_id
            )
        ).first()
        if memo is None:
            continue
        quoted = connection.execute(
            select(messages.c.body_id).where(
                messages.c.thread_id == quote.thread_id, messages.c.position == quote.position
            )
        ).scalar()
        if quoted is None:
            lost[_Place(*memo)].add(quote.line)
            continue
        row = {"memo_id": memo.body_id, "line": quote.line, "body_id": quoted}
        connection.execute(statement, row)
    return _rewrite_memos(connection, lost)


def forget_quotes(connection: Connection, body_ids: Sequence[int]) -> list[int]:
    """Removes from the memos in the SQL tables the lines that quote these bodies, unless the memo's
    owner has another message with the body. Call it once the messages are deleted. Returns ids of
    bodies that no message may use any more."""
    lines: defaultdict[_Place, set[int]] = defaultdict(set)
    rows = connection.execute(_SELECT_QUOTES, {"body_ids": body_ids}).all()
    # Equal texts share a body, so another message may still say what the line quotes.
    for row in rows:
        values = {"body_id": row.body_id, "thread_id": row.thread_id, "owner": row.resource_id}
        if connection.execute(_SELECT_OTHER, values).first() is None:
            lines[_Place(row.thread_id, row.position, row.memo_id)].add(row.line)
    return _rewrite_memos(connection, lines)


def _rewrite_memos(connection: Connection, lines: dict[_Place, set[int]]) -> list[int]:
    """Rewrites memos in SQL without the lines that quote; one that has no other goes."""
    for memo_row, numbers in lines.items():
        is_memo = (
            messages.c.thread_id == memo_row.thread_id,
            messages.c.position == memo_row.position,
        )
        body = connection.execute(
            select(bodies.c.body).where(bodies.c.body_id == memo_row.memo_id)
        ).scalar_one()
        # Read and written here, in the transaction that deletes what was quoted.
        memo = remove_lines(Message.from_json(body), numbers)
        if memo is None:
            connection.execute(delete(messages).where(*is_memo))
            continue
        changed = _write_memo(connection, memo, memo_row.memo_id, numbers)
        connection.execute(update(messages).where(*is_memo).values(body_id=changed))
    return [memo_row.memo_id for memo_row in lines]


def _write_memo(connection: Connection, memo: Message, former_id: int, removed: set[int]) -> int:
    """Writes the SQL rows of a memo that lost lines: its body, and what its other lines quote.
    Returns its id."""
    row, _ = pack(memo)
    connection.execute(
        DIALECTS[connection.dialect.name].insert(bodies).on_conflict_do_nothing(), row
    )
    memo_id = connection.execute(
        select(bodies.c.body_id).where(bodies.c.digest == row["digest"])
    ).scalar_one()
    former = connection.execute(
        select(quotes.c.line, quotes.c.body_id).where(quotes.c.memo_id == former_id)
    )
    remaining = [
        {
            "memo_id": memo_id,
            "line": line - sum(number < line for number in removed),
            "body_id": body_id,
        }
        for line, body_id in former
        if line not in removed
    ]
    if remaining:
        connection.execute(_insert_quotes(connection), remaining)
    return memo_id


def _insert_quotes(connection: Connection) -> Executable:
    """Returns the statement that notes quotes."""
    return DIALECTS[connection.dialect.name].insert(quotes).on_conflict_do_nothing()


_SELECT_QUOTES = (
    select(
        quotes.c.memo_id,
        quotes.c.line,
        quotes.c.body_id,
        messages.c.thread_id,
        messages.c.position,
        threads.c.resource_id,
    )
    .join(messages, messages.c.body_id == quotes.c.memo_id)
    .join(threads, threads.c.thread_id == messages.c.thread_id)
    .where(quotes.c.body_id.in_(bindparam("body_ids", expanding=True)))
    .order_by(messages.c.thread_id, messages.c.position)
)
_SELECT_OTHER = (
    select(messages.c.position)
    .join(threads, threads.c.thread_id == messages.c.thread_id)
    .where(
        messages.c.body_id == bindparam("body_id"),
        or_(
            threads.c.thread_id == bindparam("thread_id"),
            threads.c.resource_id == bindparam("owner"),
        ),
    )
    .limit(1)
)
"""A message of the owner, or of the thread, that has a body."""
