"""What a message holds ⇄ pieces of content: one thinking, images, one text and calls, in this
order. Images are base64 texts in a field of the message; the API takes no URLs."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

from dragoman.codec.json_values import if_list, if_text
from dragoman.codec.media import IMAGES, describe_as_text, media_label, read_media_text
from dragoman.codec.outgoing import Outgoing
from dragoman.codec.replay import name_part_type
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Lost
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    ProviderPart,
    TextPart,
    ThinkingPart,
)
from dragoman.wires.ollama.quirks import NAME, OWN, Quirks

__all__ = [
    "Fields",
    "dump_block",
    "dump_content",
    "dump_image",
    "load_block",
    "load_content",
    "load_images",
    "load_text",
]

_UNKNOWN = "image/*"
_TYPES = {"iVBOR": "image/png", "/9j/": "image/jpeg", "UklGR": "image/webp", "R0lGOD": "image/gif"}
"""How the base64 of a file of each type begins."""
_ORDER = ("thinking", "images", "content", "tool_calls")
_TEXTS = ("thinking", "content")


def load_content(entry: JsonMap, form: Json, *, thinks: bool) -> tuple[list[Content], list[str]]:
    """The thinking (where the message may have one), images and text of a message → its content,
    and the fields that were read.

    Raises:
        HistoryError: its text is none.
    """
    thinking = if_text(entry.get("thinking")) if thinks else ""
    images, text = load_images(entry), load_text(entry, form)
    content: list[Content] = [
        *([load_block("thinking", thinking)] if thinking else []),
        *images,
        *([load_block("content", text)] if text else []),
    ]
    return content, [
        "content",
        *(["thinking"] if thinking else []),
        *(["images"] if images else []),
    ]


def load_text(entry: JsonMap, form: Json) -> str | None:
    """The text of a message; `None` where it has none, and how that was written goes to `form`.

    Raises:
        HistoryError: it is no text.
    """
    text = entry.get("content")
    if text is None:
        form["content"] = None if "content" in entry else "absent"
    elif not isinstance(text, str):
        raise HistoryError(f"the content of an Ollama message is a text, not {text!r:.100}")
    return text


def load_images(entry: JsonMap) -> list[Content]:
    """The images of a message; none where the field is not the list of texts that it should be."""
    images = if_list(entry.get("images"))
    return (
        [load_block("images", image) for image in images]
        if all(isinstance(image, str) for image in images)
        else []
    )


def load_block(field: str, value: str) -> Content:
    """What a field of a message holds, or one of the images → the piece."""
    if field != "images":
        return ThinkingPart(value) if field == "thinking" else TextPart(value)
    try:
        data = b64decode(value, validate=True)
    except ValueError:
        data = b""
    if not data or b64encode(data).decode() != value:
        return ProviderPart("image", {NAME: {"data": value}})
    return DataPart(
        data, next((mime for start, mime in _TYPES.items() if value.startswith(start)), _UNKNOWN)
    )


def dump_block(piece: Content) -> tuple[str, Any] | None:
    """A text, a thinking or an image → its field of a message, and the value; `None` for what is
    none of these."""
    if isinstance(piece, TextPart):
        return "content", piece.text
    if isinstance(piece, ThinkingPart):
        return ("thinking", piece.text) if piece.text else None
    image = dump_image(piece)
    return None if image is None else ("images", image)


def dump_image(piece: Content) -> str | None:
    """An image → its text; `None` for what is no image, or none of this wire's."""
    if isinstance(piece, DataPart):
        return b64encode(piece.data).decode() if piece.mime_type in (*IMAGES, _UNKNOWN) else None
    if isinstance(piece, ProviderPart) and piece.kind == "image":
        return if_text(OWN.fields(piece.native).get("data")) or None
    return None


class Fields:
    """The fields of one message that is written. Pieces that come in another order are moved, and
    the loss is noted."""

    def __init__(self, out: Outgoing[Quirks], position: int, *, joined: bool = False) -> None:
        """`joined`: its texts are one anyway."""
        self._out = out
        self._position = position
        self._joined = joined
        self._values: dict[str, list[Any]] = {}

    def add(self, index: int, field: str, value: Any) -> None:
        """More of a field: text to text, anything else to a list."""
        if any(later in self._values for later in _ORDER[_ORDER.index(field) + 1 :]):
            self.lose(
                index,
                Lost.order,
                f"this format has the {field} of a message before what it stands behind",
            )
        if field in _TEXTS and field in self._values and not self._joined:
            self._joined = True
            self.lose(None, Lost.texts, f"this format has one {field} a message; they are joined")
        self._values.setdefault(field, []).append(value)

    def add_line(self, index: int, text: str) -> None:
        """A text that is a line of its own in the one that there is."""
        before = self._values.get("content", ["\n"])[-1]
        self.add(index, "content", f"{text}\n" if before.endswith("\n") else f"\n{text}\n")

    def lose(self, index: int | None, what: Lost, why: str, which: str = "") -> None:
        """Notes something of this message that is left out or changed."""
        self._out.lose(self._position, index, what, why, which)

    def dump(self, empty: Any) -> Json:
        """All of them, in the API's order. `empty`: what stands for a text where there is none;
        "absent": nothing does."""
        fields = {
            field: "".join(self._values[field]) if field in _TEXTS else self._values[field]
            for field in ("content", "thinking", "images", "tool_calls")
            if field in self._values
        }
        return fields if "content" in fields or empty == "absent" else {"content": empty, **fields}

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._values)


def dump_content(piece: Content, fields: Fields, index: int) -> None:
    """A piece that is neither thinking, call nor result goes to its field; what the API has none
    for is a loss, or a line of the text."""
    block = dump_block(piece)
    if block is not None:
        fields.add(index, *block)
        if isinstance(piece, DataPart) and piece.name:
            fields.lose(index, Lost.file_name, "the API knows no name of an image", piece.name)
    elif isinstance(piece, (DataPart, LinkPart, FilePart)):
        if read_media_text(piece) is None:
            by_bytes = f"the API takes images only, not {piece.mime_type}"
            why = by_bytes if isinstance(piece, DataPart) else "it takes images by their bytes only"
            fields.lose(
                index, name_part_type(piece), f"{why}; a text tells of it", media_label(piece)
            )
        fields.add_line(index, describe_as_text(piece))
    else:
        fields.lose(index, name_part_type(piece), "it is a block of another format")
