"""Reads and writes texts beside messages, inside the caller's transaction.

A write compares the version first and then writes on the condition that it is still the same. In
SQLite the transaction has locked the database. In Postgres the condition decides between two that
read the same version: the second one waits for the first, and writes nothing.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Table, and_, bindparam, select, update

from dragoman.errors import ConflictError
from dragoman.json_bytes import Json
from dragoman.memory.sql_reading import THREAD_COLUMNS, dump_date, load_thread_row
from dragoman.memory.sql_tables import resources, slots, threads
from dragoman.memory.store import Slot, SlotText
from dragoman.memory.thread import Thread
from dragoman.memory.thread_rules import check_slot
from dragoman.sql.engine import DIALECTS
from dragoman.sql.prepared import PreparedStatement

__all__ = ["read_slot", "write_slot"]


def read_slot(connection: Connection, slot: Slot) -> SlotText:
    """Reads by SQL the text in a slot, with version 0 if nothing was written."""
    table, key = _locate_slot(slot)
    row = _SELECTIONS[table.name].row(connection, key)
    return SlotText() if row is None else SlotText(row[0], row[1])


def write_slot(
    connection: Connection, slot: Slot, text: str, version: int | None, time: datetime
) -> SlotText:
    """Writes the text of a slot by SQL and returns it with its version. See `Store.write_slot`."""
    table, key = _locate_slot(slot)
    thread = _lock_thread(connection, slot)
    stored = read_slot(connection, slot).version
    check_slot(slot, thread, stored, version)
    values: Json = {
        _text_column(table): text,
        "version": stored + 1,
        "updated_at": dump_date(time),
    }
    # In Postgres another process may have written since: then no row is changed.
    if stored:
        is_same = [table.c[name] == value for name, value in key.items()]
        statement = update(table).where(*is_same, table.c.version == stored).values(values)
    else:
        insert_into = DIALECTS[connection.dialect.name].insert
        statement = insert_into(table).values({**key, **values}).on_conflict_do_nothing()
    written = connection.execute(statement.execution_options(preserve_rowcount=True))
    if written.rowcount != 1:
        raise ConflictError(f"the {slot.name} text was written meanwhile: read it again")
    return SlotText(text, stored + 1)


def _locate_slot(slot: Slot) -> tuple[Table, Json]:
    """Returns the table of a slot and the key of its row."""
    if slot.thread_id is None:
        return resources, {"resource_id": slot.resource_id}
    return slots, {"thread_id": slot.thread_id, "name": slot.name}


def _find_row(table: Table) -> ColumnElement[bool]:
    """Returns the SQL condition that finds the row of a slot by its key, as parameters."""
    return and_(*[column == bindparam(column.name) for column in table.primary_key])


def _text_column(table: Table) -> str:
    """Returns the name of the column that holds the text."""
    return "working" if table is resources else "text"


_SELECTIONS = {
    table.name: PreparedStatement(
        select(table.c[_text_column(table)], table.c.version).where(_find_row(table))
    )
    for table in (slots, resources)
}
"""Table of slots → the statement that reads one."""


def _lock_thread(connection: Connection, slot: Slot) -> Thread | None:
    """Returns the SQL row of the slot's thread, which nobody else changes until the transaction
    ends."""
    if slot.thread_id is None:
        return None
    statement = select(*THREAD_COLUMNS).where(threads.c.thread_id == slot.thread_id)
    row = connection.execute(statement.with_for_update()).first()
    return None if row is None else load_thread_row(row)
