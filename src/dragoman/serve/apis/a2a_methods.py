"""What a client of A2A may ask for, by the method's name.

A task is a chain of runs: the first message begins a run, and a message that answers what the
task waits for begins the next. `_read_message` decides which of the two it is, `_begin_message`
starts the run, and the run goes on even if its client leaves, unless the policy cancels it.

`send_message` waits for the run's end, `stream_message` reads its events from the log. The other
methods look up the latest run of a task and show, cancel or follow it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

import anyio
import msgspec

from dragoman.codec.json_values import if_object, if_text
from dragoman.event import Event, RunError
from dragoman.interrupt import Interrupt
from dragoman.json_bytes import Json
from dragoman.request import RunRequest
from dragoman.serve.apis import a2a_push
from dragoman.serve.apis.a2a_frames import Frame, TaskError
from dragoman.serve.apis.a2a_lists import list_tasks, trim_history
from dragoman.serve.apis.a2a_tasks import (
    TaskProgress,
    context_of,
    find_run,
    is_over,
    is_waiting,
    load_task,
    request_of,
)
from dragoman.serve.apis.cards import show_extended_card
from dragoman.serve.apis.runs import begin_run, is_logged, settle_thread
from dragoman.serve.core.agents import ServedAgent, find_agent
from dragoman.serve.core.background import read_run
from dragoman.serve.core.call import Call
from dragoman.serve.core.client_events import ClientEvents
from dragoman.serve.core.service import poll_intervals
from dragoman.serve.core.threads import resource_of, thread_id
from dragoman.serve.store.stored_answer import Answered
from dragoman.wires import a2a

__all__ = [
    "METHODS",
    "Method",
    "cancel_task",
    "get_task",
    "send_message",
    "show_tasks",
    "stream_message",
    "subscribe_to_task",
]

Method = Callable[[Call, Json, Frame], Awaitable[None]]
"""Answers a call with these parameters."""
_MOST_LOOKS = 4
"""How often a run is looked for that is kept, but has not begun."""


class _MessageRequest(NamedTuple):
    """What a message asks for."""

    request: RunRequest
    """Of the run, with the answers that the message is."""
    shown: RunRequest
    """In the client's words."""
    task_id: str
    """The task that it begins or goes on with."""
    before: Answered | None
    """The latest run of the task that it goes on with; None: it begins one."""


async def send_message(call: Call, params: Json, frame: Frame) -> None:
    """Answers an A2A client's message with its task, once that is over or waits."""
    message = await _read_message(call, params)
    served = find_agent(call, call.parameters.get("model", ""))
    run_id, progress = await _begin_message(call, params, message, served)
    options = if_object(params.get("configuration"))
    if options.get("returnImmediately") is not True and options.get("blocking") is not False:
        await _wait_for_run(call, run_id)
    task, events = await progress.load()
    task = trim_history(task, frame.history_length(options.get("historyLength")))
    reply = a2a.find_reply(events, task["contextId"])
    await frame.respond(call, frame.shape({"task": task} if reply is None else {"message": reply}))


async def stream_message(call: Call, params: Json, frame: Frame) -> None:
    """Answers an A2A client's message with its task, streamed."""
    message = await _read_message(call, params)
    served = find_agent(call, call.parameters.get("model", ""))
    run_id, _ = await _begin_message(call, params, message, served)
    leaves = served.policy.on_disconnect == "cancel"
    await _stream_task(call, run_id, message.shown, message.task_id, frame, cancel_on_leave=leaves)


async def _begin_message(
    call: Call, params: Json, message: _MessageRequest, served: ServedAgent
) -> tuple[str, TaskProgress]:
    """Begins the run of an A2A message, and sends what happens in it where its client wants.
    Returns the run's id, and what becomes of the task."""
    task_id, before = message.task_id, message.before
    if before is None:
        task = None
    else:
        task = await load_task(call, before)
    progress = TaskProgress(call, task, goes_on=before is not None)
    config = await a2a_push.subscribe_address(call, task_id, params)
    try:
        run_id = await begin_run(
            call,
            message.request,
            served,
            task_id=task_id,
            shown=message.shown.messages,
            progress=progress,
        )
    except BaseException:
        if config is not None:
            with anyio.CancelScope(shield=True):
                await call.service.webhooks.remove(call.caller.id, task_id, config)
        raise
    await a2a_push.notify(call, run_id, task_id, message.shown)
    return run_id, progress


async def _read_message(call: Call, params: Json) -> _MessageRequest:
    """Reads the message in the parameters of `SendMessage`, and finds or makes its task.

    Raises:
        TaskError: its task is over, works, or is of another conversation.
    """
    request = a2a.load_run(params, path=call.path, headers=call.headers)
    task_id = a2a.task_id_of(request)
    if task_id:
        return await _continue_task(call, request, task_id)
    pending: Sequence[Interrupt] = ()
    if request.thread_id is None:
        request = request.replace(thread_id=call.id)
    else:
        # The conversation may wait for an answer to another protocol, or to a task that the client
        # does not name.
        await settle_thread(call, request.thread_id)
        thread = thread_id(resource_of(call), request.thread_id)
        last = await call.service.answers.find(call.caller.id, [f"thread:{thread}"])
        pending = () if last is None else last.pending
        answer = a2a.answer_from_words(request, pending)
        if last is not None and last.task_id and pending and answer.resume:
            known_task = last.task_id
            return _MessageRequest(
                a2a.assign_task(answer, known_task),
                a2a.assign_task(request, known_task),
                known_task,
                last,
            )
    answer = a2a.answer_from_words(request, pending)
    return _MessageRequest(a2a.assign_task(answer, ""), a2a.assign_task(request, ""), call.id, None)


async def _continue_task(call: Call, request: RunRequest, task_id: str) -> _MessageRequest:
    """Returns the request that continues a waiting A2A task. Raises `TaskError` if the task takes
    no message."""
    run = await find_run(call, task_id)
    context = context_of(call, run)
    if request.thread_id not in (None, context):
        raise TaskError(
            "the task is of another conversation; leave contextId out", "INVALID_PARAMS"
        )
    if not is_waiting(run):
        state = "is over" if is_over(run) else "works"
        raise TaskError(f"the task {state}, and takes no message; send it without a taskId")
    request = request.replace(thread_id=context)
    return _MessageRequest(a2a.answer_from_words(request, run.pending), request, task_id, run)


async def _wait_for_run(call: Call, run_id: str) -> None:
    """Waits until the run of an A2A task is over or waits for the client."""
    async with read_run(call, run_id, cancel_on_leave=False) as pages:
        async for page in pages:
            call.observed.add(page)


async def _stream_task(
    call: Call,
    run_id: str,
    request: RunRequest,
    task_id: str,
    frame: Frame,
    *,
    cancel_on_leave: bool = False,
) -> None:
    """Streams the objects of an A2A task to the client while its run goes on."""
    connection = call.connection
    envelope = a2a.envelope(request, id=task_id, now=call.now)
    encoder = a2a.encoder(**{**envelope, **frame.envelope, "now": call.service.clock})

    def piece(event: Event) -> bytes:
        if not frame.old:
            return encoder.feed(event)
        return b"".join([frame.piece(item) for item in encoder.objects(event)])

    def end() -> bytes:
        if not frame.old:
            return encoder.close()
        return b"".join([frame.piece(item) for item in encoder.close_objects()])

    headers = {"content-type": a2a.stream_type}
    connection.stream(headers, a2a.ping, lambda error: piece(RunError(error)) + end())
    client_events = ClientEvents(call)
    async with read_run(call, run_id, cancel_on_leave=cancel_on_leave) as pages:
        async for page in pages:
            call.observed.add(page)
            if data := b"".join([piece(event) for event in client_events.feed(page)]):
                await connection.write(data)
    await connection.end(end())


async def get_task(call: Call, params: Json, frame: Frame) -> None:
    """Answers the A2A method `GetTask` with a task of the client."""
    run = await find_run(call, if_text(params.get("id")))
    length = frame.history_length(params.get("historyLength"))
    task = trim_history(await load_task(call, run), length)
    await frame.respond(call, frame.task(task))


async def show_tasks(call: Call, params: Json, frame: Frame) -> None:
    """Shows tasks, a page at a time."""
    await frame.respond(call, await list_tasks(call, params))


async def cancel_task(call: Call, params: Json, frame: Frame) -> None:
    """Answers the A2A method `CancelTask`: cancels the run of a task."""
    task_id = if_text(params.get("id"))
    run = await find_run(call, task_id)
    if is_over(run):
        raise TaskError("the task is over, and cannot be cancelled", "TASK_NOT_CANCELABLE")
    if is_waiting(run):
        answers = call.service.answers
        ended = msgspec.structs.replace(run, state="cancelled", pending=(), updated_at=call.now)
        newest = await answers.find(call.caller.id, [f"thread:{run.thread_id}"])
        await answers.save(ended, [f"task:{task_id}"])
        # The conversation has gone on elsewhere; saving it again keeps it the latest.
        if newest is not None and newest.id != run.id:
            await answers.save(newest)
        call.service.waiting.notify((call.caller.id, task_id))
    elif run.run_id is not None and await is_logged(call, run.run_id):
        await call.service.runs.cancel(run.run_id)
        await _wait_for_run(call, run.run_id)
    task = await load_task(call, await find_run(call, task_id))
    await frame.respond(call, frame.task(task))


async def subscribe_to_task(call: Call, params: Json, frame: Frame) -> None:
    """Streams an A2A task that goes on or waits."""
    task_id = if_text(params.get("id"))
    run = await find_run(call, task_id)
    if is_over(run):
        raise TaskError(
            "the task is over, so that there is nothing to subscribe to; get it instead"
        )
    if is_waiting(run):
        run = await _wait_for_change(call, run, task_id, frame)
    run_id = run.run_id
    if is_over(run) or run_id is None or not await is_logged(call, run_id):
        await call.connection.end(frame.piece({"task": await load_task(call, run)}))
        return
    await _stream_task(call, run_id, request_of(call, run), task_id, frame)


async def _wait_for_change(call: Call, run: Answered, task_id: str, frame: Frame) -> Answered:
    """Shows an A2A task that waits, and stays until somebody goes on with it or ends it. Returns
    its latest run then."""
    headers = {
        "content-type": a2a.stream_type,
        "cache-control": "no-cache",
        "x-accel-buffering": "no",
    }
    call.connection.stream(headers, a2a.ping, lambda error: b"")  # noqa: ARG005 the task is as it was
    await call.connection.write(frame.piece({"task": await load_task(call, run)}))
    shown_id, looks = run.id, 0
    for seconds in poll_intervals():
        with call.service.waiting.subscribe((call.caller.id, task_id)) as changed:
            run = await find_run(call, task_id)
            # answered elsewhere, and perhaps it waits again
            if is_over(run) or (is_waiting(run) and run.id != shown_id):
                break
            if not is_waiting(run):
                # another process keeps a run a moment before it begins
                looks += 1
                if looks > _MOST_LOOKS or await is_logged(call, run.run_id):
                    break
            with anyio.move_on_after(seconds):
                await changed.wait()
    return run


METHODS: Mapping[str, Method] = {
    "SendMessage": send_message,
    "SendStreamingMessage": stream_message,
    "GetTask": get_task,
    "ListTasks": show_tasks,
    "CancelTask": cancel_task,
    "SubscribeToTask": subscribe_to_task,
    "CreateTaskPushNotificationConfig": a2a_push.create_push,
    "GetTaskPushNotificationConfig": a2a_push.get_push,
    "ListTaskPushNotificationConfigs": a2a_push.list_push,
    "DeleteTaskPushNotificationConfig": a2a_push.delete_push,
    "GetExtendedAgentCard": show_extended_card,
}
"""Name of a method in 1.0 → what answers it."""
