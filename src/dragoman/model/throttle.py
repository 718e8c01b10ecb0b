"""Rate limits and concurrency: a request waits for its turn. See `Throttle`.

A `Quota` says what may be sent at once, and within a minute. It has no clock and does not wait: its
caller says what time it is. A `Throttle` has one for each endpoint or model, and a queue of the
requests that wait for it.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from threading import Lock
from typing import TYPE_CHECKING

import anyio

from dragoman.arguments import expect, expect_callable
from dragoman.errors import RateLimitError, SettingsError
from dragoman.event import Event, MessageFinished, PartDelta, RunError
from dragoman.message import Origin
from dragoman.model.breaker import Per, check_per, endpoint_key
from dragoman.model.middleware import Batches, Target
from dragoman.model.tokens import request_tokens
from dragoman.request import ModelRequest
from dragoman.runtime import running_loop

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

__all__ = ["MINUTE", "Booking", "Quota", "Throttle", "MinuteWindow"]

MINUTE = 60.0
_ROUNDING = 1e-6
"""Seconds by which sums of floating-point times may be wrong."""


class Booking:
    """An amount that counts for a minute from a time on."""

    __slots__ = ("amount", "at")

    def __init__(self, at: float, amount: int) -> None:
        self.at = at
        self.amount = amount


class MinuteWindow:
    """A limit on the sum of amounts within any minute. An amount above the limit may go when
    nothing else counts."""

    def __init__(self, limit: int) -> None:
        """Starts an empty window of a throttle. `limit`: requests or tokens per minute."""
        self.limit = limit
        self.total = 0
        """Sum of the amounts that count now."""
        self._bookings: deque[Booking] = deque()

    def wait(self, amount: int, now: float) -> float:
        """Returns the seconds until the amount fits the throttle's window; 0: it fits now."""
        self._drop_old(now)
        total_left, wait = self.total, 0.0
        for booking in self._bookings:
            if total_left + amount <= self.limit:
                break
            total_left -= booking.amount
            wait = booking.at + MINUTE - now
        return wait

    def add(self, amount: int, now: float) -> Booking:
        """Counts requests or tokens in the window of the last minute."""
        booking = Booking(now, amount)
        self._bookings.append(booking)
        self.total += amount
        return booking

    def correct(self, booking: Booking, amount: int, now: float) -> None:
        """Changes the amount of a booking in the throttle's window. After its minute this has no
        effect."""
        self._drop_old(now)
        if self._bookings and booking.at >= self._bookings[0].at:
            self.total += amount - booking.amount
        booking.amount = amount

    def _drop_old(self, now: float) -> None:
        """Drops bookings that are older than a minute."""
        while self._bookings and self._bookings[0].at + MINUTE <= now + _ROUNDING:
            self.total -= self._bookings.popleft().amount


class Quota:
    """The limits of an endpoint or a model. `None`: no limit."""

    def __init__(self, concurrency: int | None, requests: int | None, tokens: int | None) -> None:
        """Creates the quota of a throttle. `requests`, `tokens`: limits per minute."""
        self.running = 0
        """Requests whose answer has not ended."""
        self._concurrency = concurrency
        self._requests = MinuteWindow(requests) if requests is not None else None
        self._tokens = MinuteWindow(tokens) if tokens is not None else None

    def wait(self, tokens: int, now: float) -> float:
        """Returns the seconds until the throttle lets a request of so many tokens go; 0: now;
        infinite: when a running one ends."""
        if self._concurrency is not None and self.running >= self._concurrency:
            return math.inf
        wait = 0.0
        if self._requests is not None:
            wait = self._requests.wait(1, now)
        if self._tokens is not None:
            wait = max(wait, self._tokens.wait(tokens, now))
        return wait

    def begin(self, tokens: int, now: float) -> Booking | None:
        """Counts for the throttle a request that goes now. Returns its booking of tokens, or None
        if tokens have no limit."""
        self.running += 1
        if self._requests is not None:
            self._requests.add(1, now)
        if self._tokens is None:
            return None
        return self._tokens.add(tokens, now)

    def end(self, booking: Booking | None, tokens: int | None, now: float) -> None:
        """Records for the throttle that a request ended with so many tokens; `None`: the count is
        unknown."""
        self.running -= 1
        if self._tokens is not None and booking is not None and tokens is not None:
            self._tokens.correct(booking, tokens, now)


# requests that wait


class Throttle:
    """Middleware that limits concurrent requests, and requests and tokens per minute. Requests
    beyond a limit wait in order of arrival.

    One value serves agents, threads and event loops at once, and its limits hold for all of them
    together; each provider's base URL has limits of its own. An answer counts as running until it
    has ended or was left.

    ```python
    throttle = Throttle(concurrency=8, requests_per_minute=500, tokens_per_minute=200_000)
    writer, checker = Agent("openai", middleware=[throttle]), Agent("openai", middleware=[throttle])
    ```

    Args:
        concurrency: requests at once.
        requests_per_minute: requests that begin within a minute.
        tokens_per_minute: tokens of prompts and answers together. Before an answer is there they are estimated from the prompt
            (`dragoman.model.tokens`), and corrected once the provider tells its count.
        max_wait: seconds after which a request that still waits fails with a `RateLimitError`; at once, where it is known to last longer.
            `None`: it waits.
        per: what has limits of its own.
        clock: seconds, from any beginning, that never go back.
        sleep: waits that many seconds.
    """

    def __init__(
        self,
        *,
        concurrency: int | None = None,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        max_wait: float | None = None,
        per: Per = "endpoint",
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        """Creates the throttle. See the class.

        Raises:
            SettingsError: a limit is not above 0, there is none, or `per` is unknown.
            TypeError: an argument is of another type.
        """
        limits = {
            "concurrency": concurrency,
            "requests_per_minute": requests_per_minute,
            "tokens_per_minute": tokens_per_minute,
        }
        for name, limit in limits.items():
            expect(name, limit, int, type(None))
            if limit is not None and limit <= 0:
                raise SettingsError(f"Throttle({name}={limit}) must be above 0")
        if all(limit is None for limit in limits.values()):
            raise SettingsError(f"Throttle() has no limit: give it one of {', '.join(limits)}")
        expect("max_wait", max_wait, int, float, type(None))
        if max_wait is not None and max_wait < 0:
            raise SettingsError(f"Throttle(max_wait={max_wait}) must be 0 or more")
        expect_callable("clock", clock, "a function")
        expect_callable("sleep", sleep, "a function of seconds")
        check_per("Throttle", per)
        self._limits = (concurrency, requests_per_minute, tokens_per_minute)
        self._max_wait = max_wait
        self._per: Per = per
        self._clock, self._sleep = clock, sleep
        self._queues: dict[Origin, _Queue] = {}
        self._lock = Lock()

    def batches(
        self, request: ModelRequest, following: Batches, target: Target
    ) -> AsyncGenerator[list[Event], None]:
        """Sends a request when the throttle lets it go. See `BatchMiddleware`."""
        destination = target(request)
        # An unknown model: sending the request reports that.
        if destination is None:
            return following(request)
        return self._wait_and_send(request, following, destination)

    async def _wait_and_send(
        self, request: ModelRequest, following: Batches, destination: Origin
    ) -> AsyncGenerator[list[Event], None]:
        """Waits for the request's turn in the throttle, sends it, and corrects its token count at
        the end."""
        counts = self._limits[2] is not None
        tokens = 0
        if counts:
            tokens = request_tokens(request, destination.provider, destination.model or "")
        with self._lock:
            key = endpoint_key(destination, self._per)
            queue = self._queues.setdefault(key, _Queue(Quota(*self._limits)))
        try:
            booking = await self._wait_for_turn(queue, tokens, destination.provider)
        except RateLimitError as error:
            yield [RunError(error)]
            return
        used_tokens: int | None = None
        try:
            async with aclosing(following(request)) as batches:
                async for events in batches:
                    if counts and type(events[-1]) is not PartDelta:
                        used_tokens = _add_tokens(events, used_tokens)
                    yield events
        finally:
            with self._lock:
                queue.quota.end(booking, used_tokens, self._clock())
                queue.wake()

    async def _wait_for_turn(self, queue: _Queue, tokens: int, provider: str) -> Booking | None:
        """Waits until the throttle lets the request go. Returns its booking of tokens.

        Raises:
            RateLimitError: it would wait too long.
        """
        with self._lock:
            start = self._clock()
            if not queue.waiting and not queue.quota.wait(tokens, start):
                return queue.quota.begin(tokens, start)
            waiter = _Waiter(running_loop())
            queue.waiting.append(waiter)
        wait = math.inf
        try:
            with anyio.move_on_after(self._max_wait):
                while True:
                    with self._lock:
                        # Cleared before the state is read: a wake-up from now on is not lost.
                        waiter.signal.clear()
                        now = self._clock()
                        wait = math.inf
                        if queue.waiting[0] is waiter:
                            wait = queue.quota.wait(tokens, now)
                        if not wait:
                            return queue.quota.begin(tokens, now)
                    if wait is math.inf:
                        await waiter.signal.wait()
                    elif self._max_wait is not None and now + wait > start + self._max_wait:
                        break
                    else:
                        await self._sleep(wait)
        finally:
            with self._lock:
                if waiter in queue.waiting:
                    queue.waiting.remove(waiter)
                queue.wake()
        raise RateLimitError(
            f"the limits that were set for {provider} let no more requests through within {self._max_wait:g} s. "
            "Wait, then try again, or raise the limits of its Throttle.",
            provider=provider,
            retry_after=None if wait is math.inf else wait,
        )


class _Waiter:
    """A waiting request and its event loop."""

    __slots__ = ("loop", "signal")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self.loop = loop
        self.signal = asyncio.Event()


class _Queue:
    """The quota of an endpoint and the requests that wait for it."""

    __slots__ = ("quota", "waiting")

    def __init__(self, quota: Quota) -> None:
        self.quota = quota
        self.waiting: deque[_Waiter] = deque()

    def wake(self) -> None:
        """Wakes the first request that the throttle holds back. Requests whose event loop has ended
        are dropped."""
        while self.waiting:
            first = self.waiting[0]
            # A waiter belongs to its event loop, which may run in another thread.
            try:
                first.loop.call_soon_threadsafe(first.signal.set)
            except RuntimeError:
                self.waiting.popleft()
            else:
                return


def _add_tokens(events: list[Event], before: int | None) -> int | None:
    """Returns `before` plus the tokens that these events report, for the throttle, or None if no
    event reported any."""
    for event in events:
        if (
            type(event) is MessageFinished
            and event.usage is not None
            and event.usage.total_tokens is not None
        ):
            before = (before or 0) + event.usage.total_tokens
    return before
