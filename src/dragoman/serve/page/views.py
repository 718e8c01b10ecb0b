"""What the caller sees of runs and conversations: all but what providers alone can read, and what
other people's things are called.

Unlike a client of an API the caller sees which model answered, what each call took and cost, and
what was left out of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from dragoman import json_bytes
from dragoman.cost import find_call_cost
from dragoman.errors import ModelNotFoundError, public
from dragoman.event import (
    Event,
    MessageFinished,
    MessageStarted,
    PartFinished,
    PartStarted,
    RunError,
    RunStarted,
    is_log_mark,
)
from dragoman.fold import fold, unfold
from dragoman.interrupt import Interrupt
from dragoman.json_bytes import Json
from dragoman.loss import Loss
from dragoman.message import MarkPart, Message, Native, Origin, ProviderPart, Role, Usage
from dragoman.runs.log import RunStatus
from dragoman.serve.core.call import Call
from dragoman.serve.core.client_events import make_filter, without_native
from dragoman.serve.core.service import JOBS
from dragoman.serve.core.threads import is_thread_of, name_of, resource_of
from dragoman.serve.http.callers import ANONYMOUS, Caller

__all__ = [
    "OwnerEvents",
    "cost_of",
    "dump_interrupt",
    "dump_loss",
    "dump_message",
    "dump_run",
    "find_own_runs",
    "find_run",
    "is_own_run",
    "last_origin",
    "model_of",
    "show_messages",
]

_replace = msgspec.structs.replace


class OwnerEvents:
    """The events of a run as its owner gets them: feed it the run's events in order."""

    def __init__(self, call: Call, *, keeps_prices: bool = False) -> None:
        """`call`: whose they are. `keeps_prices`: what decides a cost stays in the events, for those
        who show nothing of it but the cost."""
        self._keeps_prices = keeps_prices
        self._resource = resource_of(call)
        self._working = make_filter(call)
        self._origins: dict[str, Origin | None] = {}
        """Where the open messages come from."""
        self.costs: dict[str, str | None] = {}
        """What each message cost that has ended; take it out."""

    @property
    def needs_all(self) -> bool:
        """True if what is shown of an event depends on all events before it."""
        return self._working is not None

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Returns what the owner gets of events."""
        if self._working is not None:
            events = self._working.feed(events)
        visible = map(self._show, events)
        return [event for event in visible if event is not None]

    def _show(self, event: Event) -> Event | None:
        # The endpoint and the provider's own figure decide a price, and are nothing for the page.
        if self._keeps_prices and isinstance(event, MessageStarted | MessageFinished):
            return event
        if isinstance(event, PartStarted | PartFinished):
            # What waits, and what only a provider reads.
            if isinstance(event.part, MarkPart | ProviderPart):
                return None
            return _replace(event, part=without_native(event.part))
        if isinstance(event, RunStarted):
            thread = event.thread_id and name_of(self._resource, event.thread_id)
            event = _replace(event, thread_id=thread, resource_id=None)
        elif isinstance(event, MessageStarted):
            self._origins[event.message_id] = event.origin
            event = _replace(event, origin=_show_origin(event.origin))
        elif isinstance(event, MessageFinished):
            origin = event.origin or self._origins.pop(event.message_id, None)
            self.costs[event.message_id] = cost_of(origin, event.usage, event.native)
            event = _replace(event, origin=_show_origin(origin))
        elif isinstance(event, RunError):
            event = _replace(event, error=public(event.error))
        elif is_log_mark(event):
            return None
        if getattr(event, "native", None) is not None:
            event = _replace(event, native=None)
        return event


def _show_origin(origin: Origin | None) -> Origin | None:
    """Returns which model answered, without what only requests to its provider need."""
    if origin is None:
        return None
    return Origin(origin.provider, model=origin.model, served_model=origin.served_model)


def show_messages(call: Call, messages: Sequence[Message]) -> list[Json]:
    """Returns messages as JSON, as their owner gets them, each with its cost."""
    costs = {
        message.id: cost_of(message.origin, message.usage, message.native) for message in messages
    }
    visible = fold(OwnerEvents(call).feed(unfold(messages)))
    return [dump_message(message, costs.get(message.id)) for message in visible]


def dump_message(message: Message, cost: str | None) -> Json:
    """Returns a message as JSON, with its cost in US dollars."""
    fields: Json = json_bytes.decode(message.to_json())
    return {**fields, "cost": cost}


def cost_of(origin: Origin | None, usage: Usage | None, native: Native = None) -> str | None:
    """Returns what a call of a model cost, in US dollars; None if that is unknown."""
    if origin is None or usage is None:
        return None
    cost = find_call_cost(origin, usage, None, native)
    return None if cost is None else f"{cost:f}"


def model_of(origin: Origin | None) -> str | None:
    """Returns the model string of what answered, or None if it is unknown."""
    if origin is None or not origin.model:
        return None
    return f"{origin.provider}:{origin.model}"


def last_origin(messages: Sequence[Message]) -> Origin | None:
    """Returns where the last answer among messages came from."""
    answers = [message for message in messages if message.role is Role.MODEL and message.origin]
    return answers[-1].origin if answers else None


def dump_loss(loss: Loss) -> Json:
    """Returns a loss as JSON."""
    return {
        "what": loss.what.value,
        "which": loss.which,
        "why": loss.why,
        "message": loss.message,
        "is_minor": loss.is_minor,
    }


def dump_interrupt(interrupt: Interrupt) -> Json:
    """Returns what waits as JSON, without what only the server needs to recognise it."""
    call = interrupt.call
    if call is not None:
        call = without_native(call)
    plain = _replace(interrupt, call=call, signature=None, metadata={})
    fields: Json = msgspec.to_builtins(plain)
    if url := interrupt.metadata.get("url"):
        fields["metadata"] = {"url": url}
    return fields


def dump_run(call: Call, status: RunStatus, agent: str | None) -> Json:
    """Returns the state of a run as JSON."""
    thread, resource = None, resource_of(call)
    if status.thread_id is not None and is_thread_of(status.thread_id, resource):
        thread = name_of(resource, status.thread_id)
    return {
        "run_id": status.run_id,
        "thread_id": thread,
        "agent": agent,
        "state": status.state,
        "started_at": datetime.fromtimestamp(status.started_at, UTC),
        "end": status.end,
        "tokens": status.tokens,
        # Nothing is known of runs of earlier releases, and nothing was spent before the first call.
        "cost": f"{status.cost:f}" if status.calls and status.cost is not None else None,
    }


async def find_run(call: Call, run_id: str) -> RunStatus:
    """Returns the status of a run of the caller.

    Raises:
        ModelNotFoundError: the caller has no such run.
    """
    status = (await call.service.log.status([run_id])).get(run_id)
    if status is None or not is_own_run(call, status):
        raise ModelNotFoundError(f"there is no run {run_id!r:.200} here")
    return status


async def find_own_runs(
    call: Call, *, thread_id: str | None = None, most: int, skip: int = 0
) -> list[RunStatus]:
    """Returns at most `most` of the caller's runs after the first `skip` ones, the latest first: all,
    or those of one conversation."""
    return await call.service.log.runs(
        callers=_names_of(call.caller), thread_id=thread_id, most=most, skip=skip
    )


def is_own_run(call: Call, status: RunStatus) -> bool:
    """True if a run is the caller's, and no job of the server."""
    return status.queue != JOBS and status.caller in _names_of(call.caller)


def _names_of(caller: Caller) -> tuple[str | None, ...]:
    """Returns what runs of a caller have as their caller. Runs of nobody are those of the one owner
    where nobody needs a key."""
    return (caller.id, None) if caller is ANONYMOUS else (caller.id,)
