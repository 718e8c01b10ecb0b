"""Memos of a stored conversation, which a client's copy lacks: taken out before the copy is merged,
and put back at their places."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman import formats
from dragoman.codec.memos import RECALLED, hide_memos, is_memo
from dragoman.history.copy_merge import MergedMessage
from dragoman.message import Message

__all__ = ["hide_memos_from", "restore_memos"]

_MEMO = Message.user(".").replace(id="memo", metadata={RECALLED: []})


def hide_memos_from(format_name: str, stored: Sequence[Message]) -> tuple[Message, ...]:
    """Returns the stored messages that a client of this format has: formats for clients write no
    memos."""
    visible = hide_memos(stored)
    # Nearly no conversation has memos, so that its format need not be asked.
    if len(visible) == len(stored) or formats.get(format_name).dump_messages([_MEMO]):
        return tuple(stored)
    return tuple(visible)


def restore_memos(
    stored: Sequence[Message], merged: Sequence[MergedMessage]
) -> list[MergedMessage]:
    """Returns a merged conversation with its memos, each before the message that it was written
    for. A memo goes with that message; one behind all messages goes with the last.

    Args:
        stored: the conversation, memos included.
        merged: what became of its other messages, whose positions do not count memos.
    """
    positions = [position for position, message in enumerate(stored) if not is_memo(message)]
    starts = [0, *[position + 1 for position in positions]]
    restored: list[MergedMessage] = []
    for message, number in merged:
        if number is None:
            restored.append((message, None))
            continue
        position = positions[number]
        restored += [(stored[index], index) for index in range(starts[number], position)]
        restored.append((message, position))
        if number == len(positions) - 1:
            restored += [(stored[index], index) for index in range(starts[-1], len(stored))]
    return restored
