"""Appends messages to a thread in a SQLite file with the standard library alone.

A command that lives for one answer would spend ten times as long on importing SQLAlchemy as on
writing. This writes the rows that `sql_saving` writes, to tables of the present version. Whatever
is not so simple is left to the store: tables that are missing or of another version, and threads
with branches.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from dragoman.errors import StoreError
from dragoman.memory.store import Batch
from dragoman.memory.stored_message import (
    TABLES_VERSION,
    Packed,
    digest_data,
    pack,
    to_microseconds,
)

__all__ = ["save_quickly"]

_SECONDS = 2.0
"""How long to wait for another process that writes."""
_THREAD = """
INSERT INTO dragoman_threads
  (thread_id, title, metadata, created_at, updated_at, changed_at, branch, trimmed, "end")
VALUES (:thread, :title, :metadata, :at, :at, :changed, 0, 0, :count)
ON CONFLICT (thread_id) DO UPDATE SET
  updated_at = :at, changed_at = :changed, "end" = "end" + :count
RETURNING "end", branch"""
_BODY = """
INSERT INTO dragoman_bodies (digest, body, text, files, embedded)
VALUES (:digest, :body, :text, :files, :embedded) ON CONFLICT DO NOTHING"""
_MESSAGE = """
INSERT INTO dragoman_messages
  (thread_id, position, branch, message_id, created_at, made_at, turn, body_id)
VALUES (:thread, :position, 0, :id, :created, :made, :turn,
  (SELECT body_id FROM dragoman_bodies WHERE digest = :digest))"""
_FILE = "INSERT INTO dragoman_files (digest, data) VALUES (?, ?) ON CONFLICT DO NOTHING"
_ATTACHMENT = """
INSERT INTO dragoman_attachments (body_id, number, digest)
VALUES ((SELECT body_id FROM dragoman_bodies WHERE digest = ?), ?, ?) ON CONFLICT DO NOTHING"""


def save_quickly(path: Path, batch: Batch) -> bool:
    """Writes a batch into a SQLite file, whole or not at all. A thread that does not exist gets the
    metadata and the `title_if_empty` of the batch's change. Returns False, and writes nothing, if
    the store has to do it.

    Raises:
        StoreError: the file cannot be written, or is no database.
    """
    if not path.exists():
        return False
    parts = [pack(message) for message in batch.messages]
    try:
        with closing(sqlite3.connect(path, timeout=_SECONDS, isolation_level=None)) as connection:
            if sys.version_info >= (3, 12):
                # The last to leave would copy the journal into the file, and wait for the disk.
                connection.setconfig(sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, True)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
            # Without a commit the connection's end undoes it.
            connection.execute("BEGIN IMMEDIATE")
            # Tables of another version have other columns.
            if not _is_current(connection) or not _write_batch(connection, batch, parts):
                return False
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise StoreError(f"the database {path} failed: {error}") from error
    return True


def _is_current(connection: sqlite3.Connection) -> bool:
    """True if the tables of messages have the version that this module writes."""
    tables = "SELECT 1 FROM sqlite_master WHERE name = 'dragoman_memory_version'"
    if connection.execute(tables).fetchone() is None:
        return False
    version = connection.execute("SELECT version_num FROM dragoman_memory_version").fetchone()
    return version == (TABLES_VERSION,)


def _write_batch(connection: sqlite3.Connection, batch: Batch, parts: Sequence[Packed]) -> bool:
    """Writes a batch quickly, inside the caller's transaction. Returns False if its thread has a
    branch."""
    row = {
        "thread": batch.thread_id,
        "title": batch.change.title_if_empty or "",
        "metadata": msgspec.json.encode(batch.change.metadata or {}).decode(),
        "at": batch.at.isoformat(),
        "changed": to_microseconds(batch.at),
        "count": len(parts),
    }
    end, branch = connection.execute(_THREAD, row).fetchone()
    if branch:
        return False
    for body, files in sorted(parts, key=lambda part: part[0]["digest"]):
        connection.execute(_BODY, body)
        for number, content in enumerate(files):
            digest = digest_data(content)
            connection.execute(_FILE, (digest, content))
            connection.execute(_ATTACHMENT, (body["digest"], number, digest))
    first = end - len(parts) + 1
    for position, (message, (body, _)) in enumerate(zip(batch.messages, parts, strict=True), first):
        created = message.created_at
        message_row = {
            "thread": batch.thread_id,
            "position": position,
            "id": message.id,
            "created": None if created is None else created.isoformat(),
            "made": to_microseconds(created or batch.at),
            "turn": message.turn,
            "digest": body["digest"],
        }
        connection.execute(_MESSAGE, message_row)
    return True
