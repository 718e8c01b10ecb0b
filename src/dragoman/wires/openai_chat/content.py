"""Content of Chat Completions, where it is more than the family's: refusals, links of which the target knows images only."""

from __future__ import annotations

from typing import Any

from dragoman.codec.media import as_text, guessed
from dragoman.message import Content, LinkPart
from dragoman.wires.chat.content import READERS, dump_block, lost, read_text
from dragoman.wires.chat.dialect import Outgoing

__all__ = ["BLOCKS", "sent_block"]

BLOCKS = {**READERS, "refusal": read_text}
"""Type of a content block → how it is loaded."""


def sent_block(out: Outgoing, position: int, place: int, piece: Content) -> dict[str, Any] | None:
    """A piece → the block under which it is sent; what that does not hold is noted.

    A target would take a link to something else for a broken image, and refuse the conversation.
    """
    block = dump_block(out.chat, piece, out.blocks)
    if block is None:
        return None
    if out.target and isinstance(piece, LinkPart) and block["type"] == "image_url":
        is_image = (piece.mime_type or guessed(piece.url) or "image/*").startswith("image/")
        block = block if is_image else {"type": "text", "text": as_text(piece)}
    if (what := lost(piece, block)) is not None:
        out.lose(position, place, *what)
    return block
