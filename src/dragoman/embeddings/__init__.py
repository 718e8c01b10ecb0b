"""What is done with texts before, and with vectors after: splitting and similarity."""

__all__: list[str] = []
