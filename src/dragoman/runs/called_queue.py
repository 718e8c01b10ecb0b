"""Drives the runs of a queue for an engine that calls its workers (`CalledQueue`)."""

from __future__ import annotations

import asyncio
import sys
from time import monotonic

from dragoman.runs.engines import Drive, Limit

__all__ = ["CalledQueue"]


class CalledQueue:
    """The runs of one queue that this process drives, each in a task that goes on between calls."""

    def __init__(self, drive: Drive, limit: Limit, call_seconds: float) -> None:
        """`call_seconds`: seconds that a call lasts at most."""
        self._drive, self._call_seconds = drive, call_seconds
        self._slots = asyncio.Semaphore(limit.runs or sys.maxsize)
        self._pause = 1.0 / limit.per_second if limit.per_second is not None else 0.0
        """Seconds from one run that is begun to the next."""
        self._turn = asyncio.Lock()
        self._next_at = 0.0
        """When the rate allows the next run, by the monotonic clock."""
        self._tasks: dict[str, asyncio.Task[bool]] = {}
        self._driven: set[str] = set()
        """Runs that have a place. The other tasks wait for one."""
        self._is_stopped = False

    async def call(self, run_id: str) -> bool:
        """Has a run driven, and waits some time for its end. Returns True if it is to be called for
        again."""
        if self._is_stopped:
            return True
        task = self._tasks.get(run_id)
        if task is None:
            task = self._tasks[run_id] = asyncio.create_task(
                self._run(run_id), name=f"dragoman-work-{run_id}"
            )
            task.add_done_callback(lambda _: self._tasks.pop(run_id))
        await asyncio.wait((task,), timeout=self._call_seconds)
        if task.done():
            return task.cancelled() or task.result()
        if run_id not in self._driven:
            # Another worker may have a place for it.
            task.cancel()
        return True

    async def stop(self) -> None:
        """Hands over the runs that are driven here. The calls for them are answered."""
        self._is_stopped = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, run_id: str) -> bool:
        async with self._slots:
            await self._wait_for_turn()
            self._driven.add(run_id)
            try:
                again = await self._drive(run_id)
            finally:
                self._driven.discard(run_id)
        if again:
            # Nothing was begun, so that the next run need not wait.
            self._next_at -= self._pause
        return again

    async def _wait_for_turn(self) -> None:
        """Waits until the queue's rate allows another run."""
        async with self._turn:
            begins_at = max(self._next_at, monotonic())
            await asyncio.sleep(begins_at - monotonic())
            self._next_at = begins_at + self._pause
