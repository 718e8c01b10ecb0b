"""A model call's events → those that the run tells of, and the message that they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from dragoman.errors import DragomanError
from dragoman.event import Event, MessageDropped, MessageFinished, MessageStarted, PartDelta, PartStarted, RunError
from dragoman.loss import Loss
from dragoman.message import FinishReason, Message, ThinkingPart, Usage
from dragoman.orchestration.accumulator import MessageAccumulator
from dragoman.orchestration.iteration import Shown

__all__ = ["Intake"]


class Intake:
    """Takes the events of one message: one model call, or several where the provider paused (decision 21).

    The message's start is held until something stands in it, so that an empty message leaves no trace (D-29); its end is
    kept in `finish`, for the orchestrator to tell. Other candidates are left out.
    """

    def __init__(
        self,
        accumulator: MessageAccumulator,
        *,
        newline: bool,
        shows: Callable[[PartStarted], bool],
        losses: dict[Loss, None] | None = None,
    ) -> None:
        self.accumulator = accumulator
        self.shown = Shown()
        self.held: MessageStarted | None = None
        self.finish: MessageFinished | None = None
        self.error: DragomanError | None = None
        self.losses: dict[Loss, None] = {} if losses is None else losses
        """What the requests had to leave out, each once and in order."""
        self.prefix = ""
        """Stands before the first output of the events that `feed` gave last (D-24)."""
        self._newline = newline
        self._shows = shows
        self._others: set[str] = set()
        self._paused: MessageFinished | None = None
        self._offset = 0

    def feed(self, events: Sequence[Event]) -> list[Event]:
        """The events of one read → those to tell now."""
        if self._paused is not None:
            events = [self._moved(event) for event in events]
        told: list[Event] = []
        self.prefix = ""
        add, tell, others, output = self.accumulator.add, told.append, self._others, self.shown.output
        for event in events:
            if type(event) is PartDelta:
                if others and event.message_id in others:
                    continue
                if self._newline and event.index in output:
                    self._newline = False
                    self.prefix = "\n"
                add(event)
                tell(event)
            elif type(event) is RunError:
                self.error = event.error
                break
            elif self._takes(event, tell):
                add(event)
                tell(event)
        return told

    def cut(self, reason: FinishReason) -> list[Event]:
        """Ends a message in the middle → the events that say so; none where nothing stood in it yet."""
        if self.held is not None or not self.shown.id:
            return []
        closed: list[Event] = [*self.accumulator.cut()]
        if self.finish is None or self.finish.finish_reason is FinishReason.pause:
            self.finish = MessageFinished(self.shown.id, reason, self.finish.usage if self.finish else None)
            self.accumulator.add(self.finish)
        return [*closed, self.finish]

    def resume(self) -> Message:
        """The provider paused: what comes next goes on with the same message. Returns the message so far."""
        message = self.message()
        self._paused, self.finish = self.finish, None
        self._offset = len(message.content)
        return message

    def message(self) -> Message:
        """The message so far."""
        return self.accumulator.message()

    def _takes(self, event: Event, tell: Callable[[Event], Any]) -> bool:
        """Whether an event that is no delta is told as it is."""
        if isinstance(event, MessageStarted):
            self.losses |= dict.fromkeys(event.losses)
            if event.candidate:
                self._others.add(event.message_id)
            elif not self._paused:
                self.shown.id = event.message_id
                self.held = event
                self.accumulator.add(event)
            return False
        if getattr(event, "message_id", "") in self._others:
            return False
        if isinstance(event, MessageFinished):
            self.finish = self._summed(event)
            self.accumulator.add(self.finish)
            return False
        if isinstance(event, MessageDropped):
            self.shown.output.clear()
            self.shown.thinking.clear()
            untold, self.held = self.held is not None, None
            return not untold
        if self.held is not None:
            tell(self.held)
            self.held = None
        if isinstance(event, PartStarted):
            if self._shows(event):
                self.shown.output.add(event.index)
            elif isinstance(event.part, ThinkingPart):
                self.shown.thinking.add(event.index)
        return True

    def _moved(self, event: Event) -> Event:
        """An event of a later call → the same event of the message that was paused."""
        if isinstance(event, (MessageStarted, RunError)) or not hasattr(event, "message_id"):
            return event
        changes: dict[str, Any] = {"message_id": self.shown.id}
        index: int | None = getattr(event, "index", None)
        if index is not None:
            changes["index"] = index + self._offset
        return msgspec.structs.replace(event, **changes)

    def _summed(self, finish: MessageFinished) -> MessageFinished:
        """The end of a message that was paused: usage of all its calls, and what stood before the first of them."""
        paused = self._paused
        if paused is None:
            return finish
        usage = (paused.usage or Usage()) + (finish.usage or Usage())
        origin = finish.origin
        if origin is not None and paused.origin is not None:
            origin = msgspec.structs.replace(origin, prefix=paused.origin.prefix)
        return msgspec.structs.replace(finish, usage=usage, origin=origin)
