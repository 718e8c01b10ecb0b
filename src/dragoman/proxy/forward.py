"""Passes a request on to a provider, and its answer back as it arrives.

Bytes are not changed: neither the path and the body of the request nor the answer, which stays
compressed. Left out are the headers that belong to one connection, and of `Accept-Encoding` what a
recording could not be read in.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from dragoman.errors import DecodeError
from dragoman.transport import environment
from dragoman.transport.base import Timeouts
from dragoman.transport.failure import FAILURES, translate_error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["Forwarder", "ProviderAnswer", "decompress", "RawHeaders"]

RawHeaders = list[tuple[bytes, bytes]]
"""Names and values as they came, one pair for each line."""

_OF_CONNECTIONS = frozenset(
    [
        b"connection",
        b"expect",
        b"host",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    ]
)
_ENCODINGS = b"gzip, deflate"
"""Compression in which an answer can be recorded."""
_TIMEOUTS = Timeouts()
_HEADER_BYTES = 65536


class ProviderAnswer(NamedTuple):
    """An answer of a provider whose body is still to be read."""

    status: int
    """The HTTP status."""
    headers: RawHeaders
    """Those that go beyond the connection."""
    pieces: AsyncIterator[bytes]
    """Those of the body, still compressed. Raises a `ProviderError` where the connection breaks."""


class Forwarder:
    """Sends requests to providers, within its `running` block."""

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Opens the connections, with the proxies and certificates of the environment, and closes
        them."""
        self._proxies = environment.find_proxies()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, ssl=environment.load_certificates(os.environ) or True
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            # The client gets the bytes as they are.
            auto_decompress=False,
            skip_auto_headers=("accept", "accept-encoding", "content-type", "user-agent"),
            timeout=aiohttp.ClientTimeout(
                total=None, connect=_TIMEOUTS.connect, sock_read=_TIMEOUTS.read
            ),
            max_line_size=_HEADER_BYTES,
            max_field_size=_HEADER_BYTES,
        )
        async with self._session:
            yield

    @asynccontextmanager
    async def send(
        self, method: str, url: str, headers: RawHeaders, body: bytes
    ) -> AsyncGenerator[ProviderAnswer]:
        """Sends a request, and closes its answer at the end of the block.

        Raises:
            ProviderConnectionError: no connection, or a broken one.
            ProviderTimeoutError: no connection or no answer in time.
        """
        request_headers = CIMultiDict(
            (name.decode("latin-1"), text.decode("latin-1"))
            for name, text in _narrow_encodings(_without_connection(headers))
            if name != b"content-length"
        )
        try:
            response = await self._session.request(
                method,
                # Else its escapes would be written anew.
                URL(url, encoded=True),
                data=body if body or _has_length(headers) else None,
                headers=request_headers,
                proxy=environment.find_proxy(url, self._proxies),
                allow_redirects=False,
            )
        except FAILURES as error:
            raise translate_error(error, url, _TIMEOUTS) from None
        async with response:
            received = [(name.lower(), text) for name, text in response.raw_headers]
            yield ProviderAnswer(
                response.status,
                list(_without_connection(received)),
                _read_pieces(response, url),
            )


async def _read_pieces(response: aiohttp.ClientResponse, url: str) -> AsyncIterator[bytes]:
    """Yields the pieces of an answer's body as they arrive."""
    try:
        async for piece in response.content.iter_any():
            yield piece
    except FAILURES as error:
        raise translate_error(error, url, _TIMEOUTS) from None


def decompress(body: bytes, encoding: str, most: int) -> bytes:
    """Returns a body without its compression.

    Raises:
        DecodeError: it is compressed in another way than gzip or deflate, damaged, or longer than
            `most` bytes.
    """
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise DecodeError(f"a body in {encoding!r:.50} cannot be recorded")
    # Some servers send deflate without the header of zlib.
    is_bare = encoding == "deflate" and body[:1] != b"\x78"
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS if is_bare else zlib.MAX_WBITS | 32)
    try:
        unpacked = unpacker.decompress(body, most + 1)
    except zlib.error as error:
        raise DecodeError(f"a body in {encoding} cannot be read: {error}") from error
    if len(unpacked) > most:
        raise DecodeError(f"a body of more than {most} bytes cannot be recorded")
    return unpacked


def _without_connection(headers: Iterable[tuple[bytes, bytes]]) -> Iterable[tuple[bytes, bytes]]:
    """Yields the headers that go beyond one connection."""
    headers = list(headers)
    options = {
        option.strip().lower()
        for name, text in headers
        if name == b"connection"
        for option in text.split(b",")
    }
    return [pair for pair in headers if pair[0] not in _OF_CONNECTIONS | options]


def _narrow_encodings(
    headers: Iterable[tuple[bytes, bytes]],
) -> Iterable[tuple[bytes, bytes]]:
    """Yields a request's headers, with those compressions alone that a recording can be read in."""
    for name, text in headers:
        if name == b"accept-encoding":
            text = _ENCODINGS if b"gzip" in text.lower() else b"identity"
        yield name, text


def _has_length(headers: RawHeaders) -> bool:
    """True if a request says that it has a body, be it empty."""
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in headers)
