"""The tables of kept answers."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    text,
)

from dragoman.sql.migrate import Migrations

__all__ = ["MIGRATIONS", "answers", "keys", "metadata", "push_configs"]

metadata = MetaData()
MIGRATIONS = Migrations(
    "dragoman.serve.store:migrations", "0003", "dragoman_serve_version", metadata
)
# In SQLite only an INTEGER key counts by itself.
_ID = BigInteger().with_variant(Integer, "sqlite")

push_configs = Table(
    "dragoman_push_configs",
    metadata,
    Column("owner", String, primary_key=True),
    Column("task", String, primary_key=True),
    Column("config_id", String, primary_key=True),
    Column("created_at", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
)
"""Where notifications of tasks go, as JSON."""
keys = Table(
    "dragoman_answer_keys",
    metadata,
    Column("owner", String, primary_key=True),
    Column("key", String, primary_key=True),
    Column(
        "number",
        _ID,
        ForeignKey("dragoman_answers.number", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Index("ix_dragoman_answer_keys_number", "number"),
)
"""Under which keys answers are found."""


def _of_tasks(name: str, *columns: str) -> Index:
    is_task = text("task IS NOT NULL")
    return Index(name, *columns, sqlite_where=is_task, postgresql_where=is_task)


answers = Table(
    "dragoman_answers",
    metadata,
    Column("number", _ID, primary_key=True),
    Column("owner", String, nullable=False),
    Column("answer_id", String, nullable=False),
    Column("parent", String),
    Column("created_at", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("task", String),
    Column("thread", String),
    Column("stage", String),
    Column("updated_at", BigInteger),
    UniqueConstraint("owner", "answer_id", name="uq_dragoman_answers_owner_answer_id"),
    Index("ix_dragoman_answers_created_at", "created_at"),
    Index("ix_dragoman_answers_owner_parent", "owner", "parent"),
    _of_tasks("ix_dragoman_answers_tasks", "owner", "number"),
    _of_tasks("ix_dragoman_answers_task", "owner", "task", "number"),
    _of_tasks("ix_dragoman_answers_stage", "owner", "stage", "number"),
    _of_tasks("ix_dragoman_answers_thread", "owner", "thread", "number"),
)
"""An answer as JSON. `number`: rises with each; `created_at`, `updated_at`: in microseconds since
1970. From `task` on: of the runs of tasks alone."""
