"""Images, documents and files ↔ `image`, `document` and `container_upload` blocks.

A block is read as a neutral part only where writing that part gives the same block again.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from dragoman.codec.media import ELSEWHERE, IMAGES, Media, as_text, guessed, label, text_of
from dragoman.message import DataPart, FilePart, LinkPart
from dragoman.wires.anthropic.quirks import OWN

__all__ = ["dump_media", "load_media", "told"]

_PDF = "application/pdf"
_OTHER = "application/octet-stream"


def load_media(block: Mapping[str, Any]) -> Media | None:
    """A block → its part; `None` where no part says all of it."""
    kind, source = block.get("type"), block.get("source")
    title = block.get("title")
    name = title if kind == "document" and isinstance(title, str) and title else None
    rest = {key: value for key, value in block.items() if key not in ("type", "source", "file_id", "title")}
    own, held = OWN.note(rest), OWN.note(rest, mark=True)
    match source:
        case None if isinstance(file_id := block.get("file_id"), str):
            part: Media = FilePart(file_id, _OTHER, None, held)
        case {"type": "base64", "media_type": str(mime_type), "data": str(data)}:
            try:
                part = DataPart(b64decode(data), mime_type, name, own)
            except ValueError:
                return None
        case {"type": "text", "media_type": str(mime_type), "data": str(data)}:
            try:
                part = DataPart(data.encode(), mime_type, name, own)
            except ValueError:  # half a pair of surrogates
                return None
        case {"type": "url", "url": str(url)}:
            part = LinkPart(url, _PDF if kind == "document" else None, name, own)
            if dump_media(part)[0].get("type") != kind:
                part = LinkPart(url, "image/*", name, own)
        case {"type": "file", "file_id": str(file_id)}:
            part = FilePart(file_id, "image/*" if kind == "image" else None, name, held)
        case _:
            return None
    return part if dump_media(part)[0] == block else None


def dump_media(part: Media) -> tuple[dict[str, Any], tuple[str, str] | None]:
    """A part → its block, and what is lost by it and why: a part that the API does not take becomes a text that names it."""
    kind, source, why = _source(part)
    lost = None if why is None else (label(part), why)
    if source is None:
        return told(part), lost
    block = {**OWN.fields(part.native), "type": kind, **source}
    if part.name and kind == "document":
        block["title"] = part.name
    elif part.name and lost is None:
        lost = "name", f"the API knows no name of such a file, {part.name}"
    return block, lost


def told(part: Media) -> dict[str, Any]:
    """A text block that stands for something that cannot be sent."""
    return {"type": "text", "text": as_text(part)}


def _source(part: Media) -> tuple[str, dict[str, Any] | None, str | None]:
    """Type of the block, its fields that hold the content (`None`: it cannot be sent), and what is lost."""
    if isinstance(part, FilePart):
        if OWN.is_foreign(part.native):
            return "text", None, ELSEWHERE
        kind = _file_kind(part.mime_type)
        held = {"file_id": part.id}
        return kind, held if kind == "container_upload" else {"source": {"type": "file", **held}}, None
    if isinstance(part, LinkPart):
        mime_type = part.mime_type or guessed(part.url)
        if mime_type == _PDF or mime_type is None or mime_type.startswith("image/"):
            return "document" if mime_type == _PDF else "image", {"source": {"type": "url", "url": part.url}}, None
        return "text", None, f"the API takes no {mime_type} by its URL"
    mime_type = part.mime_type
    if mime_type == _PDF or mime_type in IMAGES:
        data = b64encode(part.data).decode()
        held = {"source": {"type": "base64", "media_type": mime_type, "data": data}}
        return "document" if mime_type == _PDF else "image", held, None
    if (text := text_of(part)) is not None:
        return "document", {"source": {"type": "text", "media_type": "text/plain", "data": text}}, None
    return "text", None, f"the API takes no {mime_type}"


def _file_kind(mime_type: str | None) -> str:
    if mime_type is None or mime_type == _PDF or mime_type.startswith("text/"):
        return "document"
    return "image" if mime_type.startswith("image/") else "container_upload"
