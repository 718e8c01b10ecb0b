"""One module for each change of the tables."""

from __future__ import annotations

__all__: list[str] = []
