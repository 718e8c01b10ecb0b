"""What servers have in common, whatever they serve: where they listen, which hosts and pages they
are for, what a connection may take."""

from __future__ import annotations

__all__: list[str] = []
