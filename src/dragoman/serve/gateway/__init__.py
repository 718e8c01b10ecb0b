"""Models of any provider behind the endpoints of any wire."""

__all__: list[str] = []
