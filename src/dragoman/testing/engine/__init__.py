"""The checks that every engine of durable runs must pass, one function per behaviour."""

from typing import Any

from dragoman.testing.check import Check
from dragoman.testing.engine import driving, queues

__all__ = ["CHECKS"]

CHECKS: tuple[Check[Any], ...] = tuple(
    getattr(module, name) for module in (driving, queues) for name in module.__all__
)
"""In the order of a report."""
