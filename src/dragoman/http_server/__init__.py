"""Shared code of all HTTP servers: listening, allowed hosts and origins, limits of a connection."""

from __future__ import annotations

__all__: list[str] = []
