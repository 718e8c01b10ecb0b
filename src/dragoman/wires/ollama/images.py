"""Images: base64 texts in a field of the message ⇄ `DataPart`. The API takes no URLs."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from dragoman.codec.json_values import if_list, if_text
from dragoman.codec.media import IMAGES
from dragoman.message import Content, DataPart, ProviderPart
from dragoman.wires.ollama.quirks import NAME, OWN

__all__ = ["dump_image", "load_images"]

_UNKNOWN = "image/*"
_TYPES = {"iVBOR": "image/png", "/9j/": "image/jpeg", "UklGR": "image/webp", "R0lGOD": "image/gif"}
"""How the base64 of a file of each type begins."""


def load_images(message: Mapping[str, Any]) -> list[Content]:
    """The images of a message; none where the field is not the list of texts that it should be."""
    images = if_list(message.get("images"))
    return [_load(image) for image in images] if all(isinstance(image, str) for image in images) else []


def dump_image(piece: Content) -> str | None:
    """An image → its text; `None` for what is no image, or none of this wire's."""
    if isinstance(piece, DataPart) and piece.mime_type in (*IMAGES, _UNKNOWN):
        return b64encode(piece.data).decode()
    return (
        if_text(OWN.fields(piece.native).get("data")) or None
        if isinstance(piece, ProviderPart) and piece.kind == "image"
        else None
    )


def _load(text: str) -> Content:
    try:
        data = b64decode(text, validate=True)
    except ValueError:
        data = b""
    if not data or b64encode(data).decode() != text:
        return ProviderPart("image", {NAME: {"data": text}})
    return DataPart(data, next((mime for start, mime in _TYPES.items() if text.startswith(start)), _UNKNOWN))
