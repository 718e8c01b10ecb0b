"""Events as a client of an agent gets them: without what they say of the provider behind it, with
the client's own name of the conversation, and with errors in words for clients.

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
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
    RunStarted,
    StepFinished,
    is_log_mark,
)
from dragoman.fold import part_events, unfold
from dragoman.inner_runs import InnerRuns
from dragoman.interrupt import Interrupt
from dragoman.loss import Loss
from dragoman.message import MarkPart, Message, ProviderPart, Role, ToolResultPart
from dragoman.runs.hidden import WorkingFilter
from dragoman.runs.visible import Visible
from dragoman.serve.core.call import Call
from dragoman.serve.core.interrupts import RESERVED, dump_interrupt
from dragoman.serve.core.threads import name_of, resource_of

__all__ = [
    "ClientAnswer",
    "ClientEvents",
    "make_filter",
    "show_event",
    "show_events",
    "without_native",
]

_LAST_INDEX = 1_000_000
"""Index of a part behind all that a model's message has."""
_replace = msgspec.structs.replace
_WHY = "the model behind the agent does not take it"


class ClientEvents:
    """The events of a run as the client of an agent protocol gets them: feed it the run's events in
    order."""

    def __init__(self, call: Call) -> None:
        self._resource = resource_of(call)
        self._working = make_filter(call)

    def feed(self, events: Sequence[Event]) -> list[Event]:
        """Returns what the client gets of events."""
        visible: list[Event] = []
        for event in events if self._working is None else self._working.feed(events):
            # Nearly all of a stream.
            if type(event) is PartDelta:
                # Deltas carry no provider fields, so they pass unchanged.
                visible.append(event)
            elif isinstance(event, RunStarted):
                if event.thread_id is None:
                    thread = None
                else:
                    thread = name_of(self._resource, event.thread_id)
                visible.append(_replace(event, thread_id=thread, resource_id=None))
            elif not is_log_mark(event):
                visible.append(show_event(event))
        return visible


def show_events(call: Call, events: Sequence[Event]) -> list[Event]:
    """Returns all events of a run as its client gets them."""
    return ClientEvents(call).feed(events)


def make_filter(call: Call) -> WorkingFilter | None:
    """Returns what hides working memories from clients, or None if no agent has one."""
    if call.service.durable:
        # Another server may have other agents, and has to show the same of a run.
        return WorkingFilter(tags=True)
    settings = [memory for backend in call.service.backends for memory in backend.working_memories]
    if not settings:
        return None
    return WorkingFilter(tags=any(memory.extract for memory in settings))


def show_event(event: Event) -> Event:
    """Returns an event without what it says of the provider behind the agent."""
    if isinstance(event, MessageStarted):
        return _replace(event, native=None, origin=None, losses=_neutral_losses(event.losses))
    if isinstance(event, MessageFinished):
        return _replace(event, native=None, origin=None, losses=())
    if isinstance(event, StepFinished) and event.losses:
        return _replace(event, losses=_neutral_losses(event.losses))
    if isinstance(event, PartStarted | PartFinished):
        part = without_native(event.part)
        if part is event.part:
            return event
        return _replace(event, part=part)
    if isinstance(event, RunError):
        return _replace(event, error=public(event.error))
    return event


def without_native(part: Any) -> Any:
    """Returns a part as the client's events have it, without the native fields that tell of the
    agent's provider."""
    # These are nothing but their `native`.
    if isinstance(part, ProviderPart | MarkPart):
        return part
    if isinstance(part, ToolResultPart) and part.is_content:
        pieces = [_replace(piece, native=None) if piece.native else piece for piece in part.result]
        if any(piece.native for piece in part.result):
            part = _replace(part, result=tuple(pieces))
    if part.native:
        return _replace(part, native=None)
    return part


def _neutral_losses(losses: Sequence[Loss]) -> tuple[Loss, ...]:
    """Returns losses without their reasons, which name the provider."""
    return tuple([_replace(loss, why=_WHY) for loss in losses])


class ClientAnswer:
    """The answer that a client of a model's API gets of a run: feed it the run's events."""

    def __init__(
        self,
        call: Call,
        losses: Sequence[Loss] = (),
        question: Sequence[Message] = (),
        *,
        drops_parts: bool = False,
    ) -> None:
        """Creates the answer. `losses`: what of the client's request is left out, reported at the
        answer's start. `question`: the client's messages, which a run tells first. `drops_parts`: see
        `Visible`."""
        # Results in it count for how the answer goes on.
        self._question_ids = {message.id for message in question if not message.tool_results}
        self._call, self._losses = call, tuple(losses)
        self._view, self._inner = Visible(drops_parts=drops_parts), InnerRuns()
        self._working = make_filter(call)
        self._answer_id: str | None = None
        """Id of the client's answer."""
        self._speaks = False
        """True once the client got something of the answer."""
        self._model_id: str | None = None
        """Id of the model's last message."""

    def feed(self, events: Sequence[Event]) -> list[Event]:
        """Returns what the client gets now of the events of a step."""
        seen: list[Event] = []
        if self._working is not None:
            events = self._working.feed(events)
        for event in self._drop_question(events):
            # Nearly all of a stream.
            if type(event) is not PartDelta:
                seen += self._feed_pending(event)
            seen += self._view.feed(event)
        # Fast path: deltas carry nothing to hide.
        if all(type(event) is PartDelta for event in seen):
            return seen
        for event in seen:
            if isinstance(event, MessageStarted) and event.role is Role.MODEL:
                self._answer_id = event.message_id
            elif isinstance(event, PartStarted) and event.message_id == self._answer_id:
                self._speaks = True
        if seen and isinstance(seen[-1], RunError) and not self._speaks:
            # No empty answer before it, so that it has its status.
            return seen[-1:]
        return [self._show_event(event) for event in seen]

    def _drop_question(self, events: Sequence[Event]) -> Sequence[Event]:
        """Returns the events without those of the client's own messages, which the client has."""
        # A run tells the question first. Once the model has begun a message, nothing of it follows.
        if self._model_id is not None or not self._question_ids:
            return events
        ids = self._question_ids
        return [event for event in events if getattr(event, "message_id", "") not in ids]

    def _feed_pending(self, event: Event) -> list[Event]:
        """Returns what the client gets before an event: at the end of a run, what it waits for."""
        # It must see every event but deltas.
        is_inner = self._inner.has(event)
        if isinstance(event, MessageStarted) and event.role is Role.MODEL and not is_inner:
            self._model_id = event.message_id
        if not (isinstance(event, RunFinished) and event.pending):
            return []
        return [
            seen for shown in self._waiting_events(event.pending) for seen in self._view.feed(shown)
        ]

    def _waiting_events(self, pending: Sequence[Interrupt]) -> list[Event]:
        """Returns the events of what the run waits for beside the client's tools."""
        parts = [
            dump_interrupt(interrupt, self._call.api)
            for interrupt in pending
            if interrupt.reason in RESERVED
        ]
        # If the model was not asked, one of several things was answered.
        if self._model_id is None and parts:
            return unfold([Message.model(*parts).replace(id=self._call.service.new_id())])
        model_id = self._model_id or ""
        return [
            event
            for index, part in enumerate(parts, _LAST_INDEX)
            for event in part_events(model_id, index, part)
        ]

    def _show_event(self, event: Event) -> Event:
        """Returns an event without what it says of the provider behind the agent. The first start
        of a message says what the client's request lost."""
        if isinstance(event, MessageStarted):
            losses, self._losses = (*self._losses, *event.losses), ()
            return _replace(event, native=None, origin=None, losses=losses)
        if isinstance(event, RunError):
            return event
        return show_event(event)
