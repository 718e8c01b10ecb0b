"""`Interrupts`: what Ctrl-C does, one action at a time."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Self

__all__ = ["Interrupts"]


class Interrupts:
    """Handles Ctrl-C within the block: it does what the innermost `to` says, and nothing outside of
    one.

    The event loop receives interrupts through a pipe, so that none is lost while the loop goes to
    sleep.
    """

    def __init__(self) -> None:
        self._actions: list[Callable[[], object]] = []
        self._before = signal.getsignal(signal.SIGINT)

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        try:
            self._loop.add_signal_handler(signal.SIGINT, self._on_interrupt)
        except NotImplementedError:  # Windows
            # The loop of Windows takes no signal handlers, so one of the process wakes it.
            signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(NotImplementedError):  # Windows
            self._loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, self._before)

    @contextmanager
    def to(self, *actions: Callable[[], object]) -> Generator[None]:
        """Makes Ctrl-C call the first action within the block, each further Ctrl-C the next one,
        and then the last one again."""
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
