"""How large a file is for a model: pixels of an image, pages of a PDF; told by its bytes alone."""

from __future__ import annotations

from struct import error, unpack_from
from typing import NamedTuple

from dragoman.codec.media import Media, guessed
from dragoman.message import DataPart, LinkPart

__all__ = ["USUAL", "FileSize", "file_size"]

USUAL = (1024, 1024)
"""Pixels of an image that nobody has seen, such as one behind a URL."""
_PAGE = b"/Type /Page", b"/Type/Page"
_SEARCHED = 1 << 20
"""Bytes of a file at most in which its pages or its size are looked for."""
_STARTS = {0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF}
"""Markers of a JPEG behind which its size stands."""


class FileSize(NamedTuple):
    """What of a file a model reads."""

    kind: str
    """`image`, `audio`, `video`, or `document`."""
    width: int = 0
    """Of an image, in pixels."""
    height: int = 0
    """Of an image, in pixels."""
    pages: int = 0
    """Of a document."""
    length: int = 0
    """Of the file, in bytes; 0: not known."""


def file_size(part: Media) -> FileSize:
    """The size of a file, as far as its bytes tell; else that of a usual one."""
    mime_type = (
        part.mime_type or (guessed(part.url) if isinstance(part, LinkPart) else None) or "image/*"
    )
    data = part.data if isinstance(part, DataPart) else b""
    kind = mime_type.partition("/")[0]
    if kind == "image":
        width, height = _pixels(data) or USUAL
        return FileSize(kind, width, height, length=len(data))
    if kind in ("audio", "video"):
        return FileSize(kind, length=len(data))
    return FileSize("document", pages=_pages(data), length=len(data))


def _pages(data: bytes) -> int:
    head = data[:_SEARCHED]
    return max(1, sum(head.count(mark) - head.count(mark + b"s") for mark in _PAGE))


def _pixels(data: bytes) -> tuple[int, int] | None:
    try:
        width, height = _read_pixels(data)
    except (error, ValueError, IndexError):
        return None
    return (width, height) if width > 0 and height > 0 else None


def _read_pixels(data: bytes) -> tuple[int, int]:
    """Width and height, where the format of the image has them.

    Raises:
        ValueError: it is of no known format.
        struct.error: it ends before them.
    """
    if data.startswith(b"\x89PNG"):
        return unpack_from(">II", data, 16)
    if data.startswith(b"GIF8"):
        return unpack_from("<HH", data, 6)
    if data.startswith(b"\xff\xd8"):
        return _jpeg(data)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _webp(data)
    raise ValueError("no known image")


def _jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    while at < min(len(data), _SEARCHED):
        if data[at] != 0xFF:
            raise ValueError("no marker")
        if data[at + 1] in _STARTS:
            height, width = unpack_from(">HH", data, at + 5)
            return width, height
        at += 1 if data[at + 1] == 0xFF else 2 + max(2, unpack_from(">H", data, at + 2)[0])
    raise ValueError("no size")


def _webp(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if kind == b"VP8 ":
        width, height = unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L":
        bits = unpack_from("<I", data, 21)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = (
        unpack_from("<I", data, 24)[0] & 0xFFFFFF,
        unpack_from("<I", data + b"\0", 27)[0] & 0xFFFFFF,
    )
    return width + 1, height + 1
