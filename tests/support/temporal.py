"""A small server that speaks Temporal's protocol over gRPC, for what the engine on Temporal needs: its
own server is in no package registry. The SDK's client, worker and core are the real ones."""

from __future__ import annotations

import asyncio
import json
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

import grpc
from anyio.from_thread import start_blocking_portal
from temporalio.api.common.v1 import Payloads, WorkflowExecution, WorkflowType
from temporalio.api.enums.v1 import CommandType, EventType, WorkflowIdConflictPolicy
from temporalio.api.history.v1 import History, HistoryEvent
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice import v1 as api
from temporalio.api.workflowservice.v1.service_pb2_grpc import (
    WorkflowServiceServicer,
    add_WorkflowServiceServicer_to_server,
)

from dragoman import Agent
from dragoman.runs import Runs, open_log
from support.durable import Acts, durable_agent
from support.ports import free_port


class Execution:
    """A workflow, with its history."""

    def __init__(self, request: Any) -> None:
        self.request, self.run_id = request, uuid4().hex
        self.events: list[Any] = []
        self.is_over, self.task_waits = False, False
        self.previous_started = 0
        self.executions = 1

    def add(self, kind: str, **attributes: Any) -> int:
        """Appends an event. Returns its number."""
        event = HistoryEvent(
            event_id=len(self.events) + 1, event_type=getattr(EventType, f"EVENT_TYPE_{kind}")
        )
        event.event_time.GetCurrentTime()
        target = getattr(event, f"{kind.lower()}_event_attributes")
        target.SetInParent()
        for name, value in attributes.items():
            if hasattr(value, "CopyFrom"):
                getattr(target, name).CopyFrom(value)
            else:
                setattr(target, name, value)
        self.events.append(event)
        return len(self.events)


class Activity:
    """A call of an activity: what asked for it, and how often it was begun."""

    def __init__(self, execution: Execution, command: Any, scheduled: int) -> None:
        self.execution, self.command, self.scheduled = execution, command, scheduled
        self.attempt, self.seen_at, self.is_over = 0, 0.0, False


class FakeTemporal(WorkflowServiceServicer):
    """Temporal's server, as far as the engine uses it."""

    def __init__(self, beat_seconds: float | None = None) -> None:
        """`beat_seconds`: time without a heartbeat after which a worker counts as dead; `None`: what
        the workflow says."""
        self.executions: dict[str, Execution] = {}
        self.started: list[Any] = []
        self.polls: list[Any] = []
        self.results: list[Any] = []
        self.refusal: str | None = None
        self.cancels = False
        """Somebody has cancelled the workflows."""
        self._beat_seconds = beat_seconds
        self._workflows: dict[str, asyncio.Queue[Execution]] = defaultdict(asyncio.Queue)
        self._activities: dict[str, asyncio.Queue[Activity]] = defaultdict(asyncio.Queue)
        self._next_at: dict[str, float] = defaultdict(float)
        self._tokens: dict[bytes, Any] = {}
        self._numbers = count(1)
        self._tasks: set[asyncio.Task[None]] = set()

    def later(self, seconds: float, action: Any) -> None:
        async def wait() -> None:
            await asyncio.sleep(seconds)
            action()

        task = asyncio.create_task(wait())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def GetSystemInfo(self, request: Any, context: Any) -> Any:
        return api.GetSystemInfoResponse(server_version="1.29.0")

    async def DescribeNamespace(self, request: Any, context: Any) -> Any:
        await self._refuse(context)
        answer = api.DescribeNamespaceResponse()
        answer.namespace_info.name = request.namespace
        return answer

    async def _refuse(self, context: Any) -> None:
        if self.refusal is not None:
            await context.abort(grpc.StatusCode.NOT_FOUND, self.refusal)

    async def ShutdownWorker(self, request: Any, context: Any) -> Any:
        return api.ShutdownWorkerResponse()

    async def StartWorkflowExecution(self, request: Any, context: Any) -> Any:
        await self._refuse(context)
        self.started.append(request)
        known = self.executions.get(request.workflow_id)
        if known is not None and not known.is_over:
            existing = WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
            assert request.workflow_id_conflict_policy == existing
            return api.StartWorkflowExecutionResponse(run_id=known.run_id, started=False)
        execution = Execution(request)
        self.begin(execution)
        return api.StartWorkflowExecutionResponse(run_id=execution.run_id, started=True)

    def begin(self, execution: Execution) -> None:
        request = execution.request
        self.executions[request.workflow_id] = execution
        execution.add(
            "WORKFLOW_EXECUTION_STARTED",
            workflow_type=request.workflow_type,
            task_queue=request.task_queue,
            input=request.input,
            original_execution_run_id=execution.run_id,
            first_execution_run_id=execution.run_id,
            workflow_id=request.workflow_id,
            attempt=1,
            priority=request.priority,
        )
        self.wake(execution)

    def wake(self, execution: Execution) -> None:
        """Gives a workflow to a worker, unless it waits for one."""
        if not execution.task_waits and not execution.is_over:
            execution.task_waits = True
            execution.add("WORKFLOW_TASK_SCHEDULED", task_queue=execution.request.task_queue)
            self._workflows[execution.request.task_queue.name].put_nowait(execution)

    async def PollWorkflowTaskQueue(self, request: Any, context: Any) -> Any:
        queue = self._workflows[request.task_queue.normal_name or request.task_queue.name]
        execution = await queue.get()
        execution.task_waits = False
        started = execution.add("WORKFLOW_TASK_STARTED", scheduled_event_id=len(execution.events))
        answer = api.PollWorkflowTaskQueueResponse(
            task_token=f"w{next(self._numbers)}".encode(),
            workflow_execution=WorkflowExecution(
                workflow_id=execution.request.workflow_id, run_id=execution.run_id
            ),
            workflow_type=WorkflowType(name=execution.request.workflow_type.name),
            previous_started_event_id=execution.previous_started,
            started_event_id=started,
            attempt=1,
            history=History(events=execution.events),
            workflow_execution_task_queue=TaskQueue(name=execution.request.task_queue.name),
        )
        for name in ("scheduled_time", "started_time"):
            getattr(answer, name).GetCurrentTime()
        execution.previous_started = started
        self._tokens[answer.task_token] = execution
        return answer

    async def RespondWorkflowTaskCompleted(self, request: Any, context: Any) -> Any:
        execution = self._tokens.pop(request.task_token)
        completed = execution.add(
            "WORKFLOW_TASK_COMPLETED",
            scheduled_event_id=execution.previous_started - 1,
            started_event_id=execution.previous_started,
        )
        for command in request.commands:
            name = CommandType.Name(command.command_type).removeprefix("COMMAND_TYPE_").lower()
            getattr(self, f"_{name}")(execution, completed, command)
        return api.RespondWorkflowTaskCompletedResponse()

    async def RespondWorkflowTaskFailed(self, request: Any, context: Any) -> Any:
        raise AssertionError(request.failure)

    def _schedule_activity_task(self, execution: Execution, completed: int, command: Any) -> None:
        asked = command.schedule_activity_task_command_attributes
        scheduled = execution.add(
            "ACTIVITY_TASK_SCHEDULED",
            activity_id=asked.activity_id,
            activity_type=asked.activity_type,
            task_queue=asked.task_queue,
            input=asked.input,
            workflow_task_completed_event_id=completed,
        )
        activity = Activity(execution, asked, scheduled)
        self._activities[asked.task_queue.name].put_nowait(activity)

    def _start_timer(self, execution: Execution, completed: int, command: Any) -> None:
        asked = command.start_timer_command_attributes
        started = execution.add(
            "TIMER_STARTED",
            timer_id=asked.timer_id,
            start_to_fire_timeout=asked.start_to_fire_timeout,
            workflow_task_completed_event_id=completed,
        )

        def fire() -> None:
            execution.add("TIMER_FIRED", timer_id=asked.timer_id, started_event_id=started)
            self.wake(execution)

        self.later(asked.start_to_fire_timeout.ToTimedelta().total_seconds(), fire)

    def _complete_workflow_execution(
        self, execution: Execution, completed: int, command: Any
    ) -> None:
        execution.is_over = True

    def _continue_as_new_workflow_execution(
        self, execution: Execution, completed: int, command: Any
    ) -> None:
        asked = command.continue_as_new_workflow_execution_command_attributes
        execution.is_over = True
        request = api.StartWorkflowExecutionRequest()
        request.CopyFrom(execution.request)
        request.input.CopyFrom(asked.input)
        successor = Execution(request)
        successor.executions = execution.executions + 1
        self.begin(successor)

    async def PollActivityTaskQueue(self, request: Any, context: Any) -> Any:
        self.polls.append(request)
        queue = self._activities[request.task_queue.name]
        activity = await queue.get()
        await self._wait_for_turn(request)
        activity.attempt += 1
        activity.seen_at = monotonic()
        token = f"a{next(self._numbers)}".encode()
        self._tokens[token] = activity
        self._watch(activity, activity.attempt)
        asked = activity.command
        answer = api.PollActivityTaskQueueResponse(
            task_token=token,
            workflow_execution=WorkflowExecution(
                workflow_id=activity.execution.request.workflow_id,
                run_id=activity.execution.run_id,
            ),
            workflow_type=activity.execution.request.workflow_type,
            activity_type=asked.activity_type,
            activity_id=asked.activity_id,
            input=asked.input,
            attempt=activity.attempt,
            start_to_close_timeout=asked.start_to_close_timeout,
            heartbeat_timeout=asked.heartbeat_timeout,
        )
        for name in ("scheduled_time", "current_attempt_scheduled_time", "started_time"):
            getattr(answer, name).GetCurrentTime()
        return answer

    async def _wait_for_turn(self, request: Any) -> None:
        """Holds the rate that the worker gives for a task queue."""
        rate = request.task_queue_metadata.max_tasks_per_second.value
        if rate:
            queue = request.task_queue.name
            begins_at = max(self._next_at[queue], monotonic())
            self._next_at[queue] = begins_at + 1 / rate
            await asyncio.sleep(begins_at - monotonic())

    def _watch(self, activity: Activity, attempt: int) -> None:
        """Gives an activity to another worker if its worker is silent."""
        seconds = self._beat_seconds or activity.command.heartbeat_timeout.ToTimedelta().seconds

        def look() -> None:
            if activity.is_over or activity.attempt != attempt:
                return
            if monotonic() - activity.seen_at > seconds:
                self._activities[activity.command.task_queue.name].put_nowait(activity)
            else:
                self.later(seconds / 4, look)

        self.later(seconds / 4, look)

    async def RecordActivityTaskHeartbeat(self, request: Any, context: Any) -> Any:
        self._tokens[request.task_token].seen_at = monotonic()
        return api.RecordActivityTaskHeartbeatResponse(cancel_requested=self.cancels)

    async def RespondActivityTaskCanceled(self, request: Any, context: Any) -> Any:
        self._tokens.pop(request.task_token).is_over = True
        self.results.append("cancelled")
        return api.RespondActivityTaskCanceledResponse()

    async def RespondActivityTaskCompleted(self, request: Any, context: Any) -> Any:
        activity = self._tokens.pop(request.task_token)
        self.results.append(json.loads(request.result.payloads[0].data))
        self._end(activity, request.result)
        return api.RespondActivityTaskCompletedResponse()

    async def RespondActivityTaskFailed(self, request: Any, context: Any) -> Any:
        activity = self._tokens.pop(request.task_token)
        self.results.append(request.failure.message)
        self.later(
            0.1, lambda: self._activities[activity.command.task_queue.name].put_nowait(activity)
        )
        return api.RespondActivityTaskFailedResponse()

    def _end(self, activity: Activity, result: Payloads) -> None:
        activity.is_over = True
        execution = activity.execution
        started = execution.add(
            "ACTIVITY_TASK_STARTED",
            scheduled_event_id=activity.scheduled,
            attempt=activity.attempt,
        )
        execution.add(
            "ACTIVITY_TASK_COMPLETED",
            scheduled_event_id=activity.scheduled,
            started_event_id=started,
            result=result,
        )
        self.wake(execution)

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()


@asynccontextmanager
async def fake_temporal(
    beat_seconds: float | None = None,
) -> AsyncIterator[tuple[FakeTemporal, str]]:
    """Starts the server. Yields it with its address."""
    fake, port = FakeTemporal(beat_seconds), free_port()
    server = grpc.aio.server()
    add_WorkflowServiceServicer_to_server(fake, server)
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    try:
        yield fake, f"127.0.0.1:{port}"
    finally:
        await fake.stop()
        await server.stop(None)


def work(address: str, url: str, acts: str, lease_seconds: float, seconds: float) -> None:
    """A process that drives durable runs for Temporal until it is killed. `seconds`: for each piece of a
    word of its model, and for each tool."""
    os.environ["TEMPORAL_ADDRESS"] = address
    a, _ = durable_agent(Acts(Path(acts), seconds), seconds=seconds)
    asyncio.run(_work(a, url, lease_seconds))


async def _work(a: Agent[Any], url: str, lease_seconds: float) -> None:
    how: Any = {"lease_seconds": lease_seconds, "poll_seconds": 0.02}
    async with open_log(url) as log, Runs(log, engine="temporal", agents={"a": a}, **how) as runs:
        await runs.work()


@contextmanager
def temporal_in_thread(beat_seconds: float) -> Iterator[str]:
    """Starts the server in a thread of its own. Yields its address."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(fake_temporal(beat_seconds)) as (_, address),
    ):
        yield address
