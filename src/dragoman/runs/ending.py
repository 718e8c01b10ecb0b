"""How a run ends whose own end never came: the process that drove it is gone, or it cannot go on."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dragoman.event import (
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
)
from dragoman.fold import MessageBuilder
from dragoman.message import FinishReason
from dragoman.runs.log import Lease, RunLog

__all__ = ["end_run", "ending"]

_replace = msgspec.structs.replace


def ending(events: Iterable[Event], last: RunFinished | RunError) -> list[Event]:
    """The events with which a run that stands at these ends: what is open is closed as it was told, parts as cut; a message that holds
    nothing is dropped. `last`: the event that ends the run, an error or `cancelled`."""
    failed = isinstance(last, RunError)
    reason = last.error.message if failed else last.outcome
    finish = FinishReason.error if failed else FinishReason.cancelled
    messages: dict[str, MessageBuilder] = {}
    steps: dict[tuple[str, str | None], None] = {}
    inner: dict[str, None] = {}
    for event in events:
        if isinstance(event, (PartDelta, PartStarted, PartFinished)):
            if (builder := messages.get(event.message_id)) is not None:
                builder.add(event)
        elif isinstance(event, MessageStarted):
            messages[event.message_id] = MessageBuilder(event)
        elif isinstance(event, (MessageFinished, MessageDropped)):
            messages.pop(event.message_id, None)
        elif isinstance(event, StepStarted):
            steps[event.name, event.run_id] = None
        elif isinstance(event, StepFinished):
            steps.pop((event.name, event.run_id), None)
        elif isinstance(event, RunStarted):
            inner[event.run_id] = None
        elif isinstance(event, RunFinished) or (
            isinstance(event, RunError) and event.run_id is not None
        ):
            inner.pop(event.run_id or "", None)
    closing: list[Event] = []
    for message_id, builder in messages.items():
        closing += builder.cut()
        empty = not builder.content()
        closing.append(
            MessageDropped(message_id, reason) if empty else MessageFinished(message_id, finish)
        )
    closing += [StepFinished(name, run_id=of) for name, of in reversed(steps)]
    return [
        *closing,
        *[_replace(last, run_id=each) for each in reversed(inner) if each != last.run_id],
        last,
    ]


async def end_run(log: RunLog, lease: Lease, last: RunFinished | RunError) -> list[Event]:
    """Ends the run of that lease, where its log stands → the events that did so.

    Raises:
        RunLogError: as `RunLog.append`.
    """
    events: list[Event] = []
    while page := await log.read(lease.run_id, len(events)):
        events += page
    closing = ending(events, last)
    await log.append(lease.run_id, len(events), closing, lease=lease)
    return closing
