"""What Alembic runs: the migrations, in the transaction of whoever asks for them."""

from __future__ import annotations

from alembic import context

from dragoman.runs.sql_tables import MIGRATIONS, metadata

__all__: list[str] = []

# Else it is only imported.
if hasattr(context, "config"):
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        version_table=MIGRATIONS.versions,
    )
    context.run_migrations()
