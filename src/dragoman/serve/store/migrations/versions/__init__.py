"""One module for each version."""

from __future__ import annotations

__all__: list[str] = []
