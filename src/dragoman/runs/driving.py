"""A run, driven into its log: it is read by one task, and what it says is stored by another while it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

from dragoman.errors import DragomanError, RunLogError
from dragoman.event import Event, event_to_json
from dragoman.logs import logger
from dragoman.result import ChatResult
from dragoman.runs.ending import end_run
from dragoman.runs.log import Lease, RunLog, state_after
from dragoman.runs.tail import Tail

if TYPE_CHECKING:
    from dragoman.run import Run

__all__ = ["Ended", "drive"]

_LOG = logger("runs")
Ended = Callable[[ChatResult[str]], Awaitable[None]]
"""Is given what a run gave, however it ended."""
_MOST = 4096
"""Events that wait to be stored, before the run has to wait for that too."""


async def drive(log: RunLog, run: Run[Any], lease: Lease, tail: Tail, ended: Ended | None = None) -> None:
    """Drives a run to its end, which is stored before anybody is told of it. What the log refuses ends the run here: another has it now,
    or will end it for us."""
    try:
        await _drive(log, run, lease, tail, ended)
    except RunLogError as error:
        _LOG.warning("run %s is left: %s", lease.run_id, error.message)
    finally:
        tail.close()


async def _drive(log: RunLog, run: Run[Any], lease: Lease, tail: Tail, ended: Ended | None) -> None:
    waiting = _Waiting()
    reader = asyncio.create_task(_read(run, waiting), name=f"dragoman-run-{lease.run_id}")
    failure: Exception | None = None
    try:
        while failure is None and (events := await waiting.take()):
            try:
                await log.append(lease.run_id, tail.end, events, lease=lease)
            except RunLogError:
                raise
            except Exception as error:  # noqa: BLE001 - a value of the user's raises what it likes
                failure, events = error, _storable(events)
                await log.append(lease.run_id, tail.end, events, lease=lease)
            is_over = state_after(lease.run_id, events[-1:]) != "running"
            if is_over:
                await _note_end(run, ended)
            tail.extend(events)
            tail.is_over = is_over
    finally:
        await _ended(reader)
    if not tail.is_over:
        failure = failure or waiting.failure or RuntimeError("it ended without an end")
        _LOG.warning("run %s cannot go on: %s", lease.run_id, failure)
        ending = await end_run(log, lease, _ours(failure))
        await _note_end(run, ended)
        tail.extend(ending)
        tail.is_over = True


async def _note_end(run: Run[Any], ended: Ended | None) -> None:
    if ended is None:
        return
    try:
        await ended(run.so_far())
    except Exception:  # noqa: BLE001 - the run is over, whatever becomes of what it gave
        _LOG.exception("what run %s gave could not be kept", run.id)


async def _read(run: Run[Any], waiting: _Waiting) -> None:
    try:
        async with run, aclosing(run.steps(chunks=False)) as steps:
            async for step in steps:
                await waiting.put(step.events)
    except Exception as error:  # noqa: BLE001 - the log must tell whatever it was
        waiting.failure = error
    finally:
        waiting.close()


async def _ended(task: asyncio.Task[None]) -> None:
    """Cancels a task and waits for its end, however often we are cancelled ourselves meanwhile."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        task.cancel()
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


class _Waiting:
    """Events on their way from the run to the log."""

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self._events: list[Event] = []
        self._closed = False
        self._filled = asyncio.Event()
        self._room = asyncio.Event()

    async def put(self, events: Sequence[Event]) -> None:
        self._events += events
        self._filled.set()
        if len(self._events) > _MOST:
            self._room.clear()
            await self._room.wait()

    async def take(self) -> list[Event]:
        """All that there is; `[]`: nothing will come any more."""
        await self._filled.wait()
        events, self._events = self._events, []
        if not self._closed:
            self._filled.clear()
        self._room.set()
        return events

    def close(self) -> None:
        self._closed = True
        self._filled.set()


def _storable(events: Sequence[Event]) -> list[Event]:
    """The events before the first that JSON cannot hold."""
    storable: list[Event] = []
    with suppress(Exception):
        for event in events:
            event_to_json(event)
            storable.append(event)
    return storable


def _ours(failure: Exception) -> DragomanError:
    if isinstance(failure, DragomanError):
        return failure
    ours = DragomanError(f"{type(failure).__name__} ended the run, since its log must hold all of it: {failure}")
    ours.__cause__ = failure
    return ours
