"""A2A's tasks: the methods, their lists, push notifications, and gRPC."""

__all__: list[str] = []
