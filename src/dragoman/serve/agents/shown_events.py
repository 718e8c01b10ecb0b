"""Events as a client of an agent gets them: without what they say of the provider behind it, by the client's own name of the conversation,
and with errors in words for clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
    StepFinished,
)
from dragoman.loss import Loss
from dragoman.message import MarkPart, ProviderPart, ToolResultPart
from dragoman.serve.conversations.threads import name_of

__all__ = ["shown", "shown_event"]

_replace = msgspec.structs.replace
_WHY = "the model behind the agent does not take it"


def shown(events: Sequence[Event], resource: str) -> list[Event]:
    """The events of a run as its client gets them. `resource`: whose conversations its calls are of."""
    return [
        event if type(event) is PartDelta else _of_client(shown_event(event), resource)
        for event in events
    ]


def _of_client(event: Event, resource: str) -> Event:
    if not isinstance(event, RunStarted):
        return event
    thread = None if event.thread_id is None else name_of(resource, event.thread_id)
    return _replace(event, thread_id=thread, resource_id=None)


def shown_event(event: Event) -> Event:
    """One of them."""
    if isinstance(event, MessageStarted):
        return _replace(event, native=None, origin=None, losses=_neutral(event.losses))
    if isinstance(event, MessageFinished):
        return _replace(event, native=None, origin=None)
    if isinstance(event, StepFinished) and event.losses:
        return _replace(event, losses=_neutral(event.losses))
    if isinstance(event, PartStarted | PartFinished):
        part = _shown_part(event.part)
        return event if part is event.part else _replace(event, part=part)
    if isinstance(event, RunError):
        return _replace(event, error=public(event.error))
    return event


def _shown_part(part: Any) -> Any:
    if isinstance(part, ProviderPart | MarkPart):  # these are nothing but their `native`
        return part
    if isinstance(part, ToolResultPart) and part.is_content:
        pieces = [_replace(piece, native=None) if piece.native else piece for piece in part.result]
        if any(piece.native for piece in part.result):
            part = _replace(part, result=tuple(pieces))
    return _replace(part, native=None) if part.native else part


def _neutral(losses: Sequence[Loss]) -> tuple[Loss, ...]:
    """Losses without their reasons, which name the provider."""
    return tuple([_replace(loss, why=_WHY) for loss in losses])
