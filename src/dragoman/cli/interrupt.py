"""Ctrl-C, wherever it comes: none is lost, and none ends more than it should."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Self

__all__ = ["Interrupts"]


class Interrupts:
    """What Ctrl-C does while the block lasts: what `to` names, the innermost first; outside of it
    nothing.

    The event loop reads interrupts from a pipe, so that one which comes while it goes to sleep
    wakes it.
    """

    def __init__(self) -> None:
        self._actions: list[Callable[[], object]] = []
        self._before = signal.getsignal(signal.SIGINT)

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        try:
            self._loop.add_signal_handler(signal.SIGINT, self._on_interrupt)
        except NotImplementedError:  # Windows
            signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(NotImplementedError):
            self._loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, self._before)

    @contextmanager
    def to(self, *actions: Callable[[], object]) -> Generator[None]:
        """Within the block Ctrl-C does the first of these; each further one the next, and the last
        again and again."""
        remaining = list(actions)

        def act() -> None:
            (remaining.pop(0) if len(remaining) > 1 else remaining[0])()

        self._actions.append(act)
        try:
            yield
        finally:
            self._actions.pop()

    def _on_signal(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._on_interrupt)

    def _on_interrupt(self) -> None:
        if self._actions:
            self._actions[-1]()
