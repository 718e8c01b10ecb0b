"""What the dump of a message must know beside it, and the files and results that stand on both sides of a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.codec.media import ELSEWHERE, Media, as_text, label, text_of
from dragoman.codec.replay import kind_of
from dragoman.formats.pydantic_ai.media import dump_item
from dragoman.loss import Loss, Lost
from dragoman.message import Content, FilePart, Message, TextPart

__all__ = ["Sent"]


class Sent(msgspec.Struct, frozen=True):
    """A message on its way out."""

    message: Message
    """The message."""
    position: int
    """Where it stands in the conversation."""
    losses: list[Loss]
    """Grows with what is left out or changed."""
    names: Mapping[str, str]
    """Id of a call → its tool, for results that do not name it."""

    def lose(self, place: int | None, what: Lost, why: str, which: str = "") -> None:
        """Notes something that is left out or changed; see `Loss`."""
        self.losses.append(Loss(self.position, place, what, why, which))

    def misplaced(self, place: int, piece: Content, why: str) -> None:
        """Notes a piece that has no place in its message."""
        self.lose(place, kind_of(piece), why)

    def item(self, place: int, piece: TextPart | Media) -> Any:
        """A text or a file → the item of a content; a text that stands for it where it cannot be held."""
        item = dump_item(piece)
        if item is None:
            return self.stand_in(place, piece, ELSEWHERE)
        if not isinstance(piece, TextPart) and piece.name and not isinstance(item, str):
            self.lose(place, Lost.file_name, f"the format knows no name of a file, {piece.name}")
        return item

    def stand_in(self, place: int, piece: Any, why: str) -> str:
        """The text that stands for a file that cannot be held."""
        if isinstance(piece, FilePart) or text_of(piece) is None:
            self.lose(place, kind_of(piece), why, label(piece))
        return as_text(piece)
