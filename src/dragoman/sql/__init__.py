"""Shared code of all stores in databases. Needs the extra `sql` or `postgres`."""

__all__: list[str] = []
