"""An engine on DBOS (`DbosEngine`): queues whose limits hold over all processes, priorities and
rates, kept in SQLite or Postgres.

DBOS gets ids of runs, no messages. Its workflow is one *look* at a run: `drive` is called, and if the
run is to be tried again later, the next look is enqueued. A look of a process that died stays
`PENDING` and keeps its place in the limit of its queue. Every worker compares such looks with the
leases in the log, and enqueues them again once nobody drives their runs: the lease alone tells who
is dead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from contextvars import Context, copy_context
from functools import partial
from typing import Any, Literal, TypeVar

from dbos import DBOS, DBOSClient, EnqueueOptions, WorkflowSerializationFormat
from dbos import error as dbos_errors
from sqlalchemy.exc import SQLAlchemyError

from dragoman.errors import DragomanError, RunLogError, SettingsError
from dragoman.logs import logger
from dragoman.runs.dbos_host import DbosHost, has_foreign_dbos, open_client, system_database
from dragoman.runs.engines import Drive, Limit
from dragoman.runs.log import RunLog, RunStatus
from dragoman.runs.sql_log import SqlLog
from dragoman.runs.waiting_runs import enqueue_waiting

__all__ = ["DbosEngine"]

_LOG = logger("runs")
_WORKFLOW = "dragoman.look"
_FIRST_PRIORITY, _LAST_PRIORITY = 1, 2**31 - 1
_AGAIN_SECONDS = 1.0
"""Seconds after which a run is looked at again that could not be driven."""
_SWEEP_SECONDS = 0.5
"""Seconds from one look for runs of dead processes to the next."""
_CHECK_SECONDS = 10.0
"""Seconds from one look for runs that DBOS never got to the next."""
T = TypeVar("T")
_Next = Literal["never", "later", "first"]
"""When a run is looked at again: `first` of its queue if it has begun, else `later`."""


class DbosEngine:
    """An engine on DBOS. Limits hold for a queue, over all processes."""

    def __init__(
        self, log: RunLog, *, poll_seconds: float = 0.2, system_database_url: str | None = None
    ) -> None:
        """Opens nothing yet.

        Args:
            log: the log of the runs, in SQLite or Postgres.
            poll_seconds: seconds from one look at a queue to the next.
            system_database_url: where DBOS keeps its tables; `None`: in the database of the log, in
                SQLite in the file `PATH.dbos` beside it. A `DBOS` of your own that this process has
                is used in its place.

        Raises:
            SettingsError: the log is in memory.
        """
        if not isinstance(log, SqlLog):
            raise SettingsError(
                'the engine "dbos" needs a log that other processes can open: sqlite:///PATH or postgresql://USER:PASSWORD@HOST/DATABASE'
            )
        self._log, self._poll_seconds = log, poll_seconds
        self._url = system_database_url or system_database(log.url)
        self._client: DBOSClient | None = None
        self._closing = ExitStack()
        self._opening = asyncio.Lock()

    async def enqueue(self, run_id: str, *, queue: str, priority: int = 0) -> None:
        """See `Engine`."""
        options = _look_options(run_id, queue, priority, 0)
        if has_foreign_dbos():
            enqueue = DBOS.enqueue_workflow_with_options
        else:
            enqueue = (await self._open_client()).enqueue
        await _in_thread(enqueue, options, run_id, queue, priority, 0)

    async def work(self, drive: Drive, *, queues: Mapping[str, Limit]) -> None:
        """See `Engine`.

        Raises:
            SettingsError: this process works already, on another log or other queues.
            RunLogError: DBOS cannot be launched.
        """
        client = None
        if not has_foreign_dbos():
            client = await self._open_client()
        names = {_queue_name(name): limit for name, limit in queues.items()}
        await _in_thread(DbosHost.enter, self._url, client, names, self._poll_seconds)
        try:
            async with asyncio.TaskGroup() as group:
                worker = _Worker(self._log, drive, group, self._poll_seconds)
                for name in queues:
                    _WORKERS.setdefault(name, []).append(worker)
                checking = enqueue_waiting(self, self._log, tuple(queues), seconds=_CHECK_SECONDS)
                group.create_task(checking, name="dragoman-enqueue-waiting")
                try:
                    await self._sweep(tuple(queues))
                finally:
                    for name in queues:
                        _WORKERS[name].remove(worker)
        finally:
            await _in_thread(DbosHost.leave)

    async def close(self) -> None:
        """See `OpenEngine`."""
        await _in_thread(self._closing.close)
        self._client = None

    async def _open_client(self) -> DBOSClient:
        async with self._opening:
            if self._client is None:
                self._client = await _in_thread(open_client, self._url, self._closing)
        return self._client

    async def _sweep(self, queues: Iterable[str]) -> None:
        """Enqueues looks of dead processes again, until it is cancelled."""
        suspects = set[str]()
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            try:
                suspects = await self._resume_dead(suspects, queues)
            except DragomanError as error:
                _LOG.warning("runs of dead processes are looked for again: %s", error.message)

    async def _resume_dead(self, suspects: set[str], queues: Iterable[str]) -> set[str]:
        """Enqueues looks again whose runs nobody drives, and did not at the last sweep either
        (`suspects`). Returns those to suspect at the next."""
        looks = await _in_thread(
            DBOS.list_workflows,
            status="PENDING",
            name=_WORKFLOW,
            queue_name=[*map(_queue_name, queues)],
            load_input=False,
            load_output=False,
        )
        run_ids = {look.workflow_id: look.workflow_id.split("/", 2)[2] for look in looks}
        statuses = await self._log.status(set(run_ids.values()))
        idle = {look for look, run_id in run_ids.items() if not _is_driven(statuses.get(run_id))}
        for look in looks:
            if look.workflow_id in idle & suspects:
                await _in_thread(DBOS.resume_workflow, look.workflow_id, queue_name=look.queue_name)
        return idle - suspects


class _Worker:
    """Drives runs in the event loop of `work`, for workflows in that of DBOS."""

    def __init__(
        self, log: RunLog, drive: Drive, group: asyncio.TaskGroup, poll_seconds: float
    ) -> None:
        self._log, self._drive, self._group = log, drive, group
        self._poll_seconds = poll_seconds
        self._loop, self._context = asyncio.get_running_loop(), copy_context()

    async def drive(self, run_id: str) -> _Next:
        """Drives a run from another event loop. Returns when it is to be looked at again."""
        result = Future[_Next]()
        try:
            # Tools must not find themselves in a workflow of DBOS.
            self._loop.call_soon_threadsafe(self._begin, run_id, result, context=self._context)
        except RuntimeError:
            # The loop is closed.
            return "first"
        return await asyncio.wrap_future(result)

    def _begin(self, run_id: str, result: Future[_Next]) -> None:
        driving = self._run(run_id, result)
        try:
            self._group.create_task(driving, name=f"dragoman-work-{run_id}")
        except RuntimeError:
            # The worker ends.
            driving.close()
            result.set_result("first")

    async def _run(self, run_id: str, result: Future[_Next]) -> None:
        next_look: _Next = "first"
        try:
            next_look = await self._drive_or_wait(run_id)
        finally:
            # A run of a worker that stops has begun, so it comes first.
            result.set_result(next_look)

    async def _drive_or_wait(self, run_id: str) -> _Next:
        """Drives a run, or holds its place in the limit while another process drives it."""
        while await self._drive(run_id):
            try:
                status = (await self._log.status([run_id])).get(run_id)
            except DragomanError:
                return "first"
            if status is None or status.state != "running":
                return "later"
            if not status.driven:
                return "first"
            await asyncio.sleep(self._poll_seconds)
        return "never"


_WORKERS: dict[str, list[_Worker]] = {}
"""Workers of this process, by their queues."""


@DBOS.workflow(name=_WORKFLOW, max_recovery_attempts=None)
async def _look(run_id: str, queue: str, priority: int, number: int) -> None:
    """The workflow of DBOS: looks at a run, for the time with that number."""
    next_look: _Next = "later"
    if workers := _WORKERS.get(queue):
        next_look = await workers[-1].drive(run_id)
    if next_look == "never":
        return
    options = _look_options(run_id, queue, priority, number + 1)
    options["delay_seconds"] = _AGAIN_SECONDS
    if next_look == "first":
        options["priority"] = _FIRST_PRIORITY
    await DBOS.enqueue_workflow_with_options_async(options, run_id, queue, priority, number + 1)


def _look_options(run_id: str, queue: str, priority: int, number: int) -> EnqueueOptions:
    """Says how a look is enqueued. Its id makes it one, however often it is enqueued."""
    middle = _LAST_PRIORITY // 2
    return EnqueueOptions(
        workflow_name=_WORKFLOW,
        workflow_id=f"dragoman/{number}/{run_id}",
        queue_name=_queue_name(queue),
        priority=min(max(middle + priority, _FIRST_PRIORITY), _LAST_PRIORITY),
        serialization_type=WorkflowSerializationFormat.PORTABLE,
    )


def _queue_name(queue: str) -> str:
    """Returns the name of a queue in DBOS, where the user may have others."""
    return f"dragoman-{queue}"


def _is_driven(status: RunStatus | None) -> bool:
    return status is not None and status.driven


async def _in_thread(function: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """Calls a function of DBOS in a thread, outside a workflow that the caller may be in.

    Its own `_async` functions would make its threads those of the caller's event loop, for good.

    Raises:
        RunLogError: DBOS or its database failed.
    """
    work = partial(function, *arguments, **options)
    try:
        return await asyncio.get_running_loop().run_in_executor(None, Context().run, work)
    except (dbos_errors.DBOSException, SQLAlchemyError) as error:
        raise RunLogError(f"DBOS: {error}") from error
