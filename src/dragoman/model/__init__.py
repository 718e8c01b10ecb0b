"""A provider, its wire and a transport put together."""

__all__: list[str] = []
