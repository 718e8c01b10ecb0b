"""Has Temporal say which durable run is driven where and when (`TemporalEngine`).

A run is a workflow (`temporal_workflow.py`) whose one activity drives it. Each queue is a task queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from temporalio import activity
from temporalio.client import Client
from temporalio.common import Priority, WorkflowIDConflictPolicy
from temporalio.envconfig import ClientConfig, ClientConnectConfig
from temporalio.service import RPCError
from temporalio.worker import Worker

from dragoman.errors import RunLogError
from dragoman.runs.engines import Drive, Limit
from dragoman.runs.log import RunLog
from dragoman.runs.temporal_workflow import ACTIVITY, HEARTBEAT, WORKFLOW, DriveRun
from dragoman.runs.waiting_runs import enqueue_waiting

__all__ = ["TemporalEngine"]

_ADDRESS = "localhost:7233"
_MIDDLE_PRIORITY = 3
_MOST_RUNS = 1000
"""Runs that a worker without a limit drives at a time: Temporal needs a number."""


class TemporalEngine:
    """An engine that leaves to Temporal which run is driven where and when.

    `Limit(runs=…)` holds for each worker, `Limit(per_second=…)` for all workers of a queue together.
    """

    def __init__(
        self,
        log: RunLog,
        *,
        poll_seconds: float = 0.2,
        client: Client | None = None,
        task_queue: str = "dragoman",
    ) -> None:
        """Args:
        log: the log of the runs.
        poll_seconds: a run that could not be driven is tried again after 10 times as long, later
            after 80 times. After 25 times as long the log is asked for runs that Temporal does not
            know.
        client: a connection of yours. `None`: one to where `TEMPORAL_ADDRESS`, `TEMPORAL_NAMESPACE`
            and the other variables and files of Temporal's clients say.
        task_queue: begin of the names of its task queues: the queue `default` is `dragoman-default`.
        """
        self._log, self._poll_seconds = log, poll_seconds
        self._client, self._task_queue = client, task_queue

    async def enqueue(self, run_id: str, *, queue: str, priority: int = 0) -> None:
        """See `Engine`. Priorities from -2 to 2 are told apart.

        Raises:
            RunLogError: Temporal cannot be reached, or refuses it. The run is in the log; a worker
                enqueues it when Temporal is there.
        """
        client = await self._connect()
        try:
            await client.start_workflow(
                WORKFLOW,
                args=[run_id, 10 * self._poll_seconds],
                id=f"{self._task_queue}-{run_id}",
                task_queue=f"{self._task_queue}-{queue}",
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                priority=Priority(priority_key=min(max(_MIDDLE_PRIORITY + priority, 1), 5)),
            )
        except RPCError as error:
            raise RunLogError(f"Temporal does not take run {run_id}: {error.message}") from error

    async def work(self, drive: Drive, *, queues: Mapping[str, Limit]) -> None:
        """See `Engine`.

        Raises:
            RunLogError: Temporal cannot be reached, or refuses the worker.
        """
        client = await self._connect()
        try:
            async with asyncio.TaskGroup() as group:
                for queue, limit in queues.items():
                    worker = Worker(
                        client,
                        task_queue=f"{self._task_queue}-{queue}",
                        workflows=[DriveRun],
                        activities=[_make_activity(drive)],
                        max_concurrent_activities=limit.runs or _MOST_RUNS,
                        max_task_queue_activities_per_second=limit.per_second,
                        # They would not be counted by the server.
                        disable_eager_activity_execution=True,
                    )
                    group.create_task(worker.run())
                seconds = 25 * self._poll_seconds
                group.create_task(enqueue_waiting(self, self._log, queues, seconds=seconds))
        except ExceptionGroup as errors:
            raise RunLogError(f"Temporal ends the worker: {errors.exceptions[0]}") from errors

    async def close(self) -> None:
        """See `OpenEngine`. A client has nothing to close."""

    async def _connect(self) -> Client:
        """Returns the client, connected."""
        if self._client is None:
            settings: ClientConnectConfig = {"target_host": _ADDRESS}
            try:
                settings.update(ClientConfig.load_client_connect_config())
                self._client = await Client.connect(**settings)
            except RuntimeError as error:
                raise RunLogError(
                    f"Temporal cannot be reached at {settings.get('target_host')}: {error}; start it, or set TEMPORAL_ADDRESS"
                ) from error
        return self._client


def _make_activity(drive: Drive) -> Callable[[str], Coroutine[Any, Any, bool]]:
    """Returns what Temporal calls for each run."""

    @activity.defn(name=ACTIVITY)
    async def drive_run(run_id: str) -> bool:
        heart = asyncio.create_task(_beat())
        try:
            return await drive(run_id)
        except asyncio.CancelledError:
            if activity.is_worker_shutdown():
                # It is handed over: another worker is to go on.
                return True
            raise
        finally:
            heart.cancel()

    return drive_run


async def _beat() -> None:
    """Tells Temporal that the worker is alive, until it is cancelled."""
    while True:
        activity.heartbeat()
        await asyncio.sleep(HEARTBEAT.total_seconds() / 4)
