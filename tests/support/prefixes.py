"""Runs whose process died after some events of their log, and that another process goes on with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman import Agent, RunRequest
from dragoman.event import Event, PartFinished, event_to_json
from dragoman.message import ToolResultPart
from dragoman.runs import Runs
from dragoman.runs.memory_log import MemoryLog
from support.durable import RUN, dead_log

QUICK: dict[str, Any] = {"lease_seconds": 30.0, "poll_seconds": 0.01}


async def read(runs: Runs, run_id: str = RUN) -> list[Event]:
    return [event async for _, event in runs.attach(run_id)]


async def finished(request: RunRequest, a: Agent[Any]) -> list[Event]:
    """The events of a run that nothing disturbed."""
    async with MemoryLog() as log, Runs(log, agents={"a": a}, **QUICK) as runs:
        await runs.enqueue("a", request)
        assert await runs.drive(RUN) is False
        return await read(runs)


async def gone_on(
    events: Sequence[Event], request: RunRequest, a: Agent[Any], lost: int = 1
) -> list[Event]:
    """The events of a run whose process died after these."""
    async with MemoryLog() as log, Runs(log, agents={"a": a}, **QUICK) as runs:
        await dead_log(log, events, request, lost=lost)
        assert await runs.drive(RUN) is False
        assert (await runs.status(RUN)).state != "running"
        return await read(runs)


def same(some: Sequence[Event], others: Sequence[Event]) -> bool:
    return [*map(event_to_json, some)] == [*map(event_to_json, others)]


def stored_results(events: Sequence[Event]) -> set[str]:
    return {
        event.part.id
        for event in events
        if isinstance(event, PartFinished) and isinstance(event.part, ToolResultPart)
    }
