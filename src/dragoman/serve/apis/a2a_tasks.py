"""Whole tasks. A task is the runs of one conversation until none of them waits for the client any
more.

A task is made of what happened in its runs, one after the other. With the record of each run the
task is kept as it was after that run, so that reading it takes one read of the store. While a run
goes on its record holds the task before it, to which the events of the log are added. Where nothing
is kept (records of before, a task that is too large, a run that another protocol began) all runs
are read and the task is made anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import if_list, if_object
from dragoman.errors import ContentRefusedError, ModelNotFoundError, ProviderError
from dragoman.event import Event, RunError, RunFinished, RunStarted
from dragoman.fold import compact, unfold
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Message
from dragoman.request import RunRequest
from dragoman.serve.core.call import Call
from dragoman.serve.core.client_events import show_events
from dragoman.serve.core.threads import name_of, resource_of
from dragoman.serve.store.stored_answer import Answered
from dragoman.wires import a2a

__all__ = [
    "TaskProgress",
    "context_of",
    "end_task",
    "find_run",
    "is_over",
    "load_events",
    "load_task",
    "request_of",
    "is_waiting",
]

_MOST_TASK_BYTES = 256 * 1024
"""Bytes of a task that is kept beside its run: each later run keeps it again."""

Task = JsonMap


async def find_run(call: Call, task_id: str) -> Answered:
    """Returns the latest run of the client's task of that id.

    Raises:
        ModelNotFoundError: the client has none.
    """
    if task_id:
        run = await call.service.answers.find(call.caller.id, [f"task:{task_id}"])
    else:
        run = None
    if run is None:
        raise ModelNotFoundError(f"there is no task {task_id!r:.200} here")
    return await call.service.settle(run)


def is_waiting(run: Answered) -> bool:
    """Returns whether a task waits for its client after its latest run."""
    return run.state == "completed" and bool(run.pending)


def is_over(run: Answered) -> bool:
    """Returns whether a task came to its end with its latest run."""
    return run.state != "in_progress" and not is_waiting(run)


def context_of(call: Call, run: Answered) -> str:
    """Returns the id of a task's conversation, as its client calls it."""
    return name_of(resource_of(call), run.thread_id or run.task_id or run.id)


def request_of(call: Call, run: Answered) -> RunRequest:
    """Returns what the client asked of an A2A task's run, as an envelope of its stream takes it:
    its last message."""
    # What the client said in words may be an answer: then the words stand in `asked`.
    messages = (run.asked.messages if run.asked is not None else ()) or run.request.messages
    return _in_task(call, run, messages[-1:])


async def load_task(call: Call, run: Answered) -> Json:
    """Returns a task as it is now. `run`: its latest."""
    if run.task is None:
        task: Task = {}
        for earlier_run in await _load_runs(call, run):
            task = _add_run(call, task, earlier_run, await load_events(call, earlier_run))
    elif run.state == "in_progress":
        task = _add_run(call, run.task, run, await load_events(call, run))
    else:
        task = run.task
    return await _submit_queued(call, _end_cancelled(task, run), run)


async def _submit_queued(call: Call, task: Json, run: Answered) -> Json:
    """Returns a task that says it is submitted if its durable run waits to be driven."""
    if run.state != "in_progress" or not call.service.durable:
        return task
    status = (await call.service.log.status([run.id])).get(run.id)
    if status is None or status.state != "queued":
        return task
    return {**task, "status": {**if_object(task.get("status")), "state": "TASK_STATE_SUBMITTED"}}


def _end_cancelled(task: Task, run: Answered) -> Json:
    """Returns a task that says it was cancelled if it was: perhaps while it waited, which no event
    says."""
    if run.state != "cancelled" or run.pending:
        return dict(task)
    ended = a2a.cancel_task(task)
    if run.updated_at is not None:
        time = run.updated_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        ended["status"]["timestamp"] = time
    return ended


async def _load_runs(call: Call, run: Answered) -> Sequence[Answered]:
    if run.task_id in (None, run.id):
        return [run]
    return await call.service.answers.task(call.caller.id, run.task_id or run.id) or [run]


async def load_events(call: Call, run: Answered) -> list[Event]:
    """Returns what happened in an A2A task's run so far; where the log has forgotten it, what is
    kept of it."""
    log, events = call.service.log, list[Event]()
    if run.run_id is not None:
        # `read` returns one page, so it is called until it returns nothing.
        while page := await log.read(run.run_id, len(events)):
            events += page
    return events or [RunStarted(run.id), *unfold(run.output), *_closing_events(run)]


def _closing_events(run: Answered) -> list[Event]:
    """Returns the events that end a task's stored run whose log has no end: an error, or its
    outcome."""
    if run.state == "in_progress":
        return []
    if run.state == "failed":
        if run.refused:
            failure = ContentRefusedError("the agent refused")
        else:
            failure = None
        return [RunError(failure or ProviderError("the run failed"), run.id)]
    outcome = "pending" if run.pending else "success"
    if run.state == "cancelled":
        outcome = "cancelled"
    return [RunFinished(run.id, outcome, run.usage, run.pending)]


class TaskProgress:
    """What becomes of a task in a run that this process begins: what is kept with the run's record,
    and what its client is answered."""

    def __init__(self, call: Call, before: Task | None, *, goes_on: bool) -> None:
        """Creates the progress of a task. `before`: the task before the run. `goes_on`: True if
        there was one."""
        self._call, self._goes_on = call, goes_on
        self._before: Task = before or {}
        self._run: Answered | None = None
        self.events: list[Event] = []
        """What happened in the run, as far as it is stored; deltas are joined."""
        self.task: Json | None = None
        """The task after the run; None while that goes on."""

    def begin(self, run: Answered) -> Answered:
        """Returns the record of the run that begins, with the task before it."""
        self._run = msgspec.structs.replace(
            run, task=_if_small(self._before) if self._goes_on else None
        )
        return self._run

    def feed(self, events: Iterable[Event]) -> None:
        """Takes events of the run that were stored."""
        self.events += compact(events)

    def end(self, run: Answered) -> Answered:
        """Returns the record of the run that is over, with the task after it."""
        self.task = _end_cancelled(_add_run(self._call, self._before, run, self.events), run)
        return msgspec.structs.replace(run, task=_if_small(self.task))

    async def load(self) -> tuple[Json, list[Event]]:
        """Returns the task as it is now, and what happened in the run, which may go on or have been
        taken over by another process."""
        if self.task is not None:
            return self.task, self.events
        assert self._run is not None, "a run begins before it is asked for"
        events = await load_events(self._call, self._run)
        task = _add_run(self._call, self._before, self._run, events)
        return await _submit_queued(self._call, task, self._run), events


async def end_task(call: Call, run: Answered) -> Answered:
    """Returns the record of a durable run that is over, with the task after it."""
    task: Task = run.task or {}
    for earlier_run in await _load_runs(call, run) if run.task is None else ():
        if earlier_run.id != run.id:
            task = _add_run(call, task, earlier_run, await load_events(call, earlier_run))
    task = _end_cancelled(_add_run(call, task, run, await load_events(call, run)), run)
    return msgspec.structs.replace(run, task=_if_small(task))


def _if_small(task: Task) -> Task | None:
    if len(json_bytes.encode(task)) <= _MOST_TASK_BYTES:
        return task
    return None


def _add_run(call: Call, task: Task, run: Answered, events: Sequence[Event]) -> Json:
    """Returns a task after one more run."""
    messages = (run.asked.messages if run.asked is not None else ()) or run.request.messages
    envelope = a2a.envelope(
        _in_task(call, run, messages),
        id=run.task_id or run.id,
        now=run.updated_at or run.created_at,
    )
    # Joined deltas make the same task, in fewer steps.
    encoder = a2a.encoder(**envelope)
    seen = show_events(call, compact(events))
    after = a2a.aggregate_task([item for event in seen for item in encoder.objects(event)])
    if not task:
        return after
    question = if_object(task.get("status")).get("message")
    history = [
        *if_list(task.get("history")),
        *([question] if question else []),
        *if_list(after.get("history")),
    ]
    # An artifact that a later run sends again takes the place of the first, where that stands.
    artifacts = {
        artifact["artifactId"]: artifact
        for artifact in [*if_list(task.get("artifacts")), *if_list(after.get("artifacts"))]
    }
    whole = {**task, **after}
    if history:
        whole["history"] = history
    if artifacts:
        whole["artifacts"] = list(artifacts.values())
    return whole


def _in_task(call: Call, run: Answered, messages: Sequence[Message]) -> RunRequest:
    """Returns a request of these messages: of the task of a run, unless that is its first."""
    request = RunRequest(tuple(messages), thread_id=context_of(call, run))
    task_id = run.task_id or run.id
    if run.id == task_id:
        return request
    return a2a.assign_task(request, task_id)
