"""Calls that wait for something that another call of this process changes."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager

import anyio

__all__ = ["Waiting", "look_seconds"]

_FIRST_SECONDS = 0.5
_LONGEST_SECONDS = 15.0
_GROWTH = 1.5


class Waiting:
    """Who waits, by the key of what may change."""

    def __init__(self) -> None:
        self._events: dict[tuple[str, ...], set[anyio.Event]] = {}

    def __len__(self) -> int:
        """How many keys are waited for."""
        return len(self._events)

    @contextmanager
    def change(self, key: tuple[str, ...]) -> Generator[anyio.Event]:
        """What is set by the next change, from now on."""
        event = anyio.Event()
        self._events.setdefault(key, set()).add(event)
        try:
            yield event
        finally:
            events = self._events[key]
            events.discard(event)
            if not events:
                del self._events[key]

    def changed(self, key: tuple[str, ...]) -> None:
        """Wakes who waits for it."""
        for event in self._events.get(key, ()):
            event.set()


def look_seconds() -> Iterator[float]:
    """How long who waits does so before looking whether another process made the change: ever longer, up to a quarter of a minute."""
    seconds = _FIRST_SECONDS
    while True:
        yield seconds
        seconds = min(seconds * _GROWTH, _LONGEST_SECONDS)
