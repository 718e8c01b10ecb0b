"""Vectors of texts, and which message each line of a memo quotes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

__all__ = ["down_revision", "downgrade", "revision", "upgrade"]

revision = "0003"
down_revision: str | None = "0002"

_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_NOTHING_TO_EMBED = """UPDATE dragoman_bodies SET embedded = 2
WHERE text = '' OR body LIKE '{"v":2,"role":"system"%' OR body LIKE '{"v":1,"role":"system"%'"""


def upgrade() -> None:
    """Makes the tables and columns of recall."""
    op.add_column(
        "dragoman_bodies",
        sa.Column("embedded", sa.SmallInteger, nullable=False, server_default="0"),
    )
    op.execute(sa.text(_NOTHING_TO_EMBED.replace(":", r"\:")))
    op.create_index(
        "ix_dragoman_bodies_not_embedded",
        "dragoman_bodies",
        ["body_id"],
        sqlite_where=sa.text("embedded = 0"),
        postgresql_where=sa.text("embedded = 0"),
    )
    op.create_table(
        "dragoman_vectors",
        sa.Column("vector_id", _ID, primary_key=True),
        sa.Column("body_id", _ID, _belongs_to_body(), nullable=False),
        sa.Column("chunk", sa.Integer, nullable=False),
        sa.Column("sign", sa.LargeBinary, nullable=False),
        sa.Column("vector", sa.LargeBinary, nullable=False),
    )
    op.create_index(
        "ix_dragoman_vectors_sign", "dragoman_vectors", ["body_id", "chunk", "sign"], unique=True
    )
    op.create_table(
        "dragoman_embedding",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("model", sa.String, nullable=False),
        sa.Column("dimensions", sa.Integer, nullable=False),
    )
    op.create_table(
        "dragoman_quotes",
        sa.Column("memo_id", _ID, _belongs_to_body(), primary_key=True),
        sa.Column("line", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("body_id", _ID, _belongs_to_body(), nullable=False),
    )
    op.create_index("ix_dragoman_quotes_body_id", "dragoman_quotes", ["body_id"])


def downgrade() -> None:
    """Drops the tables and columns of recall, with what they hold."""
    op.drop_table("dragoman_quotes")
    op.drop_table("dragoman_embedding")
    op.drop_table("dragoman_vectors")
    op.drop_index("ix_dragoman_bodies_not_embedded", "dragoman_bodies")
    op.drop_column("dragoman_bodies", "embedded")


def _belongs_to_body() -> sa.ForeignKey:
    return sa.ForeignKey("dragoman_bodies.body_id", ondelete="CASCADE")
