"""The checks that every message store must pass, one function per behaviour."""

from typing import Any

from dragoman.testing.check import Check
from dragoman.testing.store import messages, slots, threads

__all__ = ["CHECKS"]

CHECKS: tuple[Check[Any], ...] = tuple(
    getattr(module, name) for module in (messages, threads, slots) for name in module.__all__
)
"""In the order of a report."""
