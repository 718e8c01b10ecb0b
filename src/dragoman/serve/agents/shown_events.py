"""Events as a client of an agent gets them: without what they say of the provider behind it, by the client's own name of the conversation,
and with errors in words for clients."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dragoman.errors import public
from dragoman.event import (
    Event,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunStarted,
)
from dragoman.message import ThinkingPart, ToolCallPart
from dragoman.serve.conversations.threads import name_of

__all__ = ["shown", "shown_event"]

_replace = msgspec.structs.replace


def shown(events: Sequence[Event], resource: str) -> list[Event]:
    """The events of a run as its client gets them. `resource`: whose conversations its calls are of."""
    return [event if type(event) is PartDelta else _of_client(shown_event(event), resource) for event in events]


def _of_client(event: Event, resource: str) -> Event:
    if not isinstance(event, RunStarted):
        return event
    thread = None if event.thread_id is None else name_of(resource, event.thread_id)
    return _replace(event, thread_id=thread, resource_id=None)


def shown_event(event: Event) -> Event:
    """One of them."""
    if isinstance(event, MessageStarted | MessageFinished):
        return _replace(event, native=None, origin=None)
    if isinstance(event, PartStarted | PartFinished) and isinstance(event.part, ThinkingPart | ToolCallPart):
        return _replace(event, part=_replace(event.part, native=None)) if event.part.native else event
    if isinstance(event, RunError):
        return _replace(event, error=public(event.error))
    return event
