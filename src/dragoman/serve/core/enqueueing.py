"""Runs of agents that any process over the server's database may drive: how a server enqueues them.

Beside the run stands a job in the log (`KEEP`), which a server carries out: it keeps the answer once
the run is over. Another (`NOTIFY`) sends what happens in a task to its client's addresses. If a
server dies, another one goes on with its jobs as with its runs.
"""

from __future__ import annotations

from time import time
from typing import Any

import anyio
import msgspec

from dragoman.agent import Agent
from dragoman.request import RunRequest
from dragoman.runs.requests import RunTerms
from dragoman.serve.core.answer_record import Record
from dragoman.serve.core.call import Call
from dragoman.serve.core.service import JOBS, QUEUE, Service

__all__ = ["KEEP", "NOTIFY", "enqueue_job", "enqueue_run", "job_id"]

KEEP, NOTIFY = "dragoman.keep", "dragoman.notify"
"""Names of the jobs, in the place of an agent's."""


async def enqueue_run(
    call: Call,
    agent: Agent[Any],
    request: RunRequest,
    terms: RunTerms,
    record: Record,
    *,
    always: bool,
) -> None:
    """Enqueues the run that answers a call. `always`: see `Ending`.

    Raises:
        OverloadedError: as many runs wait and go on as may.
        StoreError: the answer cannot be kept.
        RunLogError: the log refuses it.
    """
    service = call.service
    service.check_open()
    name = service.find_name(agent)
    await service.room.check(service.log)
    payer = msgspec.to_builtins(call.caller)
    terms = msgspec.structs.replace(terms, payer=payer)
    if service.limits.run_seconds is not None:
        terms = msgspec.structs.replace(terms, deadline=time() + service.limits.run_seconds)
    await record.begin_durable(always=always)
    try:
        if await _has_addresses(call, record.task_id):
            await enqueue_job(service, NOTIFY, call.id, call.caller.id)
        await enqueue_job(service, KEEP, call.id, call.caller.id)
        await service.runs.enqueue(name, terms.within(request), queue=QUEUE, owner=call.caller.id)
    except BaseException:
        # The client is answered that nothing was begun.
        with anyio.CancelScope(shield=True):
            await record.forget()
        raise


async def _has_addresses(call: Call, task_id: str | None) -> bool:
    """True if what happens in a task is to be sent somewhere."""
    hooks = call.service.webhooks
    if hooks.policy is None or task_id is None:
        return False
    return bool(await hooks.list_configs(call.caller.id, task_id))


async def enqueue_job(service: Service, name: str, run_id: str, owner: str) -> None:
    """Has a server do something for a run. A second time it does nothing. `owner`: the caller's id."""
    request = RunRequest(run_id=job_id(name, run_id), resource_id=owner)
    await service.runs.enqueue(name, request, queue=JOBS, owner=owner)


def job_id(name: str, run_id: str) -> str:
    """Returns the id of a job of a run in the log."""
    return f"{run_id}.{name.rpartition('.')[2]}"
