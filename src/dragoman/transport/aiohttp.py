"""HTTP through aiohttp, which is imported with the first request."""

from __future__ import annotations

import weakref
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from dragoman.request import HttpRequest
from dragoman.runtime import running_loop
from dragoman.transport.base import Bounds, Response, Timeouts

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from dragoman.transport.pool import Pool

    _Pools = dict[AbstractEventLoop, tuple[Pool, AsyncGenerator[None]]]

__all__ = ["AiohttpTransport"]


class AiohttpTransport:
    """A `Transport` over HTTP/1.1, with connections kept alive and reused, no cookies, and
    redirects not followed.

    One value serves any number of event loops and threads; each loop has connections of its own.
    They are closed by `close()`, by the end of the loop (`asyncio.run` and `anyio.run` both
    announce it), or when the transport is no longer referenced, whichever comes first; a transport
    that was closed opens new ones when it is used again.

    Proxies come from `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` (requests to this
    machine itself never use one); certificate authorities from `SSL_CERT_FILE` and `SSL_CERT_DIR`,
    or else `REQUESTS_CA_BUNDLE`.

    Args:
        timeouts: how long to wait for what.
        bounds: how much of an answer is taken.
    """

    def __init__(self, timeouts: Timeouts = Timeouts(), bounds: Bounds = Bounds()) -> None:  # noqa: B008 - frozen values
        """Creates a transport over aiohttp, which opens a pool for each event loop."""
        self._timeouts = timeouts
        self._bounds = bounds
        self._pools: _Pools = {}
        # Also keeps the pools out of the garbage that a transport may be part of, where aiohttp
        # would complain of them.
        weakref.finalize(self, _abandon_pools, self._pools)

    async def send(self, request: HttpRequest) -> Response:
        """See `Transport.send`. The request's headers stand above those that HTTP needs
        (`user-agent`, `accept`, …)."""
        return await (await self._open_pool()).send(request, self)

    async def close(self) -> None:
        """Closes aiohttp's connections. See `Transport.close`. An answer that is still being read
        on this loop ends with an error."""
        opened = self._pools.pop(running_loop(), None)
        if opened is not None:
            pool, keeper = opened
            await pool.close()
            await keeper.aclose()
        _discard_ended(self._pools)

    async def _open_pool(self) -> Pool:
        """Returns the aiohttp connection pool of the running event loop."""
        from dragoman.transport.pool import Pool

        loop = running_loop()
        opened = self._pools.get(loop)
        if opened is not None and not opened[0].closed:
            return opened[0]
        _discard_ended(self._pools)
        pool = Pool(self._timeouts, self._bounds)
        keeper = _until_loop_ends(pool)
        self._pools[loop] = pool, keeper
        await anext(keeper)
        return pool


async def _until_loop_ends(pool: Pool) -> AsyncGenerator[None]:
    """Closes the aiohttp pool when the event loop shuts down its generators, of which this is
    one."""
    try:
        yield
    finally:
        await pool.close()


def _discard_ended(pools: _Pools) -> None:
    """Drops the aiohttp pools of event loops that have ended."""
    for loop, (pool, _) in list(pools.items()):
        if loop.is_closed():
            del pools[loop]
            pool.discard()


def _abandon_pools(pools: _Pools) -> None:
    """Drops all aiohttp pools. Without a reference left, each generator asks its loop to end it,
    from any thread."""
    _discard_ended(pools)
    pools.clear()
