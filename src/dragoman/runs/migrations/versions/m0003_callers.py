"""Whose a durable run is, and its priority, with an index in the order of a queue."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

__all__ = ["down_revision", "downgrade", "revision", "upgrade"]

revision = "0003"
down_revision: str | None = "0002"


def upgrade() -> None:
    """Adds them. Runs that are there are nobody's, and all have the same priority."""
    op.add_column("dragoman_runs", sa.Column("caller", sa.String))
    op.add_column(
        "dragoman_runs", sa.Column("priority", sa.Integer, nullable=False, server_default="0")
    )
    op.create_index(
        "ix_dragoman_runs_queue", "dragoman_runs", ["state", "queue", "priority", "started_at"]
    )


def downgrade() -> None:
    """Removes them."""
    op.drop_index("ix_dragoman_runs_queue", "dragoman_runs")
    for name in ("priority", "caller"):
        op.drop_column("dragoman_runs", name)
