"""By what a sealed text is known, whether or not it opens."""

from __future__ import annotations

__all__ = ["MARK", "is_sealed"]

MARK = "dragoman"
"""With which every token begins and ends: eight characters of base64. One whose head was cut or changed is known by its tail."""


def is_sealed(text: str) -> bool:
    """Whether a text looks like a token of any server's, or like what is left of one; whether it opens, `Sealer.open` says."""
    return text.startswith(MARK) or text.rstrip("=").endswith(MARK)
