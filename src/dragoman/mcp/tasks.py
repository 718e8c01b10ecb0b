"""Waiting for tasks of one's own until they have ended, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

__all__ = ["ended"]


async def ended(tasks: Iterable[asyncio.Task[Any]], patience: float = 0.0) -> None:
    """Returns when all have ended. Those that go on for longer than so many seconds are cancelled, again and again.

    Raises:
        CancelledError: the caller was cancelled, afterwards.
    """
    left, cancelled = [task for task in tasks if not task.done()], None
    while left:
        if patience <= 0.0:
            for task in left:
                task.cancel()
        try:
            _, late = await asyncio.wait(left, timeout=patience or 1.0)
            left, patience = [*late], 0.0
        except asyncio.CancelledError as error:
            cancelled = error
            left = [task for task in left if not task.done()]
    if cancelled is not None:
        raise cancelled
