"""How the tables of kept answers came to be what they are; Alembic applies what a database
lacks."""

from __future__ import annotations

__all__: list[str] = []
