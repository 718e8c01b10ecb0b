"""Files by their bytes: as URLs that hold them (`data:`), as base64 that is given back exactly; and
what stands for a file that cannot be sent."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from mimetypes import guess_type
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from dragoman.message import DataPart, FilePart, LinkPart

__all__ = [
    "ELSEWHERE",
    "IMAGES",
    "Media",
    "describe_as_text",
    "audio_type",
    "dump_data_url",
    "decode_base64",
    "load_url",
    "guess_media_type",
    "media_label",
    "decode_plain_url",
    "read_media_text",
]

Media = DataPart | LinkPart | FilePart
IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
"""The kinds of images that all providers take that take any."""
ELSEWHERE = "another provider holds the file"
"""Why a `FilePart` is not sent."""
_BINARY = re.compile(r"(image|audio|video|font)/|application/pdf\b", re.IGNORECASE)
"""Types whose files are none of text, whatever their bytes look like."""
_TEXT = re.compile(r"[^;]*(\+xml|\+json)\b|video/mp2t\b", re.IGNORECASE)
"""But these are, among them the type by which TypeScript's files are known."""
_CONTROL = re.compile(rb"[\0-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]").search
"""Bytes that no text holds."""


def dump_data_url(part: DataPart) -> str:
    """Returns the data as a `data:` URL."""
    return f"data:{part.mime_type};base64,{b64encode(part.data).decode()}"


def load_url(url: str, name: str | None = None) -> DataPart | LinkPart:
    """Returns the data in a media URL, or a link if the URL holds none (or holds it in a form that
    could not be written back)."""
    head, comma, text = url.partition(";base64,")
    if (
        comma
        and head.startswith("data:")
        and head != "data:"
        and (data := decode_base64(text)) is not None
    ):
        return DataPart(data, head[5:], name)
    return LinkPart(url, name=name)


def decode_plain_url(url: str) -> DataPart | None:
    """Returns the data in a `data:` URL that is percent-encoded and not base64 (RFC 2397); None for
    any other URL.

    No provider takes such a URL. `load_url` leaves it a link, since it could not be given back as
    it was.
    """
    head, comma, text = url.partition(",")
    if not comma or not head.lower().startswith("data:") or head.lower().endswith(";base64"):
        return None
    try:
        data = unquote_to_bytes(text)
    except UnicodeEncodeError:
        # Half a character.
        return None
    return DataPart(data, head[5:].partition(";")[0] or "text/plain")


def decode_base64(text: Any) -> bytes | None:
    """Returns the media bytes of a base64 text, or None if it is none or encoding them again gives
    another text."""
    try:
        data = b64decode(text, validate=True)
    except (ValueError, TypeError):
        return None
    # Other padding or other last bits give the same bytes, but could not be written back.
    if b64encode(data).decode() != text:
        return None
    return data


def audio_type(data: bytes) -> str | None:
    """Returns the media type (MIME) of audio by its first bytes, or None."""
    if data[:4] == b"RIFF":
        return "audio/wav"
    # MP3: a tag, or the eleven set bits with which each of its frames begins.
    if data[:3] == b"ID3" or (data[:1] == b"\xff" and data[1:2] >= b"\xe0"):
        return "audio/mpeg"
    return {b"OggS": "audio/ogg", b"fLaC": "audio/flac"}.get(data[:4])


def read_media_text(part: Media) -> str | None:
    """Returns the content of a file that is text by its media type and its bytes (UTF-8), else
    None."""
    if not isinstance(part, DataPart) or (
        _BINARY.match(part.mime_type) and not _TEXT.match(part.mime_type)
    ):
        return None
    try:
        if _CONTROL(part.data):
            return None
        return part.data.decode()
    except UnicodeDecodeError:
        return None


def describe_as_text(part: Media) -> str:
    """Returns the text that replaces a media file which a target cannot hold: its type, its name or
    URL, and its content if that is text.

    All else of it is lost: never is a file's base64 part of a text. A wire notes a `Loss` where
    `read_media_text` is `None`.
    """
    mime_type, where = _describe_file(part)
    if where:
        head = f"[media: {mime_type}] {where}"
    else:
        head = f"[media: {mime_type}]"
    if (text := read_media_text(part)) is None:
        return head
    return f"{head}\n{text}"


def media_label(part: Media) -> str:
    """Returns the name of a file for a `Loss`, such as `video/mp4 clip.mp4`."""
    return " ".join(filter(None, _describe_file(part)))


def _describe_file(part: Media) -> tuple[str, str | None]:
    """Returns the kind of a media file, and its name or where it is."""
    mime_type = part.mime_type
    if not isinstance(part, LinkPart):
        return mime_type or "file", part.name
    mime_type = mime_type or guess_media_type(part.url) or "file"
    # Such a URL is the file itself: base64 has no place in a text.
    if part.url.startswith("data:"):
        return mime_type, part.name
    return mime_type, part.url


def guess_media_type(url: str) -> str | None:
    """Returns the media type that a URL's path suggests, or None."""
    try:
        return guess_type(urlsplit(url).path)[0]
    except ValueError:
        # No URL at all.
        return None
