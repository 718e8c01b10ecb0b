"""What happens in a run as an MCP call's progress: what tools tell, and what is said while it is said."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from dragoman.event import Custom, Event, MessageStarted, PartDelta, PartFinished, PartStarted
from dragoman.message import Role, ToolCallPart
from dragoman.orchestration.iteration import RETURN_RESULT
from dragoman.orchestration.shown import is_text
from dragoman.tools.context import PROGRESS

__all__ = ["Progress", "Report"]

Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Takes how far it is, of how much, and words."""


class Progress:
    """Tells a client how a run goes on."""

    def __init__(self, report: Report, call_id: str | None = None, *, typed: bool = False) -> None:
        """`call_id`: that of the one call that the run is, whose progress is the run's. `None`: an agent is asked, and its
        progress is counted: one for each call, each step of one, and each line of text where its output is not `typed`."""
        self._report = report
        self._call_id = call_id
        self._typed = typed
        self._done = 0.0
        self._names: dict[str, str] = {}
        self._speaks: set[str] = set()
        self._texts: set[tuple[str, int]] = set()
        self._line = ""

    async def feed(self, event: Event) -> None:
        """Takes the run's next event."""
        if isinstance(event, Custom):
            if event.name == PROGRESS:
                await self._of_tool(event.value)
        elif self._call_id is None:
            await self._of_message(event)

    async def _of_tool(self, value: Mapping[str, Any]) -> None:
        done, total, message = value["done"], value["total"], value["message"]
        if self._call_id is not None:
            if value["call_id"] == self._call_id and done > self._done:
                self._done = done
                await self._report(done, total, message)
            return
        far = f"{done:g}" if total is None else f"{done:g}/{total:g}"
        await self._count(
            f"{self._names.get(value['call_id'], 'tool')} {far}{f': {message}' if message else ''}"
        )

    async def _of_message(self, event: Event) -> None:
        if isinstance(event, PartDelta):
            if (event.message_id, event.index) in self._texts:
                *lines, self._line = (self._line + cast("str", event.delta)).split("\n")
                for line in filter(str.strip, lines):
                    await self._count(line)
        elif isinstance(event, MessageStarted):
            if event.role is Role.MODEL:
                self._speaks.add(event.message_id)
        elif isinstance(event, PartStarted):
            if event.message_id in self._speaks and is_text(event) and not self._typed:
                self._texts.add((event.message_id, event.index))
        elif isinstance(event, PartFinished):
            if isinstance(event.part, ToolCallPart) and event.message_id in self._speaks:
                if self._typed and event.part.name == RETURN_RESULT:
                    return
                self._names[event.part.id] = event.part.name
                await self._count(f"calls {event.part.name}")
            elif (event.message_id, event.index) in self._texts:
                line, self._line = self._line, ""
                if line.strip():
                    await self._count(line)

    async def _count(self, message: str) -> None:
        self._done += 1
        await self._report(self._done, None, message)
