"""What servers do beside durable runs, each thing in one of them at a time: they keep the answer once
the run is over (`KeepJob`), and send what happens in a task to its client's addresses (`NotifyJob`).

A job is an entry in the log like a run. If its server dies, another server goes on with it. A
notification may then be sent twice.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from contextlib import aclosing
from functools import partial
from typing import Any, cast

from dragoman import wires
from dragoman.agent import Agent
from dragoman.event import Custom, RunFinished
from dragoman.logs import logger
from dragoman.request import RunRequest
from dragoman.runs.closing import read_pages
from dragoman.runs.driver import FinalEvent, PutEvents, RunDriver
from dragoman.serve.apis.a2a_push import dump_run
from dragoman.serve.apis.a2a_tasks import request_of
from dragoman.serve.core.call import Call
from dragoman.serve.core.enqueueing import KEEP, NOTIFY
from dragoman.serve.core.service import Durability, Service
from dragoman.serve.core.settling import EndKeeper, is_open
from dragoman.serve.endpoint import api_of
from dragoman.serve.http.call_metrics import Observed
from dragoman.serve.http.callers import Caller
from dragoman.serve.http.connection import Connection
from dragoman.serve.store.stored_answer import Answered

__all__ = ["make_durability"]

_LOG = logger("serve")
_TOLD = "dragoman.told"
"""Name of the event with the number of a run's events of which a job has told."""
_AGAIN_SECONDS = 1.0


def make_durability(agents: dict[str, Agent[Any]], *, drives: bool, notifies: bool) -> Durability:
    """Returns how a server enqueues runs of these agents. `drives`: it drives runs itself. `notifies`:
    it sends notifications."""

    async def settle(service: Service, answered: Answered) -> Answered:
        return await EndKeeper(service, partial(_call_for, service)).settle(answered)

    jobs: dict[str, type[_Job]] = {KEEP: KeepJob}
    if notifies:
        jobs[NOTIFY] = NotifyJob
    return Durability(agents=agents, drives=drives, jobs=jobs, settle=settle)


class _Job(ABC):
    """A job for the run of an answer. Its entry in the log has the run's id before the point, and as
    resource the caller whose it is."""

    def __init__(self, service: Service, request: RunRequest) -> None:
        self._service = service
        self._entry, self._owner = request.run_id or "", request.resource_id or ""
        self._run_id = self._entry.rpartition(".")[0]

    @property
    def id(self) -> str:
        """See `EventSource`."""
        return self._entry

    def cancel(self, driver: RunDriver) -> None:
        """See `EventSource`."""
        driver.end_with(RunFinished(self._entry, "cancelled"))

    async def read(self, put: PutEvents) -> None:
        """See `EventSource`. What fails is tried again: a store of the user's raises what it likes."""
        while True:
            try:
                await self._work(put)
                break
            except Exception:  # noqa: BLE001 - see above
                _LOG.exception("the job %s is tried again", self._entry)
                await asyncio.sleep(_AGAIN_SECONDS)
        await put([RunFinished(self._entry)])

    @abstractmethod
    async def _work(self, put: PutEvents) -> None:
        """Does the job, from where the events in its log say it was."""

    async def handle_end(self, last: FinalEvent) -> None:  # noqa: B027 - most do nothing
        """See `EventSource`."""


class KeepJob(_Job):
    """Keeps the answer of a run once that is over."""

    async def _work(self, put: PutEvents) -> None:  # noqa: ARG002 - it gives no events
        keeper = EndKeeper(self._service, partial(_call_for, self._service))
        await keeper.keep_end(self._owner, self._run_id)


class NotifyJob(_Job):
    """Sends what happens in a run of a task to the addresses that the task has."""

    async def _work(self, put: PutEvents) -> None:
        service = self._service
        answered = await self._wait_for_run()
        if answered is not None and answered.task_id is not None:
            call, count = _call_for(service, answered), 0
            sent_count = 0
            async for page in read_pages(service.log, self._entry):
                sent_count = max(
                    [sent_count, *[event.value for event in page if isinstance(event, Custom)]]
                )
            objects = dump_run(call, self._run_id, answered.task_id, request_of(call, answered))
            async with aclosing(objects):
                async for item in objects:
                    count += 1
                    if count > sent_count:
                        await service.webhooks.deliver(self._owner, answered.task_id, item)
                        await put([Custom(_TOLD, count)])

    async def _wait_for_run(self) -> Answered | None:
        """Returns the answer once its run is in the log, or None if it has none."""
        while True:
            answered = await self._service.answers.get(self._owner, self._run_id)
            if answered is None or self._run_id in await self._service.log.status([self._run_id]):
                return answered
            if not is_open(answered):
                return None
            await asyncio.sleep(_AGAIN_SECONDS)


def _call_for(service: Service, answered: Answered) -> Call:
    """Returns a call like that which began an answer."""
    wire = wires.get(answered.wire)
    user = answered.ending.user if answered.ending is not None else ""
    route = wire.routes[0]
    observed = Observed(
        call_id=answered.id, wire=wire.name, purpose=route.purpose, method="", path="", started=0.0
    )
    return Call(
        service=service,
        api=api_of(wire),
        wire=wire,
        route=route,
        caller=Caller(answered.owner),
        path="",
        query={},
        headers={},
        parameters={},
        body={"user": user} if user else {},
        # Nobody is answered.
        connection=cast("Connection", None),
        id=answered.id,
        now=answered.created_at,
        observed=observed,
    )
