"""Events as a client of an agent gets them: without what they say of the provider behind it, with the
client's own name of the conversation, and with errors in words for clients.

For a client of a model's API a run is one answer (`AgentAnswer`), with what the run waits for as
calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.errors import public
from dragoman.event import (
    Event,
    InnerRuns,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
    RunStarted,
    StepFinished,
)
from dragoman.fold import unfold, whole_part
from dragoman.interrupt import Interrupt
from dragoman.loss import Loss
from dragoman.message import MarkPart, Message, ProviderPart, Role, ToolResultPart
from dragoman.runs.visible import Visible
from dragoman.serve.core.call import Call
from dragoman.serve.core.interrupts import RESERVED, dump_interrupt
from dragoman.serve.core.threads import name_of, resource_of

__all__ = ["AgentAnswer", "note_and_show", "show_events", "shown_event"]

_BEHIND = 1_000_000
"""Places behind all that a model's message has."""
_replace = msgspec.structs.replace
_WHY = "the model behind the agent does not take it"


def show_events(call: Call, events: Sequence[Event]) -> list[Event]:
    """Returns the events of a run as its client gets them."""
    resource = resource_of(call)
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


def note_and_show(call: Call, events: Sequence[Event]) -> list[Event]:
    """Notes events of a run for metrics and logs. Returns them as its client gets them."""
    call.observed.add(events)
    return show_events(call, events)


class AgentAnswer:
    """Feed it a run's events; it gives those that the client gets."""

    def __init__(
        self, call: Call, losses: Sequence[Loss] = (), question: Sequence[Message] = ()
    ) -> None:
        """`losses`: what of the client's request is left out, which the answer's start says.
        `question`: what the client asked, which a run tells first."""
        # Results in it count for how the answer goes on.
        self._echoed = {message.id for message in question if not message.tool_results}
        self._call, self._losses = call, tuple(losses)
        self._view, self._inner = Visible(), InnerRuns()
        self._answer: str | None = None
        """Id of the client's answer."""
        self._speaks = False
        """Whether the client got something of the answer."""
        self._last: str | None = None
        """Id of the model's last message."""

    def feed(self, events: Sequence[Event]) -> list[Event]:
        """The events of a step → what the client gets now."""
        seen: list[Event] = []
        if self._last is None and self._echoed:
            events = [
                event for event in events if getattr(event, "message_id", "") not in self._echoed
            ]
        for event in events:
            if type(event) is PartDelta:  # nearly all of a stream
                seen += self._view.feed(event)
                continue
            self._note(event)
            if isinstance(event, RunFinished) and event.pending:
                for shown in self._waiting_events(event.pending):
                    seen += self._view.feed(shown)
            seen += self._view.feed(event)
        if all(type(event) is PartDelta for event in seen):
            return seen
        for event in seen:
            if isinstance(event, MessageStarted) and event.role is Role.MODEL:
                self._answer = event.message_id
            elif isinstance(event, PartStarted) and event.message_id == self._answer:
                self._speaks = True
        if seen and isinstance(seen[-1], RunError) and not self._speaks:
            return seen[-1:]  # no empty answer before it, so that it has its status
        return [self._own(event) for event in seen]

    def _note(self, event: Event) -> None:
        if (
            not self._inner.has(event)
            and isinstance(event, MessageStarted)
            and event.role is Role.MODEL
        ):
            self._last = event.message_id

    def _waiting_events(self, pending: Sequence[Interrupt]) -> list[Event]:
        """What the run waits for, beside the client's tools, behind what the model said."""
        parts = [
            dump_interrupt(each, self._call.api) for each in pending if each.reason in RESERVED
        ]
        if (
            self._last is None and parts
        ):  # the model was not asked: of several things one was answered
            return unfold([Message.model(*parts).replace(id=self._call.service.new_id())])
        last = self._last or ""
        return [
            event for at, part in enumerate(parts, _BEHIND) for event in whole_part(last, at, part)
        ]

    def _own(self, event: Event) -> Event:
        """An event without what it says of the provider behind the agent."""
        if isinstance(event, MessageStarted):
            losses, self._losses = (*self._losses, *event.losses), ()
            return _replace(event, native=None, origin=None, losses=losses)
        return event if isinstance(event, RunError) else shown_event(event)
