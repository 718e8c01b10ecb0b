"""Where answers and tasks are kept: the store, in memory and in a database."""

__all__: list[str] = []
