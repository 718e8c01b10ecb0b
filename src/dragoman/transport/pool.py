"""The aiohttp connections of one event loop. Imported with the first request."""

from __future__ import annotations

import asyncio
import os
import select
import socket
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import aiohttp
import msgspec

from dragoman.transport import environment
from dragoman.transport.aiohttp_response import AiohttpResponse
from dragoman.transport.base import Bounds, Timeouts
from dragoman.transport.failure import FAILURES, translate_error

if TYPE_CHECKING:
    from dragoman.request import HttpRequest

__all__ = ["Pool"]

# Without compression, because a compressed stream arrives in lumps.
_HEADERS = {
    "user-agent": "dragoman",
    "accept-encoding": "identity",
}
_HEADER_BYTES = 65536
_MAX_SELECTED = 16
"""Connections up to which asking each one for unread data is faster than two turns of the event
loop."""
_SELECTABLE = 1024
"""File numbers that `select` cannot take begin here."""
_KEEPALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))


class Pool:
    """A connection pool, made inside its event loop with the proxies and certificates that the
    environment has then."""

    def __init__(self, timeouts: Timeouts, bounds: Bounds) -> None:
        """Creates a pool without connections."""
        self._timeouts = timeouts
        self._bounds = bounds
        self._proxies = environment.find_proxies()
        self._answers: WeakSet[AiohttpResponse] = WeakSet()
        self._sockets: WeakSet[socket.socket] = WeakSet()
        # The socket factory is no method: a reference cycle would outlive the transport.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,
                ssl=environment.load_certificates(os.environ) or True,
                socket_factory=partial(_open_socket, self._sockets),
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=_HEADERS,
            timeout=aiohttp.ClientTimeout(
                total=timeouts.total, connect=timeouts.connect, sock_read=timeouts.read
            ),
            max_line_size=_HEADER_BYTES,
            max_field_size=_HEADER_BYTES,
        )

    @property
    def closed(self) -> bool:
        """Returns True once it sends no more."""
        return self._session.closed

    async def send(self, request: HttpRequest, owner: object) -> AiohttpResponse:
        """Sends a request on a connection of the pool. `owner` lives as long as the answer does.

        Raises:
            ProviderConnectionError, ProviderTimeoutError, SettingsError: see `Transport.send`.
        """
        url, body, headers = request.path, request.body, request.headers
        if body is not None and not isinstance(body, bytes):
            body, headers = (
                msgspec.json.encode(dict(body)),
                {"content-type": "application/json", **headers},
            )
        if self._has_unread_data():
            # The event loop needs two turns to notice that an idle connection was closed: it reads,
            # then it tells.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        try:
            response = await self._session.request(
                request.method,
                url,
                data=body,
                headers=headers,
                proxy=environment.find_proxy(url, self._proxies),
                allow_redirects=False,
            )
        except FAILURES as error:
            raise translate_error(error, url, self._timeouts) from None
        answer = AiohttpResponse(response, url, self._timeouts, self._bounds, owner)
        self._answers.add(answer)
        return answer

    def _has_unread_data(self) -> bool:
        """True if a connection of the pool may have received something, such as its end, that the
        event loop has not noticed."""
        numbers = [number for opened in self._sockets if (number := opened.fileno()) >= 0]
        if len(numbers) > _MAX_SELECTED or max(numbers, default=0) >= _SELECTABLE:
            return True
        return bool(numbers) and bool(select.select(numbers, [], [], 0)[0])

    async def close(self) -> None:
        """Closes all connections of the pool; answers that are still being read end with an
        error."""
        for answer in list(self._answers):
            await answer.close()
        await self._session.close()

    def discard(self) -> None:
        """Closes the pool after its event loop was closed, when nothing can be awaited."""
        with suppress(StopIteration):
            self._session.close().send(None)


def _open_socket(sockets: WeakSet[socket.socket], address: tuple[Any, ...]) -> socket.socket:
    """Opens a socket of the pool with TCP keep-alive, so that a lost peer is noticed during long
    answers and middleboxes keep the connection."""
    # family, type, protocol
    opened = socket.socket(*address[:3])
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    sockets.add(opened)
    return opened
