"""An index by which is found what goes on from an answer."""

from __future__ import annotations

from alembic import op

__all__ = ["down_revision", "downgrade", "revision", "upgrade"]

revision = "0002"
down_revision: str | None = "0001"


def upgrade() -> None:
    """Makes it."""
    op.create_index("ix_dragoman_answers_owner_parent", "dragoman_answers", ["owner", "parent"])


def downgrade() -> None:
    """Takes it away."""
    op.drop_index("ix_dragoman_answers_owner_parent", "dragoman_answers")
