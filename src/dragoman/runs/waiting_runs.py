"""Gives runs that wait in the log to an engine (`enqueue_waiting`)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from dragoman.errors import DragomanError
from dragoman.logs import logger
from dragoman.runs.engines import Engine
from dragoman.runs.log import RunLog, RunState

__all__ = ["enqueue_waiting"]

_LOG = logger("runs")
_STATES: tuple[RunState, ...] = ("running", "queued")


async def enqueue_waiting(
    engine: Engine, log: RunLog, queues: Iterable[str], *, seconds: float
) -> None:
    """Enqueues again and again the runs that nobody drives, until it is cancelled.

    A program may die between storing a run and enqueueing it, the engine may have been out of reach
    then, or somebody has deleted what it knew of the run.

    Args:
        engine: the engine.
        log: where the runs are.
        queues: names of the queues to look at.
        seconds: pause from one look at the log to the next.
    """
    while True:
        try:
            for queue in queues:
                await _enqueue_once(engine, log, queue)
        except DragomanError as error:
            _LOG.warning(
                "the log and the engine are asked again in %s s: %s", seconds, error.message
            )
        await asyncio.sleep(seconds)


async def _enqueue_once(engine: Engine, log: RunLog, queue: str) -> None:
    """Enqueues the runs of a queue that nobody drives: the first ones, as the others come later."""
    for state in _STATES:
        waiting = await log.runs(state=state, driven=False, queue=queue, oldest_first=True)
        for status in waiting:
            await engine.enqueue(status.run_id, queue=queue, priority=status.priority)
