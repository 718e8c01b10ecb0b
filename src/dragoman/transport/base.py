"""The HTTP seam: a request → status, headers, byte stream. Everything above is the same for network
and recording."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from dragoman.errors import ProviderConnectionError
from dragoman.request import HttpRequest

__all__ = ["Bounds", "ConnectionLostError", "Response", "Timeouts", "Transport", "read_all"]


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """In seconds; `None`: wait for ever."""

    connect: float | None = 10.0
    """Until the connection stands, TLS included."""
    read: float | None = 600.0
    """For each read of the answer, the first included. A model that thinks without a stream is
    silent for minutes."""
    total: float | None = None
    """For the whole answer to one attempt, from the call of `send` to the end of the body."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on the bytes of one response, after decompression; `None`: no limit."""

    line: int | None = 2**26
    """Of a stream, from the end of one line to the next. A picture in an answer is one line. More
    is a `ProviderError`."""
    body: int | None = 2**28
    """Of the whole body. More is a `ProviderError`."""
    error_body: int | None = 2**18
    """Of the body of an answer that is no success. What is more is left out."""
    error_seconds: float | None = 10.0
    """Seconds until such a body must be complete. What has not come by then is left out."""


class ConnectionLostError(ProviderConnectionError):
    """A connection that stood was closed before anything of an answer came, as servers do with one
    that was idle."""


class Response(Protocol):
    """An answer whose body is still to be read."""

    @property
    def status(self) -> int:
        """Returns the HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Returns the headers, with names in lower case."""
        ...

    async def read(self) -> bytes:
        """Returns the next bytes of the response's body as they arrive over the transport; `b""` at
        its end.

        Raises:
            StreamCutError: the connection ended before the body did; all that came before it has been read.
            ProviderConnectionError: the connection broke, or the answer was closed.
            ProviderTimeoutError: nothing came in time.
            ProviderError: more came than is taken.
        """
        ...

    async def close(self) -> None:
        """Ends the response of any transport. What is not read yet is given up at once, and its
        connection closed; one that was read to its end goes back to the pool. Never waits, so that
        it also works in a cancelled scope."""
        ...


class Transport(Protocol):
    """Sends requests. One value serves many event loops; each loop has connections of its own."""

    async def send(self, request: HttpRequest) -> Response:
        """Sends a request by this transport (`request.path` is the whole URL). Returns the response
        as soon as its headers are there.

        Raises:
            ProviderConnectionError: no connection, or a broken one; a `ConnectionLostError` where the next may well hold.
            ProviderTimeoutError: no connection or no answer in time.
            SettingsError: a URL, header, proxy or certificate file that cannot be used.
        """
        ...

    async def close(self) -> None:
        """Closes the connections of the running event loop, and those of loops that have ended."""
        ...


async def read_all(response: Response) -> bytes:
    """Reads the rest of a response body."""
    chunks: list[bytes] = []
    while data := await response.read():
        chunks.append(data)
    return b"".join(chunks)
