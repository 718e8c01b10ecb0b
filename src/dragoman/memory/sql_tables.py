"""The tables of threads and messages."""

from __future__ import annotations

from sqlalchemy import (
    DDL,
    BigInteger,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    event,
)

from dragoman.memory.stored_message import TABLES_VERSION
from dragoman.sql.migrate import Migrations

__all__ = [
    "MIGRATIONS",
    "WORD_INDEX",
    "attachments",
    "bodies",
    "branches",
    "embedding",
    "files",
    "messages",
    "metadata",
    "quotes",
    "resources",
    "slots",
    "threads",
    "vectors",
]

metadata = MetaData()
MIGRATIONS = Migrations(
    "dragoman.memory:migrations", TABLES_VERSION, "dragoman_memory_version", metadata
)
WORD_INDEX = {
    "sqlite": (
        "CREATE VIRTUAL TABLE IF NOT EXISTS dragoman_words USING fts5("
        "text, content='dragoman_bodies', content_rowid='body_id', tokenize='unicode61 remove_diacritics 0')",
        "CREATE TRIGGER IF NOT EXISTS dragoman_bodies_in AFTER INSERT ON dragoman_bodies WHEN new.text <> '' BEGIN "
        "INSERT INTO dragoman_words(rowid, text) VALUES (new.body_id, new.text); END",
        "CREATE TRIGGER IF NOT EXISTS dragoman_bodies_out AFTER DELETE ON dragoman_bodies WHEN old.text <> '' BEGIN "
        "INSERT INTO dragoman_words(dragoman_words, rowid, text) VALUES ('delete', old.body_id, old.text); END",
    ),
    "postgresql": (
        "CREATE INDEX IF NOT EXISTS ix_dragoman_bodies_text ON dragoman_bodies USING gin (to_tsvector('simple', text))",
    ),
}
"""Database → the statements that create the index of words, which SQLAlchemy has no table for."""
for _dialect, _statements in WORD_INDEX.items():
    for _statement in _statements:
        event.listen(
            metadata,
            "after_create",
            DDL(_statement.replace("%", "%%")).execute_if(dialect=_dialect),
        )
_ID = BigInteger().with_variant(Integer, "sqlite")  # which alone counts by itself there

threads = Table(
    "dragoman_threads",
    metadata,
    Column("thread_id", String, primary_key=True),
    Column("resource_id", String),
    Column("title", String, nullable=False),
    Column("metadata", Text, nullable=False),
    Column("created_at", String, nullable=False),
    Column("updated_at", String, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    Column("branch", Integer, nullable=False),
    Column("trimmed", BigInteger, nullable=False),
    Column("end", BigInteger, nullable=False),
    Index("ix_dragoman_threads_resource_id_changed_at", "resource_id", "changed_at"),
    Index("ix_dragoman_threads_changed_at", "changed_at"),
)
"""Threads. `end`: the last used position. `changed_at`: `updated_at` in microseconds since 1970."""

branches = Table(
    "dragoman_branches",
    metadata,
    Column(
        "thread_id",
        String,
        ForeignKey("dragoman_threads.thread_id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("parent", Integer, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("created_at", String, nullable=False),
)
"""Branches of threads, without branch 0."""

bodies = Table(
    "dragoman_bodies",
    metadata,
    Column("body_id", _ID, primary_key=True),
    Column("digest", LargeBinary, nullable=False),
    Column("body", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("files", Integer, nullable=False),
    Column("embedded", SmallInteger, nullable=False, server_default="0"),
    UniqueConstraint("digest", name="uq_dragoman_bodies_digest"),
)
"""Contents of messages, each stored once. `text`: the searchable text. `files`: the number of
attachments. `embedded`: 0 if its text has no vector yet, 1 if it has, 2 if there is nothing to
embed."""
Index(
    "ix_dragoman_bodies_not_embedded",
    bodies.c.body_id,
    sqlite_where=bodies.c.embedded == 0,
    postgresql_where=bodies.c.embedded == 0,
)

messages = Table(
    "dragoman_messages",
    metadata,
    Column("thread_id", String, primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("branch", Integer, nullable=False),
    Column("message_id", String, nullable=False),
    Column("created_at", String),
    Column("made_at", BigInteger, nullable=False),
    Column("turn", String),
    Column("body_id", _ID, nullable=False),
    ForeignKeyConstraint(
        ["thread_id"], ["dragoman_threads.thread_id"], name="fk_dragoman_messages_thread_id"
    ),
    ForeignKeyConstraint(
        ["body_id"], ["dragoman_bodies.body_id"], name="fk_dragoman_messages_body_id"
    ),
    UniqueConstraint("thread_id", "message_id", "branch", name="uq_dragoman_messages_message_id"),
    Index("ix_dragoman_messages_body_id", "body_id"),
)
"""Messages and their places in threads. `made_at`: `created_at`, otherwise the time of storing, in
microseconds since 1970."""


def _belongs_to_body() -> ForeignKey:
    """Returns the foreign key of a row that goes with its body."""
    return ForeignKey("dragoman_bodies.body_id", ondelete="CASCADE")


files = Table(
    "dragoman_files",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("data", LargeBinary, nullable=False),
)
"""File contents, each stored once."""

attachments = Table(
    "dragoman_attachments",
    metadata,
    Column("body_id", _ID, _belongs_to_body(), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("digest", LargeBinary, ForeignKey("dragoman_files.digest"), nullable=False),
    Index("ix_dragoman_attachments_digest", "digest"),
)
"""The files of each body, in order."""

vectors = Table(
    "dragoman_vectors",
    metadata,
    Column("vector_id", _ID, primary_key=True),
    Column("body_id", _ID, _belongs_to_body(), nullable=False),
    Column("chunk", Integer, nullable=False),
    Column("sign", LargeBinary, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    Index("ix_dragoman_vectors_sign", "body_id", "chunk", "sign", unique=True),
)
"""Vectors of texts, one for each chunk, and their sign codes. A search reads the codes from the index
alone."""

embedding = Table(
    "dragoman_embedding",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("model", String, nullable=False),
    Column("dimensions", Integer, nullable=False),
)
"""The model that made the vectors: one row, number 1, or none."""

quotes = Table(
    "dragoman_quotes",
    metadata,
    Column("memo_id", _ID, _belongs_to_body(), primary_key=True),
    Column("line", Integer, primary_key=True, autoincrement=False),
    Column("body_id", _ID, _belongs_to_body(), nullable=False),
    Index("ix_dragoman_quotes_body_id", "body_id"),
)
"""Which body each line of a memo quotes."""
resources = Table(
    "dragoman_resources",
    metadata,
    Column("resource_id", String, primary_key=True),
    Column("working", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("updated_at", String, nullable=False),
)
"""The working memory of each resource."""

slots = Table(
    "dragoman_slots",
    metadata,
    Column(
        "thread_id",
        String,
        ForeignKey("dragoman_threads.thread_id", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("name", String, primary_key=True),
    Column("text", Text, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("updated_at", String, nullable=False),
)
"""Texts that a thread has beside its messages: its working memory, and the state of its runs."""
