"""Files by their bytes: as URLs that hold them (`data:`), as base64 that is given back exactly; and what stands for a file
that cannot be sent."""

from __future__ import annotations

from base64 import b64decode, b64encode
from mimetypes import guess_type
from typing import Any
from urllib.parse import urlsplit

from dragoman.message import DataPart, FilePart, LinkPart

__all__ = ["ELSEWHERE", "IMAGES", "Media", "as_text", "audio_type", "data_url", "decoded", "from_url", "guessed"]

Media = DataPart | LinkPart | FilePart
IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
"""The kinds of images that all providers take that take any."""
ELSEWHERE = "another provider holds the file"
"""Why a `FilePart` is not sent."""


def data_url(part: DataPart) -> str:
    """Data as a `data:` URL."""
    return f"data:{part.mime_type};base64,{b64encode(part.data).decode()}"


def from_url(url: str, name: str | None = None) -> DataPart | LinkPart:
    """A URL → the data in it, or a link where it holds none (or holds it in a way that could not be given back)."""
    head, comma, text = url.partition(";base64,")
    if comma and head.startswith("data:") and head != "data:" and (data := decoded(text)) is not None:
        return DataPart(data, head[5:], name)
    return LinkPart(url, name=name)


def decoded(text: Any) -> bytes | None:
    """Base64 → bytes; `None` where it is none, or encoding them again would not give the same text."""
    try:
        data = b64decode(text, validate=True)
    except (ValueError, TypeError):
        return None
    return data if b64encode(data).decode() == text else None


def audio_type(data: bytes) -> str | None:
    """The media type of audio that begins so; `None`: it has no mark."""
    if data[:4] == b"RIFF":
        return "audio/wav"
    if data[:3] == b"ID3" or (data[:1] == b"\xff" and data[1:2] >= b"\xe0"):
        return "audio/mpeg"
    return {b"OggS": "audio/ogg", b"fLaC": "audio/flac"}.get(data[:4])


def as_text(part: Media) -> str:
    """What stands for a file that cannot be sent: its kind, where it is or its name, and what it says where it is text."""
    kind = part.mime_type or (guessed(part.url) if isinstance(part, LinkPart) else None) or "file"
    where = part.url if isinstance(part, LinkPart) else part.name
    text = f"[media: {kind}] {where}" if where else f"[media: {kind}]"
    if isinstance(part, DataPart) and kind.startswith("text/"):
        try:
            return f"{text}\n{part.data.decode()}"
        except UnicodeDecodeError:
            pass
    return text


def guessed(url: str) -> str | None:
    """The media type that a URL's path tells."""
    try:
        return guess_type(urlsplit(url).path)[0]
    except ValueError:  # no URL at all
        return None
