"""The tasks that something left behind in its event loop."""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["tasks_left"]

_TURNS = 40
"""Turns of the loop that the closing of abandoned generators may take: two for each of a few nested
ones."""


async def tasks_left(before: set[asyncio.Task[Any]]) -> set[asyncio.Task[Any]]:
    """Returns the tasks that began after `before` was taken and have not ended.

    Any task counts at once, but for one sort: a library that leaves an `async for` early abandons
    its generator, and the event loop itself closes it in a new task, then the generator within it,
    and so on (asyncio's `_asyncgen_finalizer_hook`). Nobody owns those tasks, so they get a bounded
    number of turns.
    """
    for _ in range(_TURNS):
        left = asyncio.all_tasks() - before
        if not left or not all(map(_closes_a_generator, left)):
            return left
        await asyncio.sleep(0)
    return left


def _closes_a_generator(task: asyncio.Task[Any]) -> bool:
    return type(task.get_coro()).__name__ == "async_generator_athrow"
