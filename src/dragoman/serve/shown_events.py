"""Events as a client of an agent gets them: without what they say of the provider behind it, and with errors in words for clients."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dragoman.errors import public
from dragoman.event import Event, MessageFinished, MessageStarted, PartDelta, PartFinished, PartStarted, RunError
from dragoman.message import ThinkingPart, ToolCallPart

__all__ = ["shown", "shown_event"]

_replace = msgspec.structs.replace


def shown(events: Sequence[Event]) -> list[Event]:
    """The events of a run as its client gets them."""
    return [event if type(event) is PartDelta else shown_event(event) for event in events]


def shown_event(event: Event) -> Event:
    """One of them."""
    if isinstance(event, MessageStarted | MessageFinished):
        return _replace(event, native=None, origin=None)
    if isinstance(event, PartStarted | PartFinished) and isinstance(event.part, ThinkingPart | ToolCallPart):
        return _replace(event, part=_replace(event.part, native=None)) if event.part.native else event
    if isinstance(event, RunError):
        return _replace(event, error=public(event.error))
    return event
