"""Puts the conversation that was merged with a client's copy into the rows and the system messages
of a `MessageList`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from dragoman.history.add import ReplacedBranch
from dragoman.history.client_copy import Changes
from dragoman.history.rows import Row, Rows
from dragoman.history.sources import Mint, microseconds, stamp
from dragoman.history.system_messages import Systems
from dragoman.message import Message, Role

__all__ = ["place_copy", "place_system"]

_INPUT = frozenset(["input"])


def place_copy(rows: Rows, changes: Changes, mint: Mint) -> tuple[Changes, ReplacedBranch | None]:
    """Puts the conversation merged with the client's copy into the rows. New and edited messages
    get an id and a time, and count as unsaved; the rest stays as it is.

    Returns the changes with these ids and times, and the branch that was replaced; `None` if the
    conversation only got longer.
    """
    if changes.branched is None:  # so that what was added is all that is behind the rows
        begin, start = len(changes.messages) - len(changes.added), len(rows)
    else:
        begin = changes.branched
        start = sum(message.role is not Role.SYSTEM for message in changes.messages[:begin])
    merged = [message for message in changes.messages[begin:] if message.role is not Role.SYSTEM]
    old = rows.between(start, len(rows))
    new_rows = _make_rows(merged, old, rows[start - 1] if start else None, mint)
    stamps = {id(message): row.message for message, row in zip(merged, new_rows, strict=True)}

    def with_stamps(messages: Iterable[Message]) -> tuple[Message, ...]:
        return tuple([stamps.get(id(message), message) for message in messages])

    changes = msgspec.structs.replace(
        changes,
        messages=(*changes.messages[:begin], *with_stamps(changes.messages[begin:])),
        added=with_stamps(changes.added),
        edited=with_stamps(changes.edited),
    )
    if not old:
        for row in new_rows:
            rows.append(row)
        return changes, None
    behind = rows[start - 1].message.id if start else None
    rows.splice(start, len(rows), new_rows)
    return changes, ReplacedBranch(behind, tuple([row.message for row in old]))


def _make_rows(
    messages: Sequence[Message], old_rows: Sequence[Row], before: Row | None, mint: Mint
) -> list[Row]:
    """Returns rows for messages merged with the client's copy: the old row of an untouched message,
    else a new one. `before`: the row that they follow."""
    by_message = {id(row.message): row for row in old_rows}
    by_id = {row.message.id: row for row in old_rows}
    rows: list[Row] = []
    for message in messages:
        row = by_message.get(id(message))
        if row is None:
            latest = before.message.created_at if before is not None else None
            row = _make_row(stamp(message, mint, latest), by_id.get(message.id))
        # Rows are sorted by their order, so an earlier time must not move a message back.
        if before is not None and row.order <= before.order:
            row = row._replace(order=before.order + 1)
        rows.append(row)
        before = row
    return rows


def _make_row(message: Message, edited: Row | None) -> Row:
    """Returns the row of a message of the client's copy. `edited`: the row that it replaces."""
    if edited is not None:
        return Row(message, edited.order, _INPUT, _INPUT | edited.origins)
    order = 0 if message.created_at is None else microseconds(message.created_at)
    return Row(message, order, _INPUT, _INPUT)


def place_system(systems: Systems, changes: Changes) -> None:
    """Replaces the system messages of a list by those that the client's copy leaves."""
    merged = {id(message) for message in changes.messages}
    systems.keep(lambda system: id(system.message) in merged)
    for message in changes.messages:
        if message.role is Role.SYSTEM:
            systems.add(message, None, -1)
