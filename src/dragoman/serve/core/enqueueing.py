"""Runs of agents that any process over the server's database may drive: how a server enqueues them,
and how calls read them.

Beside the run stands a job in the log (`KEEP`), which a server carries out: it keeps the answer once
the run is over. Another (`NOTIFY`) sends what happens in a task to its client's addresses. If a
server dies, another one goes on with its jobs as with its runs.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from time import time

import anyio
import msgspec

from dragoman.codec.response_state import drop_retracted
from dragoman.errors import DragomanError
from dragoman.event import Event, RunError
from dragoman.logs import logger
from dragoman.request import RunRequest
from dragoman.runs.requests import RunTerms
from dragoman.serve.core.answer_record import Record
from dragoman.serve.core.call import Call
from dragoman.serve.core.service import JOBS, QUEUE, Service

__all__ = [
    "KEEP",
    "NOTIFY",
    "EnqueuedRecord",
    "enqueue_job",
    "enqueue_run",
    "read_answer",
    "read_run",
    "wait_for_job",
]

_LOG = logger("serve")
KEEP, NOTIFY = "dragoman.keep", "dragoman.notify"
"""Names of the jobs, in the place of an agent's."""


async def enqueue_run(
    call: Call, agent: str, request: RunRequest, terms: RunTerms, record: Record, *, always: bool
) -> None:
    """Enqueues the run that answers a call. `agent`: its name. `always`: see `Ending`.

    Raises:
        OverloadedError: as many runs wait and go on as may.
        StoreError: the answer cannot be kept.
        RunLogError: the log refuses it.
    """
    service = call.service
    await service.room.check(service.log)
    if service.limits.run_seconds is not None:
        terms = msgspec.structs.replace(terms, deadline=time() + service.limits.run_seconds)
    await record.begin_durable(always=always)
    try:
        if record.task_id and service.webhooks.policy is not None:
            if await service.webhooks.list_configs(call.caller.id, record.task_id):
                await enqueue_job(service, NOTIFY, call.id, call.caller.id)
        await enqueue_job(service, KEEP, call.id, call.caller.id)
        await service.runs.enqueue(
            agent, terms.within(request), queue=QUEUE, owner=call.caller.id
        )
    except BaseException:
        # The client is answered that nothing was begun.
        with anyio.CancelScope(shield=True):
            await record.forget()
        raise


async def enqueue_job(service: Service, name: str, run_id: str, owner: str) -> None:
    """Has a server do something for a run. A second time it does nothing. `owner`: the caller's id."""
    request = RunRequest(run_id=job_id(name, run_id), resource_id=owner)
    await service.runs.enqueue(name, request, queue=JOBS, owner=owner)


def job_id(name: str, run_id: str) -> str:
    """Returns the id of a job of a run in the log."""
    return f"{run_id}.{name.rpartition('.')[2]}"


async def read_answer(
    call: Call,
    feed: Callable[[Sequence[Event]], list[Event]],
    blame: Callable[[DragomanError], DragomanError],
    *,
    whole: bool,
    cancel_on_leave: bool,
) -> AsyncGenerator[list[Event], None]:
    """Yields a run that was enqueued, as the client of a model's API gets it.

    Args:
        call: the call that the run answers.
        feed: returns what the client gets of events.
        blame: returns the error that the client gets for that of the run.
        whole: the client gets all at once, so what was retracted is left out.
        cancel_on_leave: see `read_run`.
    """
    kept: list[Event] = []
    async with read_run(call, call.id, cancel_on_leave=cancel_on_leave) as pages:
        async for page in pages:
            last = page[-1]
            if isinstance(last, RunError) and (error := blame(last.error)) is not last.error:
                raise error
            if whole:
                kept += page
            elif events := feed(page):
                yield events
    if whole:
        yield feed(drop_retracted(kept))


@asynccontextmanager
async def read_run(
    call: Call, run_id: str, *, cancel_on_leave: bool
) -> AsyncGenerator[AsyncIterator[Sequence[Event]]]:
    """Gives the events of a run from its first to its end, by the page, for as long as its client
    stays. A client that reads slowly holds the run back. `cancel_on_leave`: the run ends if the
    client leaves before it does; if the server ends, others go on with a durable run."""
    is_over = False
    try:
        async with aclosing(call.service.runs.pages(run_id, paces=True)) as pages:
            yield pages
        is_over = True
    finally:
        is_left = cancel_on_leave and not is_over
        if is_left and not (call.service.durable and call.connection.is_interrupted):
            with anyio.CancelScope(shield=True):
                await call.service.runs.cancel(run_id)


class EnqueuedRecord:
    """Stands in the place of a `Record` where a job keeps the answer."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def add(self, events: Sequence[Event]) -> None:
        """Notes for the metrics what the client gets."""
        self._call.observed.add(events)

    async def end(self) -> None:
        """Waits until the answer is kept, so that the client can go on from it at once."""
        service = self._call.service
        await wait_for_job(service, KEEP, self._call.id, service.limits.keep_seconds)


async def wait_for_job(service: Service, name: str, run_id: str, seconds: float | None) -> None:
    """Waits until a job of a run is done, at most so many seconds."""
    try:
        with anyio.move_on_after(seconds):
            await service.runs.wait(job_id(name, run_id))
    except DragomanError as error:
        _LOG.info("whether an answer is kept cannot be found out: %s", error.message)
