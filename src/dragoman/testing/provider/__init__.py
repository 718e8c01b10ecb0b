"""The checks that every provider must pass, one function per behaviour."""

from typing import Any

from dragoman.testing.check import Check
from dragoman.testing.provider import (
    chat,
    embeddings,
    faults,
    history,
    media,
    record,
    settings,
    tools,
    typed,
)

__all__ = ["CHECKS"]

CHECKS: tuple[Check[Any], ...] = (
    record.records_are_complete,
    *(
        getattr(module, name)
        for module in (record, chat, history, settings, media, tools, typed, embeddings, faults)
        for name in module.__all__
        if name != record.records_are_complete.name
    ),
)
"""All checks of a provider, in the order of a report: its record first."""
