"""Files by their bytes: as URLs that hold them (`data:`), as base64 that is given back exactly, and what audio it is."""

from __future__ import annotations

from base64 import b64decode, b64encode

from dragoman.message import DataPart, LinkPart

__all__ = ["audio_type", "data_url", "decoded", "from_url"]


def data_url(part: DataPart) -> str:
    """Data as a `data:` URL."""
    return f"data:{part.mime_type};base64,{b64encode(part.data).decode()}"


def from_url(url: str, name: str | None = None) -> DataPart | LinkPart:
    """A URL → the data in it, or a link where it holds none (or holds it in a way that could not be given back)."""
    head, comma, text = url.partition(";base64,")
    if comma and head.startswith("data:") and head != "data:" and (data := decoded(text)) is not None:
        return DataPart(data, head[5:], name)
    return LinkPart(url, name=name)


def decoded(text: str) -> bytes | None:
    """Base64 → bytes; `None` where encoding them again would not give the same text."""
    try:
        data = b64decode(text, validate=True)
    except ValueError:
        return None
    return data if b64encode(data).decode() == text else None


def audio_type(data: bytes) -> str | None:
    """The media type of audio that begins so; `None`: it has no mark."""
    if data[:4] == b"RIFF":
        return "audio/wav"
    if data[:3] == b"ID3" or (data[:1] == b"\xff" and data[1:2] >= b"\xe0"):
        return "audio/mpeg"
    return {b"OggS": "audio/ogg", b"fLaC": "audio/flac"}.get(data[:4])
