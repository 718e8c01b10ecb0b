"""How a run ends whose own end never came: the process that drove it is gone, or it cannot go on."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.errors import DragomanError
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


def ending(events: Iterable[Event], run_id: str, error: DragomanError) -> list[Event]:
    """The events with which a run that stands at these ends in an error: what is open is closed as it was told, parts as cut; a message
    that holds nothing is dropped."""
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
        elif isinstance(event, RunFinished) or (isinstance(event, RunError) and event.run_id is not None):
            inner.pop(event.run_id or "", None)
    closing: list[Event] = []
    for message_id, builder in messages.items():
        closing += builder.cut()
        empty = not builder.content()
        closing.append(
            MessageDropped(message_id, error.message) if empty else MessageFinished(message_id, FinishReason.error)
        )
    closing += [StepFinished(name, run_id=of) for name, of in reversed(steps)]
    return [*closing, *[RunError(error, each) for each in reversed(inner) if each != run_id], RunError(error, run_id)]


async def end_run(log: RunLog, lease: Lease, error: DragomanError) -> list[Event]:
    """Ends the run of that lease with an error, where its log stands → the events that did so.

    Raises:
        RunLogError: as `RunLog.append`.
    """
    events: list[Event] = []
    while page := await log.read(lease.run_id, len(events)):
        events += page
    closing = ending(events, lease.run_id, error)
    await log.append(lease.run_id, len(events), closing, lease=lease)
    return closing
