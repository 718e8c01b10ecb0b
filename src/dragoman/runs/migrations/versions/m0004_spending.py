"""What a run spent, and whose each run is, with an index for lists of a caller's runs."""

from __future__ import annotations

from urllib.parse import unquote

import sqlalchemy as sa
from alembic import op

__all__ = ["down_revision", "downgrade", "revision", "upgrade"]

revision = "0004"
down_revision: str | None = "0003"


def upgrade() -> None:
    """Adds it. What runs that are there spent stays unknown. Runs of a server's conversations become
    those of their callers, whose ids stand before the `/` in the ids of the conversations."""
    for column in (
        sa.Column("calls", sa.Integer),
        sa.Column("tokens", sa.BigInteger),
        sa.Column("cost", sa.BigInteger),
    ):
        op.add_column("dragoman_runs", column)
    runs = sa.table("dragoman_runs", sa.column("thread_id"), sa.column("caller"))
    first = sa.func.split_part(runs.c.thread_id, "/", 1)
    if op.get_bind().dialect.name == "sqlite":
        end = sa.func.instr(runs.c.thread_id, "/") - 1
        first = sa.func.substr(runs.c.thread_id, 1, end)
    is_old = sa.and_(runs.c.caller.is_(None), runs.c.thread_id.like("%/%"))
    op.execute(sa.update(runs).where(is_old).values(caller=first))
    # Signs that conversations write with a percent sign are rare in ids of callers.
    is_quoted = sa.and_(runs.c.caller == first, runs.c.caller.like("%\\%%", escape="\\"))
    quoted = op.get_bind().execute(sa.select(runs.c.caller).where(is_quoted).distinct())
    for name in list(quoted.scalars()):
        where = sa.and_(is_quoted, runs.c.caller == name)
        op.execute(sa.update(runs).where(where).values(caller=unquote(name)))
    op.create_index("ix_dragoman_runs_caller_started_at", "dragoman_runs", ["caller", "started_at"])
    op.create_index("ix_dragoman_runs_started_at", "dragoman_runs", ["started_at"])


def downgrade() -> None:
    """Removes it. Runs keep their callers."""
    op.drop_index("ix_dragoman_runs_started_at", "dragoman_runs")
    op.drop_index("ix_dragoman_runs_caller_started_at", "dragoman_runs")
    for name in ("cost", "tokens", "calls"):
        op.drop_column("dragoman_runs", name)
