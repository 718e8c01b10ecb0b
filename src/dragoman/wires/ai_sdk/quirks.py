"""What the UI message stream is here: its name, and what a peer takes."""

from __future__ import annotations

import msgspec

from dragoman.wires.ai_sdk_messages.notes import OURS, OWN

__all__ = ["NAME", "OURS", "OWN", "Quirks", "part_id"]

NAME = "ai_sdk"


def part_id(message_id: str | None, index: int) -> str:
    """Returns the id of a part in a stream."""
    return f"{message_id}:{index}"


class Quirks(msgspec.Struct, frozen=True):
    """What a peer takes."""

    resets: bool = True
    """True if it can withdraw a step (`reset-step`), as version 7 does."""
    extras: bool = True
    """True if messages carry what the protocol has no field for."""
