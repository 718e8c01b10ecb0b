"""What a client's copy of a conversation changes in it."""

from __future__ import annotations

import msgspec

from dragoman.interrupt import Resume
from dragoman.message import Message

__all__ = ["Changes"]


class Changes(msgspec.Struct, frozen=True):
    """What became of a conversation when a client's copy of it was merged into it."""

    messages: tuple[Message, ...] = ()
    """The conversation, merged. What the client did not touch are the very same `Message` objects."""
    added: tuple[Message, ...] = ()
    """Those of them that are new."""
    edited: tuple[Message, ...] = ()
    """Those of them that stand in the place of a stored message, with its id, and hold something else."""
    removed: tuple[Message, ...] = ()
    """The stored messages that are not in it any more, not even changed."""
    branched: int | None = None
    """Position from which on the conversation is another one than that which was stored; `None`: it only goes on."""
    resumes: tuple[Resume, ...] = ()
    """The answers to what the last run waits for, where the copy holds some: approved, denied."""
