"""The tables of a log of runs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

__all__ = ["down_revision", "downgrade", "revision", "upgrade"]

revision = "0001"
down_revision: str | None = None


def upgrade() -> None:
    """Makes the tables of the run log."""
    op.create_table(
        "dragoman_runs",
        sa.Column("run_id", sa.String, primary_key=True),
        sa.Column("thread_id", sa.String),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("end", sa.BigInteger, nullable=False),
        sa.Column("posts", sa.Integer, nullable=False),
        sa.Column("owner", sa.String),
        sa.Column("token", sa.Integer, nullable=False),
        sa.Column("lease_until", sa.Float, nullable=False),
        sa.Column("started_at", sa.Float, nullable=False),
    )
    op.create_index("ix_dragoman_runs_thread_id", "dragoman_runs", ["thread_id"])
    op.create_index("ix_dragoman_runs_state_started_at", "dragoman_runs", ["state", "started_at"])
    op.create_table(
        "dragoman_run_events",
        sa.Column(
            "run_id",
            sa.String,
            sa.ForeignKey("dragoman_runs.run_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("end", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("data", sa.Text, nullable=False),
    )
    op.create_table(
        "dragoman_run_posts",
        sa.Column(
            "run_id",
            sa.String,
            sa.ForeignKey("dragoman_runs.run_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("message", sa.Text, nullable=False),
    )
    op.create_table(
        "dragoman_run_claims",
        sa.Column("thread_id", sa.String, primary_key=True),
        sa.Column("interrupt_id", sa.String, primary_key=True),
        sa.Column("run_id", sa.String, nullable=False),
    )


def downgrade() -> None:
    """Drops the tables of the run log, with what they hold."""
    for table in (
        "dragoman_run_claims",
        "dragoman_run_posts",
        "dragoman_run_events",
        "dragoman_runs",
    ):
        op.drop_table(table)
