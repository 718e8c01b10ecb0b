"""The tools of one model message while they run: a task of the run's, and the message of their
results as it grows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from typing import Any

import anyio

from dragoman.event import Event, MessageFinished, MessageStarted, PartFinished
from dragoman.fold import part_events
from dragoman.message import MarkPart, Message, Role, ToolCallPart, ToolResultPart
from dragoman.repair import OpenCall, bind_to_call
from dragoman.tools import AskUser, Outbox, ToolExecutionResult

__all__ = ["ToolRound"]

_UNNAMED = "#results"
"""Ties the events of a message together that has no id."""
_CANCELLED_AGAIN = 1.0
"""Seconds after which tools that go on although they were cancelled are cancelled again; so long
they may clean up."""


class ToolRound:
    """Tools of a run at work. They go on whether anybody reads or not; `end` leaves none of them
    behind.

    Their events are in the outbox at once. The results' message is open from the first result on,
    in which each has the place of its call; the results come in the order in which the tools are
    done.
    """

    def __init__(
        self,
        calls: Sequence[ToolCallPart],
        outbox: Outbox,
        new_id: Callable[[], str] | None,
        clock: Callable[[], datetime],
        turn: str | None,
    ) -> None:
        """`calls`: those that are to be answered. `outbox`: where their events go. `turn`: that of
        the results' message."""
        self.asks: list[tuple[ToolCallPart, AskUser]] = []
        """What tools want to know from a person, and in which call."""
        self._calls = calls
        self._outbox = outbox
        self._new_id, self._clock, self._turn = new_id, clock, turn
        self._start: MessageStarted | None = None
        self._parts: dict[int, ToolResultPart | MarkPart] = {}
        self._task: asyncio.Task[Any] | None = None
        self._left = -1
        self._is_cancelled = False

    def start(self, work: Coroutine[Any, Any, Any], *, reports: int = -1) -> None:
        """Begins to run tools. `reports`: how many results will be reported; -1: that is not
        known."""
        self._left = reports
        self._outbox.open()
        self._task = asyncio.create_task(work)
        self._task.add_done_callback(self._wake)

    def report(self, slot: int, result: ToolExecutionResult) -> None:
        """Takes what came of the call at that place."""
        self._left -= 1
        if isinstance(result.exception, AskUser):
            self.asks.append((self._calls[slot], result.exception))
        else:
            self.add(slot, result.part)

    def add(self, slot: int, part: ToolResultPart | MarkPart) -> None:
        """Tells a result, or a mark behind the results."""
        start = self._start or self._begin()
        events = part_events(start.message_id, slot, part)
        if not self._parts:
            events.insert(0, start)
        self._parts[slot] = part
        self._outbox.put(events)

    def _begin(self) -> MessageStarted:
        """The start of the results' message, at the first of them."""
        if self._new_id is None:
            self._start = MessageStarted(_UNNAMED, Role.USER, anonymous=True, turn=self._turn)
        else:
            self._start = MessageStarted(
                self._new_id(), Role.USER, created_at=self._clock(), turn=self._turn
            )
        return self._start

    def name_twins(self, opened: Sequence[OpenCall]) -> None:
        """Has each result that comes before that of an earlier call with its id say to which call
        it belongs. `opened`: all calls that were without result before the round."""
        start, without = self._start, set[str]()
        slots = {id(call): slot for slot, call in enumerate(self._calls)}
        for open_call in opened if start is not None else ():
            part = self._parts.get(slots.get(id(open_call.call), -1))
            if not isinstance(part, ToolResultPart):
                without.add(open_call.call.id)
            elif open_call.call.id in without and start is not None:
                slot = slots[id(open_call.call)]
                self._parts[slot] = part = bind_to_call(part, open_call.turn)
                self._outbox.put([PartFinished(start.message_id, slot, part)])

    def append(self, mark: MarkPart) -> None:
        """Tells a mark behind all that was told."""
        self.add(max((len(self._calls) - 1, *self._parts)) + 1, mark)

    async def events(self) -> list[Event]:
        """The next events, as soon as there are some; none: the tools are done, and what is left in
        the outbox is for the end.

        Raises:
            BaseException: what ended the work, where it was no result.
        """
        task = self._task
        assert task is not None
        while not task.done():
            # After the last result the end is there at once, and both are told together.
            if self._outbox and self._left:
                return self._outbox.take()
            await self._outbox.more()
        task.result()
        return []

    def cancel(self) -> None:
        """Stops the tools, without waiting for them. Once: what they do to clean up, a second time
        would break off."""
        if self._task is not None and not self._is_cancelled:
            self._is_cancelled = True
            self._task.cancel()

    async def end(self) -> None:
        """Stops the tools that still run, and waits until they have ended."""
        self._outbox.pause()
        task = self._task
        if task is None or task.done():
            return
        # Tools may clean up, and may swallow a cancellation: they are cancelled again until they
        # end.
        cancelled: asyncio.CancelledError | None = None
        self.cancel()
        with anyio.CancelScope(shield=True):
            while not task.done():
                try:
                    done, _ = await asyncio.wait((task,), timeout=_CANCELLED_AGAIN)
                except asyncio.CancelledError as error:
                    cancelled = error
                else:
                    if not done:
                        task.cancel()
        if cancelled is not None:
            raise cancelled

    def message(self) -> Message | None:
        """The results so far, in the order of the calls; `None`: there is none."""
        start = self._start
        if start is None:
            return None
        results = [part for _, part in sorted(self._parts.items())]
        message_id = None if start.anonymous else start.message_id
        return Message(
            Role.USER, tuple(results), id=message_id, created_at=start.created_at, turn=start.turn
        )

    def messages(self) -> tuple[Message, ...]:
        """The message, where there is one."""
        message = self.message()
        return () if message is None else (message,)

    def close(self) -> Sequence[Event]:
        """Ends the results' message → what of it and of the tools is still to be told."""
        events = self._outbox.take()
        if self._start is not None:
            events.append(MessageFinished(self._start.message_id))
        return events

    def _wake(self, _: object) -> None:
        self._outbox.wake()
