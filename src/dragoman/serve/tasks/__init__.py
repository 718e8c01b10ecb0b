"""A2A's tasks: the methods, their lists, push notifications, and gRPC."""
