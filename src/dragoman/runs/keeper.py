"""The background task of `Runs`. Every `poll_seconds` it asks the log once for all runs concerned.

Each round it does four things: it wakes readers whose run another process has continued, passes
posted messages to the drivers of this process, renews leases, and ends runs whose process is gone.
The last one happens for all runs of the log once per lease time, and for the runs that are read
here in every round.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from time import monotonic

from dragoman.errors import DragomanError, LeaseLostError, RunInterruptedError, RunLogError
from dragoman.event import RunError
from dragoman.logs import logger
from dragoman.runs.closing import end_run
from dragoman.runs.driver import RunDriver
from dragoman.runs.log import Lease, RunLog, RunStatus
from dragoman.runs.tail import RunTail

__all__ = ["CANCEL", "DrivenRun", "Keeper", "not_entered_error"]

_LOG = logger("runs")

CANCEL = {"type": "cancel"}
"""The control message that stops a run."""


@dataclass
class DrivenRun:
    """A run that this process drives."""

    driver: RunDriver
    """Stores its events."""
    lease: Lease
    """The lease of this process."""
    tail: RunTail
    """The events that were stored last."""
    task: asyncio.Task[None]
    """The task that drives it."""
    is_durable: bool = False
    """True if another process can go on with it."""
    posts: int = 0
    """Number of control messages that were read."""
    renewed_at: float = field(default_factory=monotonic)
    """When the lease was renewed last, by the monotonic clock."""

    def stop(self) -> None:
        """Cancels the run, or hands it over if it is durable."""
        if self.is_durable:
            self.driver.hand_over()
        else:
            self.driver.cancel()

    async def wait_for_tools(self, seconds: float) -> None:
        """Waits until no tool of the run is at work, the run has ended, or so many seconds are over."""
        between_tools = asyncio.create_task(self.driver.calls_at_work.wait_for_none())
        try:
            await asyncio.wait(
                [self.task, between_tools], timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            between_tools.cancel()


class Keeper:
    """Looks after the runs that this process drives or reads."""

    def __init__(
        self, log: RunLog, owner: str, *, lease_seconds: float, poll_seconds: float
    ) -> None:
        """Creates the keeper of one process's runs. Times are in seconds."""
        self.driven: dict[str, DrivenRun] = {}
        self._log = log
        self._owner = owner
        self._lease_seconds = lease_seconds
        self._poll_seconds = poll_seconds
        self._waiting: dict[asyncio.Future[None], RunStatus] = {}
        """Readers that wait for a run to change, with the status that they know."""
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._is_open = False

    @property
    def is_open(self) -> bool:
        """True while the background task runs."""
        return self._is_open

    def open(self) -> asyncio.Task[None]:
        """Starts the background task and returns it. The caller cancels it."""
        self._is_open = True
        return asyncio.create_task(self._run(), name="dragoman-runs")

    def add(self, driven: DrivenRun) -> None:
        """Adds a run that this process drives. It is removed when its task ends."""
        run_id = driven.lease.run_id
        self.driven[run_id] = driven
        driven.task.add_done_callback(lambda task: self._remove(run_id, task))
        self._work.set()
        # Its readers in this process get its events from now on without looking into the log.
        for future, status in self._waiting.items():
            if status.run_id == run_id and not future.done():
                future.set_result(None)

    async def idle(self) -> None:
        """Waits until the keeper's process drives no run."""
        while self.driven:
            self._idle.clear()
            await self._idle.wait()

    async def wait_for_change(self, status: RunStatus) -> None:
        """Waits until the keeper finds that a run has more events than `status` says, or is over.
        If no process drives it any more, the run is ended, unless it is durable.

        Raises:
            RunLogError: the background task does not run.
        """
        if not self._is_open:
            raise not_entered_error()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = status
        self._work.set()
        try:
            await future
        finally:
            self._waiting.pop(future, None)

    async def _run(self) -> None:
        """Runs the keeper's background task. At its end all waiting readers get an error."""
        try:
            await self._run_rounds()
        finally:
            self._is_open = False
            for future in self._waiting:
                if not future.done():
                    future.set_exception(not_entered_error())

    async def _run_rounds(self) -> None:
        """Looks after the runs until the task is cancelled. If the log fails it is asked again."""
        looked_at = -self._lease_seconds
        while True:
            try:
                # Listing all runs costs the log more than reading some, so it happens only once per
                # lease time.
                if monotonic() - looked_at >= self._lease_seconds:
                    looked_at = monotonic()
                    await self._end_abandoned(await self._log.runs(state="running", driven=False))
                await self._check_runs()
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
                # A run that was just started has nothing to look at yet, so wait one interval more.
                if not self._waiting:
                    await asyncio.sleep(self._poll_seconds)

    async def _check_runs(self) -> None:
        """Does one round of the keeper for the runs that are driven or read here."""
        run_ids = {*self.driven, *(status.run_id for status in self._waiting.values())}
        if not run_ids:
            return
        statuses = await self._log.status(run_ids)
        for future, before in list(self._waiting.items()):
            status = statuses.get(before.run_id)
            has_changed = status is None or status.is_over or status.end > before.end
            if has_changed and not future.done():
                future.set_result(None)
        await self._read_posts(statuses)
        await self._renew_leases()
        await self._end_abandoned(
            [status for status in statuses.values() if not (status.is_over or status.driven)]
        )

    async def _read_posts(self, statuses: dict[str, RunStatus]) -> None:
        """Cancels the keeper's runs to which a cancellation was posted."""
        for run_id, driven in list(self.driven.items()):
            status = statuses.get(run_id)
            if status is None or status.posts <= driven.posts:
                continue
            for post in await self._log.read_posts(run_id, driven.posts):
                driven.posts = post.number
                if post.message == CANCEL:
                    driven.driver.cancel()

    async def _renew_leases(self) -> None:
        """Renews the keeper's leases of which a third of their time is over."""
        due = [
            driven
            for driven in self.driven.values()
            if monotonic() - driven.renewed_at > self._lease_seconds / 3
        ]
        if due:
            await asyncio.gather(*map(self._renew_lease, due))

    async def _renew_lease(self, driven: DrivenRun) -> None:
        """Renews the lease of one of the keeper's runs. If another process holds it by now, the run
        is left to it."""
        requested_at, lease = monotonic(), driven.lease
        try:
            await self._log.lease(lease.run_id, lease.owner, self._lease_seconds, token=lease.token)
        except LeaseLostError as error:
            _LOG.warning("run %s is left: %s", lease.run_id, error.message)
            # Its events would be refused from now on, since another process holds
            # the lease.
            driven.task.cancel()
        except RunLogError as error:
            _LOG.info("the lease of run %s was not prolonged: %s", lease.run_id, error.message)
        else:
            driven.renewed_at = requested_at

    async def _end_abandoned(self, statuses: Collection[RunStatus]) -> None:
        """Ends runs of other processes that no process drives any more. A process that has the agent
        of a durable run goes on with it."""
        for status in statuses:
            if status.run_id in self.driven or status.is_durable:
                continue
            error = RunInterruptedError(
                f"run {status.run_id} was interrupted: the process that drove it ({status.owner}) ended first. "
                "The log holds its events so far; send the request again to continue from there"
            )
            try:
                lease = await self._log.lease(status.run_id, self._owner, self._lease_seconds)
                await end_run(self._log, lease, RunError(error, status.run_id))
            except DragomanError as refused:
                # Another process ended it first, or the log cannot be read.
                _LOG.info("run %s is not ended here: %s", status.run_id, refused.message)

    def _remove(self, run_id: str, task: asyncio.Task[None]) -> None:
        """Removes from the keeper a run whose task has ended."""
        self.driven.pop(run_id, None)
        self._idle.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.error("run %s broke off: %r", run_id, error)


def not_entered_error() -> RunLogError:
    """Returns the error for using `Runs` outside its `async with` block."""
    return RunLogError(
        "Runs is not open: start and read runs inside the block `async with Runs(log) as runs`"
    )
