"""Runs the tools of one model message in a task and builds the message of their results.

`start` runs the tools in a task of their own. Each result gets the slot of its call and goes into
the outbox as events at once, so that fast tools show before slow ones. `events` returns what the
outbox holds until the task is done, and `close` ends the message. `message` sorts the results by
slot, so that the stored message has call order whatever order the tools finished in.
"""

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

_ANONYMOUS_ID = "#results"
"""Id in the events of a message that has none."""
_CANCEL_SECONDS = 1.0
"""Seconds that cancelled tools may clean up before they are cancelled again."""


class ToolRound:
    """The tools of one round at work. They run whether or not anyone reads their events; `end`
    stops all that are left.

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
        """Creates a round of tools. `calls`: the calls to answer. `outbox`: takes their events.
        `turn`: turn of the results' message."""
        self.asks: list[tuple[ToolCallPart, AskUser]] = []
        """Questions of tools to a person, with their calls."""
        self._calls = calls
        self._outbox = outbox
        self._new_id, self._clock, self._turn = new_id, clock, turn
        self._start: MessageStarted | None = None
        self._parts: dict[int, ToolResultPart | MarkPart] = {}
        self._task: asyncio.Task[Any] | None = None
        self._left = -1
        self._is_cancelled = False

    def start(self, work: Coroutine[Any, Any, Any], *, reports: int = -1) -> None:
        """Starts the tools of the round. `reports`: the number of results to expect; -1:
        unknown."""
        self._left = reports
        self._outbox.open()
        self._task = asyncio.create_task(work)
        self._task.add_done_callback(self._wake)

    def report(self, slot: int, result: ToolExecutionResult) -> None:
        """Takes the outcome of the call in a slot of the tool round."""
        self._left -= 1
        if isinstance(result.exception, AskUser):
            self.asks.append((self._calls[slot], result.exception))
        else:
            self.add(slot, result.part)

    def add(self, slot: int, part: ToolResultPart | MarkPart) -> None:
        """Shows a tool round's result, or a mark after the results."""
        start = self._start or self._begin_results()
        events = part_events(start.message_id, slot, part)
        if not self._parts:
            events.insert(0, start)
        self._parts[slot] = part
        self._outbox.put(events)

    def _begin_results(self) -> MessageStarted:
        """Returns the start of the tool round's message of results, made for the first of them."""
        if self._new_id is None:
            self._start = MessageStarted(_ANONYMOUS_ID, Role.USER, anonymous=True, turn=self._turn)
        else:
            self._start = MessageStarted(
                self._new_id(), Role.USER, created_at=self._clock(), turn=self._turn
            )
        return self._start

    def name_twins(self, opened: Sequence[OpenCall]) -> None:
        """Names the turn of the call in a tool round's results whose call id occurs more than once,
        if an earlier call with that id has no result yet. `opened`: all calls that had no result
        before the round."""
        if (start := self._start) is None:
            return
        unanswered_ids: set[str] = set()
        slots = {id(call): slot for slot, call in enumerate(self._calls)}
        for open_call in opened:
            part = self._parts.get(slots.get(id(open_call.call), -1))
            if not isinstance(part, ToolResultPart):
                unanswered_ids.add(open_call.call.id)
            elif open_call.call.id in unanswered_ids:
                slot = slots[id(open_call.call)]
                self._parts[slot] = part = bind_to_call(part, open_call.turn)
                self._outbox.put([PartFinished(start.message_id, slot, part)])

    def append(self, mark: MarkPart) -> None:
        """Shows a mark after everything else."""
        self.add(max((len(self._calls) - 1, *self._parts)) + 1, mark)

    async def events(self) -> list[Event]:
        """Waits for events and returns them; none: the tools are done, and `close` returns the
        rest.

        Raises:
            BaseException: what ended the work, where it was no result.
        """
        task = self._task
        assert task is not None
        self._outbox.note_return()
        while not task.done():
            # After the last result the end is there at once, and both are told together.
            if self._outbox and self._left:
                return self._outbox.take()
            await self._outbox.more()
        task.result()
        return []

    def cancel(self) -> None:
        """Cancels the tools of the round without waiting. Only once: a second cancellation would
        break off their cleanup."""
        if self._task is not None and not self._is_cancelled:
            self._is_cancelled = True
            self._task.cancel()

    async def end(self) -> None:
        """Cancels tools of the round that still run and waits until they have ended."""
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
                    done, _ = await asyncio.wait((task,), timeout=_CANCEL_SECONDS)
                except asyncio.CancelledError as error:
                    cancelled = error
                else:
                    if not done:
                        task.cancel()
        if cancelled is not None:
            raise cancelled

    def message(self) -> Message | None:
        """Returns the message of the tool round's results so far, in call order, or None without
        results."""
        start = self._start
        if start is None:
            return None
        results = [part for _, part in sorted(self._parts.items())]
        message_id = None if start.anonymous else start.message_id
        return Message(
            Role.USER, tuple(results), id=message_id, created_at=start.created_at, turn=start.turn
        )

    def messages(self) -> tuple[Message, ...]:
        """Returns the message of the tool round's results as a tuple, empty without results."""
        message = self.message()
        if message is None:
            return ()
        return (message,)

    def close(self) -> Sequence[Event]:
        """Ends the message of the tool round's results and returns the remaining events."""
        events = self._outbox.take()
        if self._start is not None:
            events.append(MessageFinished(self._start.message_id))
        return events

    def _wake(self, _: object) -> None:
        """Wakes the reader when the task ends."""
        self._outbox.wake()
