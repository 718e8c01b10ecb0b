"""Keys of callers, what they spent of their budgets, and their usage."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

__all__ = ["down_revision", "downgrade", "revision", "upgrade"]

revision = "0004"
down_revision: str | None = "0003"

_AMOUNTS = [
    f"{column}_{unit}"
    for column in ("day", "month", "held", "held_before")
    for unit in ("dollars", "tokens")
]
_COUNTS = (
    "requests",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "cost",
    "unknown_cost",
)


def upgrade() -> None:
    """Makes the tables."""
    op.create_table(
        "dragoman_caller_keys",
        sa.Column("owner", sa.String, primary_key=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("prefix", sa.String, nullable=False),
        sa.Column("models", sa.String),
        sa.Column("budgets", sa.String, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger),
        sa.Column("revoked_at", sa.BigInteger),
    )
    is_valid = sa.text("revoked_at IS NULL")
    op.create_index(
        "uq_dragoman_caller_keys_name",
        "dragoman_caller_keys",
        ["name"],
        unique=True,
        sqlite_where=is_valid,
        postgresql_where=is_valid,
    )
    op.create_table(
        "dragoman_balances",
        sa.Column("owner", sa.String, primary_key=True),
        sa.Column("day", sa.String, nullable=False),
        sa.Column("month", sa.String, nullable=False),
        sa.Column("slot", sa.BigInteger, nullable=False),
        *[sa.Column(name, sa.BigInteger, nullable=False) for name in _AMOUNTS],
    )
    op.create_table(
        "dragoman_usage",
        sa.Column("owner", sa.String, primary_key=True),
        sa.Column("day", sa.String, primary_key=True),
        sa.Column("model", sa.String, primary_key=True),
        sa.Column("name", sa.String, nullable=False),
        *[sa.Column(name, sa.BigInteger, nullable=False) for name in _COUNTS],
    )
    op.create_index("ix_dragoman_usage_day", "dragoman_usage", ["day"])


def downgrade() -> None:
    """Takes them away."""
    for name in ("dragoman_usage", "dragoman_balances", "dragoman_caller_keys"):
        op.drop_table(name)
