"""Answers, and the keys under which they are found."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

__all__ = ["down_revision", "downgrade", "revision", "upgrade"]

revision = "0001"
down_revision: str | None = None

_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Makes the tables of stored answers."""
    op.create_table(
        "dragoman_answers",
        sa.Column("number", _ID, primary_key=True),
        sa.Column("owner", sa.String, nullable=False),
        sa.Column("answer_id", sa.String, nullable=False),
        sa.Column("parent", sa.String),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.UniqueConstraint("owner", "answer_id", name="uq_dragoman_answers_owner_answer_id"),
    )
    op.create_index("ix_dragoman_answers_created_at", "dragoman_answers", ["created_at"])
    op.create_table(
        "dragoman_answer_keys",
        sa.Column("owner", sa.String, primary_key=True),
        sa.Column("key", sa.String, primary_key=True),
        sa.Column(
            "number",
            _ID,
            sa.ForeignKey("dragoman_answers.number", ondelete="CASCADE"),
            primary_key=True,
            autoincrement=False,
        ),
    )
    op.create_index("ix_dragoman_answer_keys_number", "dragoman_answer_keys", ["number"])


def downgrade() -> None:
    """Takes them away."""
    op.drop_table("dragoman_answer_keys")
    op.drop_table("dragoman_answers")
