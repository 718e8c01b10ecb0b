"""The APIs that a server speaks: what it does at the places of each."""

__all__: list[str] = []
