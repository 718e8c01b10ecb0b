"""Names with `*`: what a key may name, and what a gateway offers."""

from __future__ import annotations

__all__ = ["fits_pattern", "starred"]


def fits_pattern(name: str, pattern: str) -> bool:
    """Returns whether a name is of a pattern, in which each `*` stands for any characters, none too. The time is bounded by
    the product of both lengths."""
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    *middle, last = rest
    start, end = len(first), len(name) - len(last)
    if start > end or not name.startswith(first) or not name.endswith(last):
        return False
    for piece in middle:  # the leftmost place leaves most room for what follows
        start = name.find(piece, start, end)
        if start < 0:
            return False
        start += len(piece)
    return True


def starred(name: str, pattern: str) -> str | None:
    """Returns what is in the place of a pattern's only `*`, or None if the name is not of the pattern or nothing is there."""
    before, _, after = pattern.partition("*")
    if len(name) <= len(before) + len(after) or not fits_pattern(name, pattern):
        return None
    return name[len(before) : len(name) - len(after)]
