"""A call of a server, and what all calls share."""

__all__: list[str] = []
