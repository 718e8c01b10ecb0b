"""The HTTP seam: a request → status, headers, byte stream. Everything above it is the same for a network and a recording."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from dragoman.request import HttpRequest

__all__ = ["Response", "Timeouts", "Transport"]


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """In seconds; `None`: wait for ever."""

    connect: float | None = 10.0
    """Until the connection stands, TLS included."""
    read: float | None = 120.0
    """Between two reads of the answer, the first included."""
    total: float | None = None
    """For the whole answer."""


class Response(Protocol):
    """An answer whose body is still to be read."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""

    async def read(self) -> bytes:
        """The next bytes of the body, as they arrive; `b""` at its end.

        Raises:
            ProviderConnectionError: the connection broke.
            ProviderTimeoutError: nothing came in time.
        """
        ...

    async def close(self) -> None:
        """Ends the answer. What is not read yet is given up at once, and its connection closed."""
        ...


class Transport(Protocol):
    """Sends requests. One value serves many event loops; each loop has connections of its own."""

    async def send(self, request: HttpRequest) -> Response:
        """Sends a request (`request.path` is the whole URL) → the answer as soon as its headers are there.

        Raises:
            ProviderConnectionError: no connection.
            ProviderTimeoutError: no answer in time.
        """
        ...

    async def close(self) -> None:
        """Closes the connections of the running event loop, and those of loops that have ended."""
        ...
