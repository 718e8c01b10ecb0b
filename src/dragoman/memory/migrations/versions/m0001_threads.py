"""Threads, their branches, messages, and what those share: bodies and files; and an index of
words."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from dragoman.memory.sql_tables import WORD_INDEX

__all__ = ["down_revision", "downgrade", "revision", "upgrade"]

revision = "0001"
down_revision: str | None = None

_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Makes the tables of threads and their messages."""
    op.create_table(
        "dragoman_threads",
        sa.Column("thread_id", sa.String, primary_key=True),
        sa.Column("resource_id", sa.String),
        sa.Column("title", sa.String, nullable=False),
        sa.Column("metadata", sa.Text, nullable=False),
        sa.Column("created_at", sa.String, nullable=False),
        sa.Column("updated_at", sa.String, nullable=False),
        sa.Column("changed_at", sa.BigInteger, nullable=False),
        sa.Column("branch", sa.Integer, nullable=False),
        sa.Column("trimmed", sa.BigInteger, nullable=False),
        sa.Column("end", sa.BigInteger, nullable=False),
    )
    op.create_index(
        "ix_dragoman_threads_resource_id_changed_at",
        "dragoman_threads",
        ["resource_id", "changed_at"],
    )
    op.create_index("ix_dragoman_threads_changed_at", "dragoman_threads", ["changed_at"])
    op.create_table(
        "dragoman_branches",
        sa.Column(
            "thread_id",
            sa.String,
            sa.ForeignKey("dragoman_threads.thread_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("parent", sa.Integer, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.String, nullable=False),
    )
    op.create_table(
        "dragoman_bodies",
        sa.Column("body_id", _ID, primary_key=True),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("files", sa.Integer, nullable=False),
        sa.UniqueConstraint("digest", name="uq_dragoman_bodies_digest"),
    )
    op.create_table(
        "dragoman_messages",
        sa.Column("thread_id", sa.String, primary_key=True),
        sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("branch", sa.Integer, nullable=False),
        sa.Column("message_id", sa.String, nullable=False),
        sa.Column("created_at", sa.String),
        sa.Column("made_at", sa.BigInteger, nullable=False),
        sa.Column("turn", sa.String),
        sa.Column("body_id", _ID, nullable=False),
        sa.ForeignKeyConstraint(
            ["thread_id"], ["dragoman_threads.thread_id"], name="fk_dragoman_messages_thread_id"
        ),
        sa.ForeignKeyConstraint(
            ["body_id"], ["dragoman_bodies.body_id"], name="fk_dragoman_messages_body_id"
        ),
        sa.UniqueConstraint(
            "thread_id", "message_id", "branch", name="uq_dragoman_messages_message_id"
        ),
    )
    op.create_index("ix_dragoman_messages_body_id", "dragoman_messages", ["body_id"])
    op.create_table(
        "dragoman_files",
        sa.Column("digest", sa.LargeBinary, primary_key=True),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "dragoman_attachments",
        sa.Column(
            "body_id",
            _ID,
            sa.ForeignKey("dragoman_bodies.body_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("digest", sa.LargeBinary, sa.ForeignKey("dragoman_files.digest"), nullable=False),
    )
    op.create_index("ix_dragoman_attachments_digest", "dragoman_attachments", ["digest"])
    for statement in WORD_INDEX[op.get_bind().dialect.name]:
        op.execute(statement)


def downgrade() -> None:
    """Drops the tables of threads, with what they hold."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TABLE dragoman_words")
    for table in ("attachments", "files", "messages", "bodies", "branches", "threads"):
        op.drop_table(f"dragoman_{table}")
