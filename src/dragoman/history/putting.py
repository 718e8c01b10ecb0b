"""The changes that a client's copy makes, as rows of a list."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.history.adding import Branch
from dragoman.history.changes import Changes
from dragoman.history.rows import Row, Rows
from dragoman.history.sources import Mint, microseconds, stamped
from dragoman.history.systems import Systems
from dragoman.message import Message, Role

__all__ = ["placed"]

_INPUT = frozenset(["input"])


def placed(rows: Rows, changes: Changes, mint: Mint) -> tuple[Changes, Branch | None]:
    """Puts the merged conversation into the rows: what is new or edited is to be saved, and gets an id and a time; the rest stays as it is.
    Returns the changes with these, and what stood there, where that is another one now."""
    merged = [message for message in changes.messages if message.role is not Role.SYSTEM]
    start = _alike(rows, merged)
    old = rows.between(start, len(rows))
    known = {id(row.message): row for row in old}
    by_id = {row.message.id: row for row in old}
    made: list[Row] = []
    before = rows[start - 1] if start else None
    for message in merged[start:]:
        row = known.get(id(message))
        if row is None:
            edited = by_id.get(message.id)
            new = stamped(message, mint, None if before is None else before.message.created_at)
            order = 0 if new.created_at is None else microseconds(new.created_at)
            row = Row(
                new,
                order if edited is None else edited.order,
                _INPUT,
                _INPUT | (edited.origins if edited else _INPUT),
            )
        if before is not None and row.order <= before.order:
            row = row._replace(order=before.order + 1)
        made.append(row)
        before = row
    stamps = {id(message): row.message for message, row in zip(merged[start:], made, strict=True)}
    changes = Changes(
        tuple([stamps.get(id(message), message) for message in changes.messages]),
        tuple([stamps.get(id(message), message) for message in changes.added]),
        tuple([stamps.get(id(message), message) for message in changes.edited]),
        changes.removed,
        changes.branched,
        changes.resumes,
    )
    if not old:
        for row in made:
            rows.append(row)
        return changes, None
    behind = rows[start - 1].message.id if start else None
    rows.splice(start, len(rows), made)
    return changes, Branch(behind, tuple([row.message for row in old]))


def place_system(systems: Systems, changes: Changes) -> None:
    """Puts the system messages of the merged conversation in the place of those that are there."""
    there = {id(message) for message in changes.messages}
    systems.keep(lambda each: id(each.message) in there)
    for message in changes.messages:
        if message.role is Role.SYSTEM:
            systems.add(message, None, -1)


def _alike(rows: Rows, merged: Sequence[Message]) -> int:
    """How many rows, from the first on, stay."""
    start = 0
    for row, message in zip(rows, merged, strict=False):
        if row.message is not message:
            break
        start += 1
    return start
