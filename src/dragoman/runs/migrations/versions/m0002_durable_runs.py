"""What a durable run needs: its agent, its queue, its request, and how many owners it has lost."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

__all__ = ["down_revision", "downgrade", "revision", "upgrade"]

revision = "0002"
down_revision: str | None = "0001"


def upgrade() -> None:
    """Adds it. Runs that are there are not durable."""
    for column in (
        sa.Column("agent", sa.String),
        sa.Column("queue", sa.String),
        sa.Column("lost", sa.Integer, nullable=False, server_default="0"),
    ):
        op.add_column("dragoman_runs", column)
    op.create_table(
        "dragoman_run_requests",
        sa.Column(
            "run_id",
            sa.String,
            sa.ForeignKey("dragoman_runs.run_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("request", sa.Text, nullable=False),
    )


def downgrade() -> None:
    """Removes it."""
    op.drop_table("dragoman_run_requests")
    for name in ("lost", "queue", "agent"):
        op.drop_column("dragoman_runs", name)
