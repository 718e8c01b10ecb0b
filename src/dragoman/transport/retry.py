"""Retries of requests. Wraps any transport.

`Retry.send` makes all attempts but the last in a loop and returns the first response that needs
no retry; the last attempt is made outside it, and its outcome is final. A successful response
counts only when its first bytes have arrived (`_start_response`), because after that a repeated
request would repeat text that the caller has seen. A refused response is drained, so that its
connection can be used again. `ON_RETRY` lets hooks learn of attempts without passing them through
every transport.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from types import CoroutineType
from typing import Any

import anyio

from dragoman.errors import DragomanError, ProviderConnectionError, ProviderTimeoutError
from dragoman.logs import logger
from dragoman.request import HttpRequest
from dragoman.retry_after import parse_retry_after
from dragoman.transport.base import ConnectionLostError, Response, Transport

__all__ = ["OnRetry", "ON_RETRY", "RETRY_STATUSES", "Retry"]

OnRetry = Callable[[int, float, int | None, DragomanError | None], Awaitable[None]]
"""Takes a failed attempt: its number, the seconds until the next one, and the HTTP status or the
error."""

ON_RETRY: ContextVar[OnRetry | None] = ContextVar("dragoman_retried", default=None)
"""Called before a request of the current context is sent again."""

_LOG = logger("transport.retry")
RETRY_STATUSES = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
"""Statuses after which the same request may succeed."""
_DRAIN_SECONDS = 1.0


class Retry:
    """A `Transport` that sends failed requests again, as long as no byte of a successful answer was
    delivered.

    Tried again are the statuses 408, 409, 429, 500, 502, 503, 504 and 529, and connections that
    fail, time out or break before the first byte of a successful body. A connection that the server
    had closed while it was idle is replaced by another one at once, the first time. A request whose
    `retries` say so is tried again less often. A header `x-should-retry: true` or `false` overrules
    the status. The wait is what the provider asks for (`retry-after-ms`, or `Retry-After` in
    seconds or as a date), else a random part of min(base·2ⁿ, cap). After the last attempt its
    answer is returned, or its error raised, as it is.

    Args:
        transport: what sends the requests, each attempt the same one.
        attempts: how often at most, the first included.
        base: seconds; the first wait at most.
        cap: seconds; no wait is longer, whatever the provider asks for.
        jitter: `False` waits the whole of min(base·2ⁿ, cap), not a random part.
        sleep: waits that many seconds.
        random: a number from 0 to 1.
        now: seconds since 1970, to which a date is compared.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        attempts: int = 4,
        base: float = 1.0,
        cap: float = 60.0,
        jitter: bool = True,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        random: Callable[[], float] = random.random,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Creates a transport that retries requests. `base` and `cap`: the first and the longest
        wait, in seconds."""
        self._transport = transport
        self._attempts = attempts
        self._base = base
        self._cap = cap
        self._random = random if jitter else lambda: 1.0
        self._sleep = sleep
        self._now = now

    async def send(self, request: HttpRequest) -> Response:
        """Sends a request, and retries it if it fails. See `Transport.send`. For a successful
        status it returns when the first bytes of the body are there."""
        attempts = self._attempts
        if request.retries is not None:
            attempts = min(attempts, request.retries + 1)
        if attempts == 1 < self._attempts:
            return await self._send_once(request)
        lost = False
        for attempt in range(attempts - 1):
            wait = min(self._base * 2**attempt, self._cap) * self._random()
            status: int | None = None
            error: DragomanError | None = None
            at_once = False
            try:
                response = await self._transport.send(request)
                if not _should_retry(response):
                    return await _start_response(response)
            except (ProviderConnectionError, ProviderTimeoutError) as raised:
                error = raised
                at_once = isinstance(raised, ConnectionLostError) and not lost
                lost = lost or at_once
            else:
                status = response.status
                wait = min(parse_retry_after(response.headers, self._now()) or wait, self._cap)
                await _drain_response(response)
            if (on_retry := ON_RETRY.get()) is not None:
                await on_retry(attempt + 1, 0.0 if at_once else wait, status, error)
            # Its traceback refers to this frame: without this the two would keep each other alive.
            error = None
            if at_once:
                continue
            _LOG.warning("attempt %d of %d failed; next in %.1f s", attempt + 1, attempts, wait)
            await self._sleep(wait)
        return await self._transport.send(request)

    async def _send_once(self, request: HttpRequest) -> Response:
        """Sends a request without retries, except on a new connection if the server had closed the
        idle one."""
        try:
            return await self._transport.send(request)
        except ConnectionLostError as error:
            if (on_retry := ON_RETRY.get()) is not None:
                await on_retry(1, 0.0, None, error)
            return await self._transport.send(request)

    async def close(self) -> None:
        """Closes the transport."""
        await self._transport.close()


class _StartedResponse:
    """A response whose first bytes have been read."""

    def __init__(self, response: Response, first: bytes) -> None:
        """Wraps for a retry a response of which the first bytes were read."""
        self.status = response.status
        self.headers = response.headers
        self._response = response
        self._first: bytes | None = first

    def read(self) -> CoroutineType[Any, Any, bytes]:
        """See `Response.read`. Later reads are the response's own, without a step between."""
        return self._response.read() if self._first is None else self._read_first(self._first)

    async def close(self) -> None:
        """See `Response.close`."""
        await self._response.close()

    async def _read_first(self, first: bytes) -> bytes:
        self._first = None
        return first


async def _start_response(response: Response) -> Response:
    """Reads the first bytes of a successful response, so that a failure up to there can be
    retried."""
    if not 200 <= response.status < 300:
        return response
    try:
        return _StartedResponse(response, await response.read())
    except BaseException:
        await response.close()
        raise


def _should_retry(response: Response) -> bool:
    """True if a response's status, or its header `x-should-retry`, asks for another attempt."""
    verdict = response.headers.get("x-should-retry")
    return response.status >= 400 and (
        verdict == "true" or (response.status in RETRY_STATUSES and verdict != "false")
    )


async def _drain_response(response: Response) -> None:
    """Reads the rest of a refused response before a retry, so that its connection can be reused,
    unless that takes too long."""
    try:
        with (
            anyio.move_on_after(_DRAIN_SECONDS),
            suppress(ProviderConnectionError, ProviderTimeoutError),
        ):
            while await response.read():
                pass
    finally:
        await response.close()
