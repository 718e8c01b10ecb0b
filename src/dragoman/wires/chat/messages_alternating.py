"""Joins neighbouring messages of one role, for APIs where user and model must alternate."""

from __future__ import annotations

from dragoman.codec.dump_pieces import CannotCutError
from dragoman.json_bytes import Json
from dragoman.wires.chat.messages import dump_conversation
from dragoman.wires.chat.record import OutgoingChat

__all__ = ["dump_alternating"]

_JOINED = {"role", "content"}
"""The fields of a message that can be joined to another one: one without calls or results."""


def dump_alternating(out: OutgoingChat) -> list[Json]:
    """Writes a conversation as the list of messages, which alternate if the vendor demands it.
    System messages stay, since there may be several.

    Raises:
        CannotCutError: it stands behind others that are written already, which it may change.
    """
    if not out.alternates:
        return dump_conversation(out)
    if out.before:
        raise CannotCutError
    joined: list[Json] = []
    for entry in dump_conversation(out):
        before = joined[-1] if joined else {}
        same_role = before.get("role") == entry["role"] != "system"
        if same_role and before.keys() == entry.keys() == _JOINED:
            joined[-1] = {**entry, "content": [*_list_blocks(before), *_list_blocks(entry)]}
        else:
            joined.append(entry)
    return joined


def _list_blocks(entry: Json) -> list[Json]:
    """Returns the content of a Chat message as blocks."""
    content = entry["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
