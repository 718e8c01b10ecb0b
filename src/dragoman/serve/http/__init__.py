"""What a call is before anybody knows what it asks: its connection, body, caller and bounds, and
what is counted of it."""

__all__: list[str] = []
