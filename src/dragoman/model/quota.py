"""What may be sent at once, and within a minute. No clock and no waiting: whoever asks says what time it is."""

from __future__ import annotations

import math
from collections import deque

__all__ = ["MINUTE", "Booking", "Quota", "Window"]

MINUTE = 60.0
_ROUNDING = 1e-6  # seconds by which sums of times may be wrong


class Booking:
    """An amount that counts from a time on, for a minute."""

    __slots__ = ("amount", "at")

    def __init__(self, at: float, amount: int) -> None:
        self.at = at
        self.amount = amount


class Window:
    """At most `limit` within any minute. An amount that is more than the limit by itself goes when nothing else counts."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.total = 0
        """What counts now."""
        self._bookings: deque[Booking] = deque()

    def wait(self, amount: int, now: float) -> float:
        """Seconds until there is room for so much; 0: now."""
        self._forget(now)
        left, wait = self.total, 0.0
        for booking in self._bookings:
            if left + amount <= self.limit:
                break
            left -= booking.amount
            wait = booking.at + MINUTE - now
        return wait

    def add(self, amount: int, now: float) -> Booking:
        """Counts an amount from now on."""
        booking = Booking(now, amount)
        self._bookings.append(booking)
        self.total += amount
        return booking

    def correct(self, booking: Booking, amount: int, now: float) -> None:
        """It was another amount. What is past a minute does not count any more, however much it was."""
        self._forget(now)
        if self._bookings and booking.at >= self._bookings[0].at:
            self.total += amount - booking.amount
        booking.amount = amount

    def _forget(self, now: float) -> None:
        while self._bookings and self._bookings[0].at + MINUTE <= now + _ROUNDING:
            self.total -= self._bookings.popleft().amount


class Quota:
    """Of one provider, or of one model. `None`: no limit."""

    def __init__(self, concurrency: int | None, requests: int | None, tokens: int | None) -> None:
        """`requests`, `tokens`: within a minute."""
        self.running = 0
        """Requests whose answer has not ended."""
        self._concurrency = concurrency
        self._requests = None if requests is None else Window(requests)
        self._tokens = None if tokens is None else Window(tokens)

    def wait(self, tokens: int, now: float) -> float:
        """Seconds until a request of so many tokens may go; 0: now; infinite: when one that is running ends."""
        if self._concurrency is not None and self.running >= self._concurrency:
            return math.inf
        by_requests = 0.0 if self._requests is None else self._requests.wait(1, now)
        return (
            by_requests
            if self._tokens is None
            else max(by_requests, self._tokens.wait(tokens, now))
        )

    def begin(self, tokens: int, now: float) -> Booking | None:
        """A request goes; `None`: tokens are not counted."""
        self.running += 1
        if self._requests is not None:
            self._requests.add(1, now)
        return None if self._tokens is None else self._tokens.add(tokens, now)

    def end(self, booking: Booking | None, tokens: int | None, now: float) -> None:
        """Its answer ended, and took so many tokens; `None`: nobody says how many."""
        self.running -= 1
        if self._tokens is not None and booking is not None and tokens is not None:
            self._tokens.correct(booking, tokens, now)
