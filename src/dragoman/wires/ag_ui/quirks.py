"""What AG-UI is here: its name, its version, and what the wire notes of it."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.codec.native import Own

__all__ = ["CARRIED", "NAME", "OURS", "OWN", "RESERVED", "VERSION", "Quirks", "is_current"]

NAME = "ag_ui"
OWN = Own(NAME)
"""Its part of `native`."""
VERSION = "1.0"
"""Of the protocol that is written."""
OURS = "dragoman"
"""Key in metadata under which stands what the protocol has no field for."""
CARRIED = "dragoman.event"
"""Name of the custom event whose value is one of our events as JSON's text: one that the protocol has no form for."""
RESERVED = frozenset([OURS, "ag-ui"])
"""Keys in metadata that are no application's."""


class Quirks(msgspec.Struct, frozen=True):
    """What a peer takes."""

    current: bool = False
    """Whether it reads what came with version 1.0: `pendingToolCallIds`, and the outcome `cancelled`."""
    extras: bool = True
    """Whether it is sent what the protocol has no field for."""


def is_current(version: Any) -> bool:
    """Whether a peer that declares this version reads all of 1.0."""
    head, dot, tail = version.partition(".") if isinstance(version, str) else ("", "", "")
    return (
        bool(dot)
        and head.isascii()
        and tail.isascii()
        and head.isdigit()
        and tail.isdigit()
        and int(head[:9]) >= 1
    )
