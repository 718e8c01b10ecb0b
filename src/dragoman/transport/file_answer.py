"""A file in an answer: its bytes within a bound, its type and its name."""

from __future__ import annotations

import re
import zlib
from collections.abc import AsyncIterator, Mapping
from email.message import Message as Header
from urllib.parse import unquote, urlsplit

from dragoman.content import file_type
from dragoman.errors import InvalidRequestError

__all__ = ["bounded", "file_name", "media_type", "too_large"]

_ANY = "application/octet-stream"
_KNOWN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The types of images that their first bytes tell."""
_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")
_UNFIT = re.compile(
    r"[\x00-\x1f\x7f-\x9f\\/:*?\"<>|\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""What no name of a file holds, or hides how it ends."""
_LONGEST = 255


async def bounded(chunks: AsyncIterator[bytes], encoding: str, most: int) -> bytes:
    """A body's bytes, decompressed. No more than a chunk beyond the bound is ever held.

    Raises:
        InvalidRequestError: there are more, or they are compressed in a way that was not asked for, or damaged.
    """
    unpack = _unpacker(encoding)
    pieces: list[bytes] = []
    came = size = 0
    async for chunk in chunks:
        came += len(chunk)
        try:
            piece = chunk if unpack is None else unpack.decompress(chunk, most - size + 1)
        except zlib.error:
            raise _damaged() from None
        size += len(piece)
        if max(size, came) > most:
            raise too_large(most)
        pieces.append(piece)
        if unpack is not None and unpack.unused_data:
            raise _damaged()
    if unpack is not None and not unpack.eof:
        raise _damaged()
    return b"".join(pieces)


def too_large(most: int) -> InvalidRequestError:
    """The error for a file beyond a bound."""
    return InvalidRequestError(f"the file has more than {most} bytes, the most that is taken here")


def _damaged() -> InvalidRequestError:
    return InvalidRequestError("the file is compressed, and damaged")


def _unpacker(encoding: str) -> zlib._Decompress | None:  # pyright: ignore[reportPrivateUsage] it has no public name
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return None
    if name not in ("gzip", "x-gzip", "deflate"):
        raise InvalidRequestError("the file is compressed in a way that was not asked for")
    return zlib.decompressobj(zlib.MAX_WBITS | 32)  # either, by its first bytes


def media_type(declared: str, name: str | None, data: bytes) -> str:
    """The media type of a file, by what its server says, where its bytes do not say otherwise.

    Raises:
        InvalidRequestError: it is said to be an image, and is none.
    """
    kind = declared.partition(";")[0].strip().lower()
    kind = kind if _TYPE.fullmatch(kind) else ""
    found = file_type("", data)
    if found in _KNOWN and (kind in ("", _ANY) or kind.startswith("image/")):
        return found
    if kind in _KNOWN or kind == "image/jpg":
        raise InvalidRequestError(f"the file is said to be {kind}, and its bytes are none")
    return file_type(name or "", data) if kind in ("", _ANY) else kind


def file_name(url: str, headers: Mapping[str, str]) -> str | None:
    """The name of a file: what its server says, else the end of its URL's path; `None`: neither has one."""
    header = Header()
    header["content-disposition"] = headers.get("content-disposition", "")[:2048]
    try:
        name = header.get_filename() or ""
    except (ValueError, LookupError, TypeError):
        name = ""
    return _fit(name.replace("\\", "/").rpartition("/")[2]) or _fit(
        unquote(urlsplit(url).path.rpartition("/")[2])
    )


def _fit(name: str) -> str | None:
    fit = _UNFIT.sub("", name).strip(" .")
    if len(fit) <= _LONGEST:
        return fit or None
    stem, dot, end = fit.rpartition(".")
    return f"{stem[: _LONGEST - len(end) - 1]}.{end}" if dot and len(end) < 16 else fit[:_LONGEST]
