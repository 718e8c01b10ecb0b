"""What a client of a protocol that has tasks may ask for, by the method's name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import anyio
import msgspec

from dragoman.codec.json_values import if_object, if_text
from dragoman.errors import ModelNotFoundError
from dragoman.event import Event, RunError
from dragoman.interrupt import Interrupt
from dragoman.request import RunRequest
from dragoman.serve.agents.shown_events import shown
from dragoman.serve.calls.call import Call
from dragoman.serve.calls.waiting import look_seconds
from dragoman.serve.conversations.threads import resource_of, thread_id
from dragoman.serve.protocols.endpoints import logged
from dragoman.serve.protocols.runs import Served, begun, read_run, served_agent
from dragoman.serve.tasks.cards import extended
from dragoman.serve.tasks.frames import Frame, TaskError, respond, task_wire
from dragoman.serve.tasks.lists import bounded, listed_tasks
from dragoman.serve.tasks.tasks import (
    TaskRecord,
    client_messages,
    context_of,
    drained,
    events_of,
    task_record,
    unkept,
    whole_task,
)
from dragoman.serve.tasks.webhook_methods import (
    config_id,
    notify,
    notify_record,
    push_config,
    subscribed,
)

__all__ = [
    "METHODS",
    "cancel",
    "create_push",
    "delete_push",
    "get",
    "get_push",
    "list_push",
    "listed",
    "send",
    "stream",
    "subscribe",
]

_LOOKS = 4
"""How often a run is looked for that is kept, but has not begun."""


async def send(call: Call, params: dict[str, Any], frame: Frame) -> None:
    """A message → its task, once it is over or waits."""
    request, shown_request, task_id = await _requested(call, params)
    served = served_agent(call, call.parameters.get("model", ""))
    run_id = await _begun(call, params, request, shown_request, served, task_id)
    how = if_object(params.get("configuration"))
    if not (how.get("returnImmediately") is True or how.get("blocking") is False):
        await drained(call, run_id)
    record = await task_record(call, task_id) or unkept(call, shown_request, task_id, run_id)
    made = bounded(await whole_task(call, record), frame.history_length(how.get("historyLength")))
    wire = task_wire(call)
    reply = wire.reply_of(await events_of(call, record.last), context_of(call, record))
    await respond(
        call,
        frame.result(
            wire, frame.shape(wire, {"task": made} if reply is None else {"message": reply})
        ),
    )


async def stream(call: Call, params: dict[str, Any], frame: Frame) -> None:
    """A message → its task, streamed."""
    request, shown_request, task_id = await _requested(call, params)
    served = served_agent(call, call.parameters.get("model", ""))
    run_id = await _begun(call, params, request, shown_request, served, task_id)
    leaves = served.policy.on_disconnect == "cancel"
    await _streamed(call, run_id, shown_request, task_id, frame, cancel_on_leave=leaves)


async def _begun(
    call: Call,
    params: dict[str, Any],
    request: RunRequest,
    shown_request: RunRequest,
    served: Served,
    task_id: str,
) -> str:
    """Begins the run of a message, and sends what happens in it where its client wants → its id."""
    config = await subscribed(call, task_id, params)
    try:
        run_id = await begun(call, request, served, task_id=task_id, shown=shown_request.messages)
    except BaseException:
        if config is not None:
            with anyio.CancelScope(shield=True):
                await call.service.webhooks.remove(call.caller.id, task_id, config)
        raise
    await notify(call, run_id, task_id, shown_request)
    return run_id


async def _requested(call: Call, params: dict[str, Any]) -> tuple[RunRequest, RunRequest, str]:
    """What a message asks for; the same in the client's words, which may be an answer; and the id of its task.

    Raises:
        TaskError: its task is over, works, or is of another conversation.
    """
    wire = task_wire(call)
    request: RunRequest = wire.load_run(params, path=call.path, headers=call.headers)
    task_id = wire.task_of(request)
    if task_id:
        record = await _record(call, task_id)
        context = context_of(call, record)
        if request.thread_id not in (None, context):
            raise TaskError(
                "the task is of another conversation; leave contextId out", "INVALID_PARAMS"
            )
        if not record.waits:
            what = "is over" if record.is_over else "works"
            raise TaskError(f"the task {what}, and takes no message; send it without a taskId")
        request = request.replace(thread_id=context)
        return wire.answered(request, record.last.pending), request, task_id
    pending: Sequence[Interrupt] = ()
    if request.thread_id is None:
        request = request.replace(thread_id=call.id)
    else:  # it may wait for what was asked over another protocol, or in a task that the client does not name
        thread = thread_id(resource_of(call), request.thread_id)
        last = await call.service.answers.find(call.caller.id, [f"thread:{thread}"])
        pending = () if last is None else last.pending
        answer = wire.answered(request, pending)
        if last is not None and last.task_id and pending and answer.resume:
            return (
                wire.in_task(answer, last.task_id),
                wire.in_task(request, last.task_id),
                last.task_id,
            )
    return wire.in_task(wire.answered(request, pending), ""), wire.in_task(request, ""), call.id


async def _streamed(
    call: Call,
    run_id: str,
    request: RunRequest,
    task_id: str,
    frame: Frame,
    *,
    cancel_on_leave: bool = False,
) -> None:
    wire, connection = task_wire(call), call.connection
    envelope = wire.envelope(request, id=task_id, now=call.now)
    encoder = wire.encoder(**{**envelope, **frame.envelope, "now": call.service.clock})
    headers = {"content-type": wire.stream_type}

    def piece(event: Event) -> bytes:
        if not frame.old:
            return encoder.feed(event)
        return b"".join([frame.piece(wire, each) for each in encoder.objects(event)])

    def end() -> bytes:
        return (
            b"".join([frame.piece(wire, each) for each in encoder.closing()])
            if frame.old
            else encoder.close()
        )

    connection.stream(headers, wire.ping, lambda error: piece(RunError(error)) + end())
    async with read_run(call, run_id, cancel_on_leave=cancel_on_leave) as pages:
        async for page in pages:
            call.observed.add(page)
            if data := b"".join([piece(event) for event in shown(page, resource_of(call))]):
                await connection.write(data)
    await connection.end(end())


async def get(call: Call, params: dict[str, Any], frame: Frame) -> None:
    """A task."""
    record = await _record(call, if_text(params.get("id")))
    made = bounded(
        await whole_task(call, record), frame.history_length(params.get("historyLength"))
    )
    await respond(call, frame.result(task_wire(call), frame.task(task_wire(call), made)))


async def listed(call: Call, params: dict[str, Any], frame: Frame) -> None:
    """Tasks, a page at a time."""
    await respond(call, frame.result(task_wire(call), await listed_tasks(call, params)))


async def cancel(call: Call, params: dict[str, Any], frame: Frame) -> None:
    """Ends a task."""
    record = await _record(call, if_text(params.get("id")))
    if record.is_over:
        raise TaskError("the task is over, and cannot be cancelled", "TASK_NOT_CANCELABLE")
    last = record.last
    if record.waits:
        ended = msgspec.structs.replace(last, state="cancelled", pending=(), updated_at=call.now)
        newest = await call.service.answers.find(call.caller.id, [f"thread:{last.thread_id}"])
        await call.service.answers.save(ended, [f"task:{record.id}"])
        if newest is not None and newest.id != last.id:  # the conversation went on, and stays there
            await call.service.answers.save(newest)
        call.service.waiting.changed((call.caller.id, record.id))
    elif last.run_id is not None and await logged(call, last.run_id):
        await call.service.runs.cancel(last.run_id)
        await drained(call, last.run_id)
    made = await whole_task(call, await _record(call, record.id))
    await respond(call, frame.result(task_wire(call), frame.task(task_wire(call), made)))


async def subscribe(call: Call, params: dict[str, Any], frame: Frame) -> None:
    """A task that goes on or waits, streamed."""
    record = await _record(call, if_text(params.get("id")))
    if record.is_over:
        raise TaskError(
            "the task is over, so that there is nothing to subscribe to; get it instead"
        )
    if record.waits:
        record = await _next_run(call, record, frame)
    run_id = record.last.run_id
    if record.is_over or run_id is None or not await logged(call, run_id):
        await call.connection.end(
            frame.piece(task_wire(call), {"task": await whole_task(call, record)})
        )
        return
    wire = task_wire(call)
    request = RunRequest(client_messages(record.last)[-1:], thread_id=context_of(call, record))
    request = wire.in_task(request, record.id if len(record.runs) > 1 else "")
    await _streamed(call, run_id, request, record.id, frame)


async def _next_run(call: Call, record: TaskRecord, frame: Frame) -> TaskRecord:
    """Shows a task that waits, and stays until somebody goes on with it or ends it."""
    headers = {
        "content-type": call.wire.stream_type,
        "cache-control": "no-cache",
        "x-accel-buffering": "no",
    }
    call.connection.stream(headers, call.wire.ping, lambda error: b"")  # noqa: ARG005 the task is as it was
    await call.connection.write(
        frame.piece(task_wire(call), {"task": await whole_task(call, record)})
    )
    asked, beginning = record.last.id, 0
    for seconds in look_seconds():
        with call.service.waiting.change((call.caller.id, record.id)) as changed:
            record = await _record(call, record.id)
            if record.is_over or (
                record.waits and record.last.id != asked
            ):  # answered elsewhere, and perhaps it waits again
                break
            if not record.waits and await logged(call, record.last.run_id):
                break
            beginning += not record.waits  # another process keeps a run a moment before it begins
            if beginning > _LOOKS:
                break
            with anyio.move_on_after(seconds):
                await changed.wait()
    return record


async def _push_task(call: Call, params: dict[str, Any]) -> TaskRecord:
    if call.service.webhooks.policy is None:
        raise TaskError(
            "push notifications are not sent by this server", "PUSH_NOTIFICATION_NOT_SUPPORTED"
        )
    return await _record(call, if_text(params.get("taskId")) or if_text(params.get("id")))


async def create_push(call: Call, params: dict[str, Any], frame: Frame) -> None:
    """Takes an address for notifications."""
    record = await _push_task(call, params)
    hooks = call.service.webhooks
    config = {name: value for name, value in push_config(params).items() if name != "taskId"}
    kept = await hooks.add(call.caller.id, record.id, config, call.service.new_id())
    notify_record(call, record, kept["id"])
    await respond(call, frame.result(task_wire(call), frame.push(task_wire(call), kept)))


async def get_push(call: Call, params: dict[str, Any], frame: Frame) -> None:
    """Such an address."""
    record = await _push_task(call, params)
    configs = await call.service.webhooks.of(call.caller.id, record.id)
    found = configs.get(config_id(params))
    named = "pushNotificationConfigId" in params or not (frame.old and frame.rpc)
    if found is None and not named:  # as 0.3 may ask
        found = next(iter(configs.values()), None)
    if found is None:
        raise ModelNotFoundError("there is no such configuration of push notifications here")
    await respond(call, frame.result(task_wire(call), frame.push(task_wire(call), found)))


async def list_push(call: Call, params: dict[str, Any], frame: Frame) -> None:
    """All of a task."""
    record = await _push_task(call, params)
    configs = list((await call.service.webhooks.of(call.caller.id, record.id)).values())
    each = [frame.push(task_wire(call), config) for config in configs]
    shown: Any = each if frame.old and frame.rpc else {"configs": each, "nextPageToken": ""}
    await respond(call, frame.result(task_wire(call), shown))


async def delete_push(call: Call, params: dict[str, Any], frame: Frame) -> None:
    """Forgets one."""
    record = await _push_task(call, params)
    await call.service.webhooks.remove(call.caller.id, record.id, config_id(params))
    await respond(call, frame.result(task_wire(call), None if frame.old and frame.rpc else {}))


METHODS: Mapping[str, Callable[[Call, dict[str, Any], Frame], Awaitable[None]]] = {
    "SendMessage": send,
    "SendStreamingMessage": stream,
    "GetTask": get,
    "ListTasks": listed,
    "CancelTask": cancel,
    "SubscribeToTask": subscribe,
    "CreateTaskPushNotificationConfig": create_push,
    "GetTaskPushNotificationConfig": get_push,
    "ListTaskPushNotificationConfigs": list_push,
    "DeleteTaskPushNotificationConfig": delete_push,
    "GetExtendedAgentCard": extended,
}


async def _record(call: Call, task_id: str) -> TaskRecord:
    """The task of that id.

    Raises:
        ModelNotFoundError: the client has none.
    """
    record = await task_record(call, task_id) if task_id else None
    if record is None:
        raise ModelNotFoundError(f"there is no task {task_id!r:.200} here")
    return record
