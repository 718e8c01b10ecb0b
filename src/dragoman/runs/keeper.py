"""What `Runs` does at intervals: prolongs its leases, hears what was posted, sees what other
processes stored, ends runs that nobody drives any more."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from time import monotonic

from dragoman.errors import DragomanError, LeaseLostError, RunInterruptedError, RunLogError
from dragoman.event import RunError
from dragoman.logs import logger
from dragoman.runs.driving import Driving, end_run
from dragoman.runs.log import Lease, RunLog, RunStatus
from dragoman.runs.tail import RunTail

__all__ = ["CANCEL", "Driven", "Keeper", "not_entered"]

_LOG = logger("runs")

CANCEL = {"type": "cancel"}
"""The message that stops a run."""


@dataclass
class Driven:
    """A run that this process drives."""

    driving: Driving
    """What drives it."""
    lease: Lease
    """That of this process on it."""
    tail: RunTail
    """What was stored of it last."""
    task: asyncio.Task[None]
    """In which that is done."""
    posts: int = 0
    """How many messages it has been given."""
    prolonged_at: float = field(default_factory=monotonic)
    """When its lease was, by the monotonic clock."""


class Keeper:
    """Asks the log once an interval for all runs that it is about, however many."""

    def __init__(
        self, log: RunLog, owner: str, *, lease_seconds: float, poll_seconds: float
    ) -> None:
        self.driven: dict[str, Driven] = {}
        self._log = log
        self._owner = owner
        self._lease_seconds = lease_seconds
        self._poll_seconds = poll_seconds
        self._waiting: dict[asyncio.Future[None], RunStatus] = {}
        """Who waits for a run to be other than it was."""
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._is_open = False

    @property
    def is_open(self) -> bool:
        """Whether it works."""
        return self._is_open

    def open(self) -> asyncio.Task[None]:
        """Begins to work → the task that does; whoever gets it cancels it."""
        self._is_open = True
        return asyncio.create_task(self._keep(), name="dragoman-runs")

    def add(self, driven: Driven) -> None:
        """Takes a run that is driven from now on, until its task ends."""
        run_id = driven.lease.run_id
        self.driven[run_id] = driven
        driven.task.add_done_callback(lambda task: self._remove(run_id, task))
        self._work.set()

    async def idle(self) -> None:
        """Waits until no run is driven here."""
        while self.driven:
            self._idle.clear()
            await self._idle.wait()

    async def changed(self, status: RunStatus) -> None:
        """Waits until there is more of a run than that, or it is over. Where nobody drives it any
        more, it is ended.

        Raises:
            RunLogError: nothing is kept here, or not any more.
        """
        if not self._is_open:
            raise not_entered()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = status
        self._work.set()
        try:
            await future
        finally:
            self._waiting.pop(future, None)

    async def _keep(self) -> None:
        try:
            await self._work_on()
        finally:
            self._is_open = False
            for future in self._waiting:
                if not future.done():
                    future.set_exception(not_entered())

    async def _work_on(self) -> None:
        """Works until it is cancelled. A log that cannot be reached is asked again."""
        looked_at = -self._lease_seconds
        while True:
            try:
                # Runs whose process is gone are looked for once a lease; those that are read here
                # at every look.
                if monotonic() - looked_at >= self._lease_seconds:
                    looked_at = monotonic()
                    await self._end_left(await self._log.runs(state="running", driven=False))
                await self._look()
            except DragomanError as error:
                _LOG.warning(
                    "the log of runs is asked again in %s s: %s", self._poll_seconds, error.message
                )
            if self.driven or self._waiting:
                await asyncio.sleep(self._poll_seconds)
            else:
                self._work.clear()
                try:
                    async with asyncio.timeout(self._lease_seconds):
                        await self._work.wait()
                except TimeoutError:
                    continue
                # Nothing can have become of a run that has just begun.
                if not self._waiting:
                    await asyncio.sleep(self._poll_seconds)

    async def _look(self) -> None:
        wanted = {*self.driven, *(status.run_id for status in self._waiting.values())}
        if not wanted:
            return
        now = await self._log.status(wanted)
        for future, before in list(self._waiting.items()):
            status = now.get(before.run_id)
            if not future.done() and (status is None or status.is_over or status.end > before.end):
                future.set_result(None)
        await self._hear(now)
        await self._prolong()
        await self._end_left(
            [status for status in now.values() if not (status.is_over or status.driven)]
        )

    async def _hear(self, now: dict[str, RunStatus]) -> None:
        for run_id, driven in list(self.driven.items()):
            if (status := now.get(run_id)) is not None and status.posts > driven.posts:
                for posted in await self._log.posted(run_id, driven.posts):
                    driven.posts = posted.number
                    if posted.message == CANCEL:
                        driven.driving.cancel()

    async def _prolong(self) -> None:
        due = [
            driven
            for driven in self.driven.values()
            if monotonic() - driven.prolonged_at > self._lease_seconds / 3
        ]
        if due:
            await asyncio.gather(*map(self._prolong_one, due))

    async def _prolong_one(self, driven: Driven) -> None:
        requested_at, lease = monotonic(), driven.lease
        try:
            await self._log.lease(lease.run_id, lease.owner, self._lease_seconds, token=lease.token)
        except LeaseLostError as error:
            _LOG.warning("run %s is left: %s", lease.run_id, error.message)
            driven.task.cancel()
        except RunLogError as error:
            _LOG.info("the lease of run %s was not prolonged: %s", lease.run_id, error.message)
        else:
            driven.prolonged_at = requested_at

    async def _end_left(self, statuses: Collection[RunStatus]) -> None:
        for status in statuses:
            if status.run_id in self.driven:
                continue
            error = RunInterruptedError(
                f"run {status.run_id} was interrupted: the process that drove it ({status.owner}) ended before it did. The log holds "
                "what there was; send again to go on from there"
            )
            try:
                lease = await self._log.lease(status.run_id, self._owner, self._lease_seconds)
                await end_run(self._log, lease, RunError(error, status.run_id))
            except DragomanError as refused:
                # Another process was first, or the log cannot be read.
                _LOG.info("run %s is not ended here: %s", status.run_id, refused.message)

    def _remove(self, run_id: str, task: asyncio.Task[None]) -> None:
        self.driven.pop(run_id, None)
        self._idle.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.error("run %s broke off: %r", run_id, error)


def not_entered() -> RunLogError:
    """The error for whoever needs a `Runs` that works."""
    return RunLogError(
        "runs are started and read inside of `async with Runs(log) as runs`, and it is not entered, or was left"
    )
