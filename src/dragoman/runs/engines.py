"""Says which durable run is driven where and when (`Engine`), and does so with nothing but the log
(`LogEngine`).

The log is the truth: an engine holds ids of runs and nothing else. It calls `drive` with an id, as
often and in as many processes as it likes. `drive` takes the lease of the run, so only one of them
does anything.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from time import monotonic
from typing import Protocol

import msgspec

from dragoman.errors import DragomanError, SettingsError
from dragoman.logs import logger
from dragoman.runs.log import RunLog, RunState

__all__ = ["DEFAULT_QUEUES", "Drive", "Engine", "Limit", "LogEngine"]

_LOG = logger("runs")
_MOST_LISTED = 100
"""Runs of a queue that one look at the log lists."""
_RETRY_SECONDS = 1.0
"""Seconds after which a run is tried again that could not be driven."""

Drive = Callable[[str], Awaitable[bool]]
"""Drives the run with an id. Returns True if it is to be tried again later."""


class Limit(msgspec.Struct, frozen=True):
    """How much of a queue is worked on at a time; with `engine="log"` by each process."""

    runs: int | None = None
    """Runs that are driven at the same time; `None`: any number."""
    per_second: float | None = None
    """Runs that are begun in a second; `None`: any number."""

    def __post_init__(self) -> None:
        if self.runs is not None and self.runs < 1:
            raise SettingsError(f"Limit(runs={self.runs}): at least one run must be able to run")
        if self.per_second is not None and not self.per_second > 0:
            raise SettingsError(f"Limit(per_second={self.per_second}): give more than 0")


DEFAULT_QUEUES: Mapping[str, Limit] = {"default": Limit(runs=20)}
"""What a process works on unless it is told otherwise."""


class Engine(Protocol):
    """What decides where and when durable runs are driven."""

    async def enqueue(self, run_id: str, *, queue: str, priority: int = 0) -> None:
        """Has a run driven, which the log holds. A second call for the same run does nothing but have
        it looked at."""
        ...

    async def work(self, drive: Drive, *, queues: Mapping[str, Limit]) -> None:
        """Calls `drive` for runs of these queues until it is cancelled, and again later for those for
        which it returns True. Waits for the calls that it has begun."""
        ...


class LogEngine:
    """An engine that looks into the log: runs that nobody drives are driven, by priority and then the
    oldest first.

    It is for one process or a few, as limits hold for each process.
    """

    def __init__(self, log: RunLog, *, poll_seconds: float = 0.2) -> None:
        """`poll_seconds`: seconds from one look at the log to the next."""
        self._log, self._poll_seconds = log, poll_seconds
        self._woken = asyncio.Event()

    async def enqueue(self, run_id: str, *, queue: str, priority: int = 0) -> None:  # noqa: ARG002 - the log has it
        """See `Engine`. Only a worker in this process learns of it at once."""
        self._woken.set()

    async def close(self) -> None:
        """See `OpenEngine`. There is nothing to free."""

    async def work(self, drive: Drive, *, queues: Mapping[str, Limit]) -> None:
        """See `Engine`."""
        async with asyncio.TaskGroup() as group:
            looks = [
                _WorkQueue(self._log, drive, name, limit, self._poll_seconds)
                for name, limit in queues.items()
            ]
            while True:
                self._woken.clear()
                for queue in looks:
                    try:
                        await queue.begin_runs(group, self._woken)
                    except DragomanError as error:
                        _LOG.warning(
                            "the queue is asked again in %s s: %s",
                            self._poll_seconds,
                            error.message,
                        )
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._poll_seconds):
                        await self._woken.wait()


class _WorkQueue:
    """One queue, as a worker sees it."""

    def __init__(
        self, log: RunLog, drive: Drive, name: str, limit: Limit, look_seconds: float
    ) -> None:
        """`look_seconds`: seconds from one look at the log to the next."""
        self._log, self._drive, self._name, self._limit = log, drive, name, limit
        self._look_seconds = look_seconds
        self._running: Counter[str] = Counter()
        """Runs that are driven here."""
        self._retry_at: dict[str, float] = {}
        """When runs are tried again that could not be driven, by the monotonic clock."""
        self._next_at = 0.0
        """When the rate allows the next run."""

    async def begin_runs(self, group: asyncio.TaskGroup, woken: asyncio.Event) -> None:
        """Begins to drive runs, as far as there are some and the limit allows it."""
        if not self._has_room():
            return
        now = monotonic()
        self._retry_at = {run_id: time for run_id, time in self._retry_at.items() if time > now}
        states: tuple[RunState, ...] = ("running", "queued")
        for state in states:
            # Runs that are left out must not hide those behind them.
            most = _MOST_LISTED + len(self._retry_at)
            waiting = await self._log.runs(
                state=state, driven=False, queue=self._name, oldest_first=True, most=most
            )
            for status in waiting:
                if not self._has_room():
                    return
                if status.run_id not in self._running and status.run_id not in self._retry_at:
                    self._begin(group, status.run_id, woken)

    def _has_room(self) -> bool:
        limit = self._limit
        is_full = limit.runs is not None and len(self._running) >= limit.runs
        return not is_full and (limit.per_second is None or monotonic() >= self._next_at)

    def _begin(self, group: asyncio.TaskGroup, run_id: str, woken: asyncio.Event) -> None:
        if self._limit.per_second is not None:
            # Runs that became due between two looks at the log are begun together.
            earliest = monotonic() - self._look_seconds
            self._next_at = max(self._next_at, earliest) + 1.0 / self._limit.per_second
        self._running[run_id] += 1
        group.create_task(self._run(run_id, woken), name=f"dragoman-work-{run_id}")

    async def _run(self, run_id: str, woken: asyncio.Event) -> None:
        try:
            if await self._drive(run_id):
                self._retry_at[run_id] = monotonic() + _RETRY_SECONDS
        finally:
            del self._running[run_id]
            # There is room for another run.
            woken.set()
