"""What a call goes on with, and what is kept of it: the server's own side of a conversation."""

__all__: list[str] = []
