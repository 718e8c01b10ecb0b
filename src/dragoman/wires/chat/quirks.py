"""How servers of one format may differ. A wire that knows more differences has a record of its
own."""

from __future__ import annotations

import msgspec

__all__ = ["Quirks"]


class Quirks(msgspec.Struct, frozen=True, kw_only=True):
    """One server's differences."""

    reads: tuple[str, ...] = ()
    """Names of other providers whose thinking this one takes back."""
    tool_media: bool = False
    """Takes images inside tool messages; else they follow in a user message."""
