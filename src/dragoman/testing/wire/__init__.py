"""The checks that every wire must pass, one function per behaviour."""

from typing import Any

from dragoman.testing.check import Check
from dragoman.testing.wire import (
    conversation,
    error,
    malformed,
    memory,
    mutations,
    recordings,
    request,
    response,
    runs,
    serving,
    stream,
)

__all__ = ["CHECKS"]

CHECKS: tuple[Check[Any], ...] = tuple(
    getattr(module, name)
    for module in (
        conversation,
        malformed,
        request,
        memory,
        response,
        stream,
        runs,
        error,
        serving,
        mutations,
        recordings,
    )
    for name in module.__all__
)
"""All checks of a wire, in the order of a report."""
