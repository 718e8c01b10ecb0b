"""What kind of file it is."""

from __future__ import annotations

import mimetypes

__all__ = ["file_type"]

_MAGIC = (
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"PK\x03\x04", "application/zip"),
)


def file_type(name: str, data: bytes) -> str:
    """The media type of a file, by its name, else by its first bytes; `application/octet-stream`: neither tells."""
    if named := mimetypes.guess_type(name)[0]:
        return named
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(
            data[8:12], "application/octet-stream"
        )
    return next(
        (mime for magic, mime in _MAGIC if data.startswith(magic)), "application/octet-stream"
    )
