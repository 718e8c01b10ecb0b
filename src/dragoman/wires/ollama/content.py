"""Reads and writes what a message holds: one thinking, images, one text and calls, in this order.
Images are base64 texts in a field of the message, since the API takes no URLs."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

from dragoman.codec.json_values import if_list, if_text
from dragoman.codec.media import IMAGES, describe_as_text, media_label, read_media_text
from dragoman.codec.outgoing_conversation import Outgoing
from dragoman.codec.signature_check import name_part_type
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
"""Media type by the beginning of a file's base64."""
_ORDER = ("thinking", "images", "content", "tool_calls")
_TEXTS = ("thinking", "content")


def load_content(entry: JsonMap, form: Json, *, thinks: bool) -> tuple[list[Content], list[str]]:
    """Reads the thinking, images and text of an Ollama message. Also returns the fields that were
    read.

    `thinks`: True if a message of this role may have thinking.

    Raises:
        HistoryError: its content is not a text.
    """
    content: list[Content] = []
    read = ["content"]
    if thinks and (thinking := if_text(entry.get("thinking"))):
        content.append(load_block("thinking", thinking))
        read.append("thinking")
    if images := load_images(entry):
        content += images
        read.append("images")
    if text := load_text(entry, form):
        content.append(load_block("content", text))
    return content, read


def load_text(entry: JsonMap, form: Json) -> str | None:
    """Returns the text of a message, or None if it has none. Notes in `form` how a missing text was
    written.

    Raises:
        HistoryError: it is not a text.
    """
    text = entry.get("content")
    if text is None:
        form["content"] = None if "content" in entry else "absent"
    elif not isinstance(text, str):
        raise HistoryError(f"the content of an Ollama message is a text, not {text!r:.100}")
    return text


def load_images(entry: JsonMap) -> list[Content]:
    """Reads the images of an Ollama message. Returns an empty list if the field is not a list of
    texts."""
    images = if_list(entry.get("images"))
    if not all(isinstance(image, str) for image in images):
        return []
    return [load_block("images", image) for image in images]


def load_block(field: str, value: str) -> Content:
    """Reads the value of an Ollama message's field, or one of its images, into a piece."""
    if field == "thinking":
        return ThinkingPart(value)
    if field != "images":
        return TextPart(value)
    try:
        data = b64decode(value, validate=True)
    except ValueError:
        data = b""
    # Base64 in another spelling would not be given back exactly.
    if not data or b64encode(data).decode() != value:
        return ProviderPart("image", {NAME: {"data": value}})
    for start, mime_type in _TYPES.items():
        if value.startswith(start):
            return DataPart(data, mime_type)
    return DataPart(data, _UNKNOWN)


def dump_block(piece: Content) -> tuple[str, Any] | None:
    """Returns the field of an Ollama message for a text, thinking or an image, and its value. None
    for anything else."""
    if isinstance(piece, TextPart):
        return "content", piece.text
    if isinstance(piece, ThinkingPart):
        if piece.text:
            return ("thinking", piece.text)
        return None
    image = dump_image(piece)
    if image is None:
        return None
    return ("images", image)


def dump_image(piece: Content) -> str | None:
    """Returns the base64 of an image for Ollama's `images`. None for anything else, and for an
    image block of another wire."""
    if isinstance(piece, DataPart) and piece.mime_type in (*IMAGES, _UNKNOWN):
        return b64encode(piece.data).decode()
    if isinstance(piece, ProviderPart) and piece.kind == "image":
        return if_text(OWN.fields(piece.native).get("data")) or None
    return None


class Fields:
    """The fields of one message that is being written. Pieces that come in another order are moved,
    and the loss is noted."""

    def __init__(self, out: Outgoing[Quirks], position: int, *, joined: bool = False) -> None:
        """Creates the fields of an Ollama message. `joined`: True if its texts are one anyway, so
        joining them is no loss."""
        self._out = out
        self._position = position
        self._joined = joined
        self._values: dict[str, list[Any]] = {}

    def add(self, index: int, field: str, value: Any) -> None:
        """Adds to a field of an Ollama message's content: a text to its text, anything else to its
        list."""
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
        """Adds a text as a line of its own."""
        before = self._values.get("content", ["\n"])[-1]
        self.add(index, "content", f"{text}\n" if before.endswith("\n") else f"\n{text}\n")

    def lose(self, index: int | None, what: Lost, why: str, which: str = "") -> None:
        """Notes something of this message that is left out or changed."""
        self._out.lose(self._position, index, what, why, which)

    def dump(self, empty: Any) -> Json:
        """Returns all fields in the Ollama API's order. `empty`: the value of `content` if there is
        no text; "absent" leaves the field out."""
        fields: Json = {}
        if "content" not in self._values and empty != "absent":
            fields["content"] = empty
        for field in ("content", "thinking", "images", "tool_calls"):
            if field in self._values:
                values = self._values[field]
                fields[field] = "".join(values) if field in _TEXTS else values
        return fields

    def __bool__(self) -> bool:
        """True if there are any."""
        return bool(self._values)


def dump_content(piece: Content, fields: Fields, index: int) -> None:
    """Adds a piece that is neither thinking, call nor result to its field of an Ollama message. A
    piece without a field becomes a line of the text, or is lost."""
    block = dump_block(piece)
    if block is not None:
        fields.add(index, *block)
        if isinstance(piece, DataPart) and piece.name:
            fields.lose(index, Lost.file_name, "the API knows no name of an image", piece.name)
    elif isinstance(piece, (DataPart, LinkPart, FilePart)):
        if read_media_text(piece) is None:
            why = "it takes images by their bytes only"
            if isinstance(piece, DataPart):
                why = f"the API takes images only, not {piece.mime_type}"
            fields.lose(
                index, name_part_type(piece), f"{why}; a text tells of it", media_label(piece)
            )
        fields.add_line(index, describe_as_text(piece))
    else:
        fields.lose(index, name_part_type(piece), "it is a block of another format")
