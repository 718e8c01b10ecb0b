"""Waiting for what another task, thread or process does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["until"]


async def until(condition: Callable[[], object]) -> None:
    """Returns when the condition holds; one that never does fails the test."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.01)
