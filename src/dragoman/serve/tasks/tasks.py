"""Tasks: what a client of a protocol that has them sees of runs. A task is the runs of one conversation until it waits for nobody any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from dragoman.codec.json_values import if_list, if_object
from dragoman.errors import ContentRefusedError, ProviderError
from dragoman.event import Event, RunError, RunFinished, RunStarted
from dragoman.fold import unfold
from dragoman.message import Message
from dragoman.request import ModelRequest, RunRequest
from dragoman.serve.agents.shown_events import shown
from dragoman.serve.calls.call import Call
from dragoman.serve.conversations.threads import name_of, resource_of, thread_id
from dragoman.serve.store.records import Answered
from dragoman.serve.tasks.frames import task_wire

__all__ = [
    "TaskRecord",
    "context_of",
    "drained",
    "events_of",
    "client_messages",
    "task_record",
    "unkept",
    "whole_task",
]


class TaskRecord(msgspec.Struct, frozen=True):
    """What is kept of a task."""

    id: str
    """Of the task."""
    runs: Sequence[Answered]
    """Its runs, in order; one at least."""

    @property
    def last(self) -> Answered:
        """Its latest run."""
        return self.runs[-1]

    @property
    def waits(self) -> bool:
        """Whether it waits for its client."""
        return self.last.state == "completed" and bool(self.last.pending)

    @property
    def is_over(self) -> bool:
        """Whether it came to its end."""
        return self.last.state != "in_progress" and not self.waits


async def task_record(call: Call, task_id: str) -> TaskRecord | None:
    """The task of an id that a client gives; `None`: it has none of that id."""
    runs = await call.service.answers.task(call.caller.id, task_id)
    return TaskRecord(task_id, runs) if runs else None


def unkept(call: Call, request: RunRequest, task_id: str, run_id: str) -> TaskRecord:
    """A task of which nothing is kept, since the server keeps nothing, or could not: what its log has of it."""
    run = Answered(
        id=run_id,
        owner=call.caller.id,
        wire=call.wire.name,
        created_at=call.now,
        request=ModelRequest("", request.messages),
        thread_id=thread_id(resource_of(call), request.thread_id or call.id),
        task_id=task_id,
        run_id=run_id,
    )
    return TaskRecord(task_id, [run])


def context_of(call: Call, record: TaskRecord) -> str:
    """The id of a task's conversation, as its client calls it."""
    return name_of(resource_of(call), record.last.thread_id or record.id)


def client_messages(run: Answered) -> tuple[Message, ...]:
    """What its client said to a run, also where that was an answer to what waited."""
    return (run.asked.messages if run.asked is not None else ()) or run.request.messages


async def whole_task(call: Call, record: TaskRecord) -> dict[str, Any]:
    """A task as it is now, as its wire has it."""
    wire = task_wire(call)
    task: dict[str, Any] = {}
    for number, run in enumerate(record.runs):
        events = await events_of(call, run)
        envelope = wire.envelope(
            _request(call, record, run, number), id=record.id, now=run.updated_at or run.created_at
        )
        encoder = wire.encoder(**envelope)
        objects = [
            each for event in shown(events, resource_of(call)) for each in encoder.objects(event)
        ]
        task = _joined(task, wire.aggregated(objects))
    if (
        record.last.state == "cancelled" and record.last.pending == ()
    ):  # perhaps while it waited, which no event says
        return wire.cancelled(task)
    return task


def _request(call: Call, record: TaskRecord, run: Answered, number: int) -> RunRequest:
    wire = task_wire(call)
    outer = RunRequest(client_messages(run), thread_id=context_of(call, record))
    return wire.in_task(outer, record.id) if number else outer


async def events_of(call: Call, run: Answered) -> list[Event]:
    """What happened in a run so far; where the log has forgotten it, what is kept of it."""
    log, found = call.service.log, list[Event]()
    if run.run_id is not None:
        while page := await log.read(run.run_id, len(found)):
            found += page
    if found:
        return found
    ended: list[Event] = []
    if run.state == "failed":
        error = (
            ContentRefusedError("the agent refused")
            if run.refused
            else ProviderError("the run failed")
        )
        ended = [RunError(error, run.id)]
    elif run.state != "in_progress":
        outcome = (
            "cancelled" if run.state == "cancelled" else "pending" if run.pending else "success"
        )
        ended = [RunFinished(run.id, outcome, run.usage, run.pending)]
    return [RunStarted(run.id), *unfold(run.output), *ended]


def _joined(before: Mapping[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """A task after one more run."""
    if not before:
        return after
    question = if_object(before.get("status")).get("message")
    history = [
        *if_list(before.get("history")),
        *([question] if question else []),
        *if_list(after.get("history")),
    ]
    artifacts = {
        one["artifactId"]: one
        for one in [*if_list(before.get("artifacts")), *if_list(after.get("artifacts"))]
    }
    joined = {**before, **after}
    if history:
        joined["history"] = history
    if artifacts:
        joined["artifacts"] = list(artifacts.values())
    return joined


async def drained(call: Call, run_id: str) -> None:
    """Waits until a run is over."""
    async with aclosing(call.service.runs.pages(run_id)) as pages:
        async for page in pages:
            call.observed.add(page)
