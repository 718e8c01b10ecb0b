"""Working memories of resources, and texts of threads beside their messages."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

__all__ = ["down_revision", "downgrade", "revision", "upgrade"]

revision = "0002"
down_revision: str | None = "0001"


def upgrade() -> None:
    """Makes the tables of slots."""
    op.create_table(
        "dragoman_resources",
        sa.Column("resource_id", sa.String, primary_key=True),
        sa.Column("working", sa.Text, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.String, nullable=False),
    )
    op.create_table(
        "dragoman_slots",
        sa.Column(
            "thread_id",
            sa.String,
            sa.ForeignKey("dragoman_threads.thread_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.String, nullable=False),
    )


def downgrade() -> None:
    """Drops them, with what they hold."""
    op.drop_table("dragoman_slots")
    op.drop_table("dragoman_resources")
