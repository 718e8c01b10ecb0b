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
)

from dragoman.sql.migrate import Migrations

__all__ = ["MIGRATIONS", "answers", "keys", "metadata"]

MIGRATIONS = Migrations("dragoman.serve:migrations", "0002", "dragoman_serve_version")

metadata = MetaData()
_ID = BigInteger().with_variant(Integer, "sqlite")  # which alone counts by itself there

answers = Table(
    "dragoman_answers",
    metadata,
    Column("number", _ID, primary_key=True),
    Column("owner", String, nullable=False),
    Column("answer_id", String, nullable=False),
    Column("parent", String),
    Column("created_at", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    UniqueConstraint("owner", "answer_id", name="uq_dragoman_answers_owner_answer_id"),
    Index("ix_dragoman_answers_created_at", "created_at"),
    Index("ix_dragoman_answers_owner_parent", "owner", "parent"),
)
"""An answer as JSON. `number`: rises with each; `created_at`: in microseconds since 1970."""

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
