"""A recorded exchange, and the JSON file that holds one.

A file has `request` (`method`, `url`, `headers`, `body` as parsed JSON) and `response` (`status`,
`headers`, `body_text` exactly as sent). Bytes that are not text stand as base64 in `body_base64`;
`cut: true` says that the connection broke at the end of what is there. Other keys are the
recorder's notes and not read.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dragoman.errors import DecodeError
from dragoman.request import HttpRequest
from dragoman.transport.redaction import public_body, public_url

__all__ = ["Exchange", "load_exchange", "request_body"]


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, and the request that it belongs to."""

    status: int = 200
    """The HTTP status."""
    headers: Mapping[str, str] = {}
    """Names in lower case."""
    body: bytes = b""
    """All of it, after decompression."""
    chunks: int | Sequence[int] | None = None
    """Sizes in which the body arrives: a number of bytes, or offsets of the cuts; `None`: in one
    piece."""
    cut_after: int | None = None
    """After so many bytes of the body the connection breaks; `None`: it does not."""
    method: str = "POST"
    """Method of the request."""
    url: str | None = None
    """Without keys. `None`: not known, fits any."""
    request_body: Any = None
    """As parsed JSON, or bytes that are no JSON. `None`: not known, fits any."""

    def split_body(self) -> list[bytes]:
        """Returns the pieces in which the recorded body arrives, up to where it is cut."""
        body = self.body[: self.cut_after]
        match self.chunks:
            case None:
                cuts: Sequence[int] = ()
            case int(size):
                cuts = range(size, len(body), size)
            case offsets:
                cuts = sorted(offset for offset in offsets if 0 < offset < len(body))
        return [
            body[start:end]
            for start, end in zip((0, *cuts), (*cuts, len(body)), strict=True)
            if start < end
        ]

    def fits(self, request: HttpRequest) -> bool:
        """True if the recorded exchange answers this request: same method, URL and body (as JSON,
        in any order of keys), apart from secrets."""
        return (
            self.method == request.method
            and self.url in {None, public_url(request.path)}
            and (
                self.request_body is None
                or public_body(self.request_body) == public_body(request_body(request))
            )
        )


def load_exchange(path: Path) -> Exchange:
    """Reads a recorded exchange from its JSON file.

    Raises:
        DecodeError: it is not one.
    """
    try:
        record = msgspec.json.decode(path.read_bytes(), type=_Record)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise DecodeError(f"{path} is no recorded exchange ({error}): record it again") from error
    request, response = record.request, record.response
    body = _decode_body(response)
    sent_body = request.body
    if sent_body is None and request.body_base64:
        sent_body = _decode_body(request)
    return Exchange(
        status=response.status,
        headers={name.lower(): value for name, value in (response.headers or {}).items()},
        body=body,
        cut_after=len(body) if response.cut else None,
        method=request.method,
        url=None if request.url is None else public_url(request.url),
        request_body=sent_body,
    )


def request_body(request: HttpRequest) -> Any:
    """Returns the body of an exchange's request as parsed JSON, or as bytes if it is none."""
    body = request.body
    if body is None:
        return None
    data = body if isinstance(body, bytes) else msgspec.json.encode(dict(body))
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError):
        return data


class _Request(msgspec.Struct):
    url: str | None
    method: str = "POST"
    body: Any = None
    body_base64: str | None = None
    body_text: str | None = None


class _Response(msgspec.Struct):
    status: int
    headers: dict[str, str] | None = None
    body_text: str | None = None
    body_base64: str | None = None
    cut: bool = False


class _Record(msgspec.Struct):
    request: _Request
    response: _Response


def _decode_body(side: _Request | _Response) -> bytes:
    """Returns the bytes of a recorded body."""
    if side.body_base64:
        return base64.b64decode(side.body_base64)
    return (side.body_text or "").encode()
