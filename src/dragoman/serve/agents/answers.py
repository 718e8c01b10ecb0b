"""A run's events → those that the client of a model's endpoint gets: one answer, with what the run waits for as calls."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dragoman.event import (
    Event,
    InnerRuns,
    MessageStarted,
    PartDelta,
    PartStarted,
    RunError,
    RunFinished,
)
from dragoman.fold import unfold, whole_part
from dragoman.interrupt import Interrupt
from dragoman.loss import Loss
from dragoman.message import Message, Role
from dragoman.runs.visible import Visible
from dragoman.serve.agents.interrupts import RESERVED, dump_interrupt
from dragoman.serve.agents.shown_events import shown_event
from dragoman.serve.calls.call import Call

__all__ = ["AgentAnswer"]

_BEHIND = 1_000_000
"""Places behind all that a model's message has."""
_replace = msgspec.structs.replace


class AgentAnswer:
    """Feed it a run's events; it gives those that the client gets."""

    def __init__(self, call: Call, losses: Sequence[Loss] = ()) -> None:
        """`losses`: what of the client's request is left out, which the answer's start says."""
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
            dump_interrupt(each, self._call.wire) for each in pending if each.reason in RESERVED
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
