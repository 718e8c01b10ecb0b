"""What a message says, collected into the fields of the wire: one thinking, images, one text, calls, in this order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.codec.media import as_text, label, text_of
from dragoman.codec.replay import kind_of
from dragoman.message import Content, DataPart, FilePart, LinkPart, TextPart
from dragoman.wires.ollama.images import dump_image

__all__ = ["Lose", "Said"]

Lose = Callable[[int | None, str, str], None]
"""Notes a loss: place of the piece (`None`: the message as a whole), what, why."""
_ORDER = ("thinking", "images", "content", "tool_calls")
_TEXTS = ("thinking", "content")


class Said:
    """Fields of one message. Pieces that come in another order are moved, and the loss is noted."""

    def __init__(self, lose: Lose, *, joined: bool = False) -> None:
        """`joined`: its texts are one anyway."""
        self._lose = lose
        self._joined = joined
        self._told: dict[str, list[Any]] = {}

    @property
    def begun(self) -> bool:
        """Whether anything was said."""
        return bool(self._told)

    @property
    def fields(self) -> dict[str, Any]:
        """The fields, in the API's order."""
        return {
            field: "".join(self._told[field]) if field in _TEXTS else self._told[field]
            for field in ("content", "thinking", "images", "tool_calls")
            if field in self._told
        }

    def add(self, place: int, field: str, value: Any) -> None:
        """More of a field: text to text, anything else to a list."""
        if any(later in self._told for later in _ORDER[_ORDER.index(field) + 1 :]):
            self._lose(place, "order", f"this format has the {field} of a message before what it stands behind")
        if field in _TEXTS and field in self._told and not self._joined:
            self._joined = True
            self._lose(None, "texts", f"this format has one {field} a message; they are joined")
        self._told.setdefault(field, []).append(value)

    def add_piece(self, place: int, piece: Content) -> None:
        """A text or an image; a loss where it is neither."""
        if isinstance(piece, TextPart):
            self.add(place, "content", piece.text)
        elif (image := dump_image(piece)) is not None:
            self.add(place, "images", image)
            if isinstance(piece, DataPart) and piece.name:
                self._lose(place, "name", f"the API knows no name of an image, {piece.name}")
        elif isinstance(piece, (DataPart, LinkPart, FilePart)):
            by_bytes = isinstance(piece, DataPart)
            why = (
                f"the API takes images only, not {piece.mime_type}"
                if by_bytes
                else "it takes images by their bytes only"
            )
            if text_of(piece) is None:
                self._lose(place, label(piece), f"{why}; a text tells of it")
            self._add_line(place, as_text(piece))
        else:
            self._lose(place, kind_of(piece), "it is a block of another format")

    def _add_line(self, place: int, text: str) -> None:
        """A text that is a line of its own in the one that there is."""
        before = self._told.get("content", ["\n"])[-1]
        self.add(place, "content", f"{text}\n" if before.endswith("\n") else f"\n{text}\n")
