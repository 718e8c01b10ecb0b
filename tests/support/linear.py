"""Whether work costs linear time: eight times as much takes eight times as long, not sixty-four
times."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

GROWTH = 8


def cost(work: Callable[[int], object], size: int) -> float:
    def once() -> float:
        began = process_time()
        work(size)
        return process_time() - began

    return min(once() for _ in range(3))


def is_linear(work: Callable[[int], object], size: int) -> bool:
    work(1)  # what is imported or compiled first
    return cost(work, size * GROWTH) < 3 * GROWTH * max(cost(work, size), 0.001)
