"""Callers' keys, budgets and usage in the server's database. Needs the extra `sql` or `postgres`."""

__all__: list[str] = []
