"""The HTTP seam: a request → status, headers, byte stream. Everything above is the same for network and recording."""

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
    read: float | None = 600.0
    """For each read of the answer, the first included. A model that thinks without a stream is silent for minutes."""
    total: float | None = None
    """For the whole answer to one attempt, from the call of `send` to the end of the body."""


class Response(Protocol):
    """An answer whose body is still to be read."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case."""
        ...

    async def read(self) -> bytes:
        """The next bytes of the body, as they arrive; `b""` at its end.

        Raises:
            StreamCutError: the connection ended before the body did; all that came before it has been read.
            ProviderConnectionError: the connection broke, or the answer was closed.
            ProviderTimeoutError: nothing came in time.
        """
        ...

    async def close(self) -> None:
        """Ends the answer. What is not read yet is given up at once, and its connection closed; one that was read to
        its end goes back to the pool. Never waits, so that it also works in a cancelled scope."""
        ...


class Transport(Protocol):
    """Sends requests. One value serves many event loops; each loop has connections of its own."""

    async def send(self, request: HttpRequest) -> Response:
        """Sends a request (`request.path` is the whole URL) → the answer as soon as its headers are there.

        Raises:
            ProviderConnectionError: no connection, or a broken one.
            ProviderTimeoutError: no connection or no answer in time.
            SettingsError: a URL, header, proxy or certificate file that cannot be used.
        """
        ...

    async def close(self) -> None:
        """Closes the connections of the running event loop, and those of loops that have ended."""
        ...
