"""Signed thinking that a gateway's clients keep for it, sealed."""

__all__: list[str] = []
