"""What Alembic runs: the migrations, in the transaction of whoever asks for them."""

from __future__ import annotations

from alembic import context

from dragoman.runs.sql_tables import VERSIONS, metadata

__all__: list[str] = []

if context.config.attributes.get("connection") is not None:  # else only looked at
    context.configure(
        connection=context.config.attributes["connection"], target_metadata=metadata, version_table=VERSIONS
    )
    context.run_migrations()
