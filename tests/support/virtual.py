"""A loop whose clock jumps to the next timer when nothing is to do: an hour of silence takes no
time."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["run"]

T = TypeVar("T")


class _Selector(selectors.SelectSelector):
    """Waits for nothing but what is there already; the time that it would have waited has
    passed."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if not found:
            if timeout is None:
                raise RuntimeError("everything waits for what never comes")
            self.passed += max(timeout, 0)
        return found


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.passed


def run(main: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that uses no sockets and no threads. It fails where everything waits for
    ever, or a task is left in the end."""
    loop = _Loop()
    try:
        found = loop.run_until_complete(main)
        left = [task for task in asyncio.all_tasks(loop) if not task.done()]
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            raise AssertionError(f"{len(left)} tasks are left: {left}")
        return found
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
