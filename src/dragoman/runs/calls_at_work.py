"""Follows the calls of a run that its tools have not answered yet (`CallsAtWork`), so that a run is
handed over between its tools and not in the middle of one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dragoman.event import (
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartFinished,
    is_calls_begun,
)
from dragoman.message import Role, ToolCallPart, ToolResultPart

__all__ = ["CallsAtWork"]


class CallsAtWork:
    """The calls whose tools are at work, or are about to begin."""

    def __init__(self) -> None:
        """Starts without open calls."""
        self._ids: set[str] = set()
        self._asked: dict[str, list[str]] = {}
        """Calls of messages that are still open, by the ids of the messages."""
        self._changed = asyncio.Event()

    def feed(self, events: Sequence[Event]) -> None:
        """Takes the next events of the run."""
        for event in events:
            if isinstance(event, PartFinished):
                self._feed_part(event)
            elif isinstance(event, MessageFinished):
                self._ids.update(self._asked.pop(event.message_id, ()))
            elif isinstance(event, MessageDropped):
                self._asked.pop(event.message_id, None)
            elif isinstance(event, MessageStarted):
                # The model speaks again once all tools are done, also those that gave no result.
                if event.role is Role.MODEL and event.run_id is None:
                    self._ids.clear()
            elif is_calls_begun(event):
                self._ids.update(event.value)  # type: ignore[union-attr]
        self._changed.set()

    def _feed_part(self, event: PartFinished) -> None:
        """Takes a call or a result."""
        if isinstance(event.part, ToolCallPart):
            self._asked.setdefault(event.message_id, []).append(event.part.id)
        elif isinstance(event.part, ToolResultPart):
            self._ids.discard(event.part.id)

    async def wait_for_none(self) -> None:
        """Waits until no tool is at work."""
        while self._ids:
            self._changed.clear()
            await self._changed.wait()
