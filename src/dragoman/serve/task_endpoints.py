"""What a server does at the places of a protocol that has tasks, by a method's name or a path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from email.utils import format_datetime
from hashlib import blake2b
from typing import Any

import anyio
import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import if_object, if_text
from dragoman.errors import DragomanError, ModelNotFoundError, public
from dragoman.event import RunError
from dragoman.logs import logger
from dragoman.run_request import RunRequest
from dragoman.serve.call import Call
from dragoman.serve.protocol_endpoints import logged
from dragoman.serve.protocol_runs import begun, served_agent
from dragoman.serve.shown_events import shown
from dragoman.serve.task_lists import bounded, listed_tasks
from dragoman.serve.tasks import TaskError, TaskRecord, context_of, drained, events_of, task_record, unkept, whole_task
from dragoman.tools import Tool

__all__ = ["cancel_task", "card", "rpc", "send_message", "stream_message", "subscribe_task", "task", "tasks"]

_LOG = logger("serve")


class Frame(msgspec.Struct, frozen=True):
    """How the answers to one request are framed."""

    old: bool = False
    """Whether the client is one of 0.3."""
    rpc: bool = False
    """Whether it asks by JSON-RPC."""
    id: Any = None
    """Of its request."""

    def result(self, wire: Any, value: Any) -> Any:
        """A whole answer."""
        return wire.rpc_result(value, self.id) if self.rpc else value

    def piece(self, wire: Any, each: Mapping[str, Any]) -> bytes:
        """An object of a stream."""
        return wire.framed(self.result(wire, self.shape(wire, each)))

    def shape(self, wire: Any, each: Mapping[str, Any]) -> Mapping[str, Any]:
        """An object of a stream, as the client's version has it."""
        if not self.old:
            return each
        return wire.old_object(each) if self.rpc else wire.old_rest(each)

    def task(self, wire: Any, value: Mapping[str, Any]) -> Any:
        """A task."""
        if not self.old:
            return value
        return wire.old_task(value) if self.rpc else wire.old_rest({"task": value})["task"]


# by JSON-RPC


async def rpc(call: Call) -> None:
    """Does what a method asks for; whatever is wrong is an answer of JSON-RPC."""
    wire: Any = call.wire
    body, id_ = call.body, call.body.get("id")
    frame = Frame(rpc=True, id=id_ if isinstance(id_, str | int | float) or id_ is None else None)
    try:
        _check_rpc(call, id_)
        method = wire.OLD_METHODS.get(body["method"], body["method"])
        frame = msgspec.structs.replace(frame, old=method != body["method"])
        await _method(method)(_of_key(call), _params(call), frame)
    except Exception as error:
        if call.connection.started:
            raise
        if not isinstance(error, DragomanError):
            _LOG.error("a request failed", exc_info=error)
        shown_error = error if isinstance(error, TaskError) else public(error)
        call.observed.error = shown_error
        failure = wire.rpc_error(shown_error, getattr(error, "reason", ""))
        await _respond(call, wire.rpc_failure(failure, frame.id))


def _method(name: str) -> Callable[[Call, dict[str, Any], Frame], Awaitable[None]]:
    if name not in _METHODS:
        raise TaskError(f"there is no method {name!r:.100} here", "METHOD_NOT_FOUND")
    return _METHODS[name]


def _params(call: Call) -> dict[str, Any]:
    _check_version(call)
    params: Any = call.body.get("params")
    if params is not None and not isinstance(params, dict):
        raise TaskError("params must be an object", "INVALID_PARAMS")
    return if_object(params)


def _check_rpc(call: Call, id_: Any) -> None:
    body = call.body
    wrong = body.get("jsonrpc") != "2.0" or not isinstance(body.get("method"), str)
    if wrong or isinstance(id_, bool) or not isinstance(id_, str | int | float | None):
        raise TaskError('a request of JSON-RPC has "jsonrpc": "2.0", a method and an id', "INVALID_REQUEST")


def _of_key(call: Call) -> Call:
    """A call without what its body says of a user: a task is its key's, since other methods name no user."""
    return msgspec.structs.replace(call, body={})


def _check_version(call: Call) -> None:
    version = call.headers.get("a2a-version") or call.query.get("A2A-Version", "")
    if version not in ("", "1.0", "0.3"):
        raise TaskError(f"the version {version!r:.20} is not spoken here; 1.0 and 0.3 are", "VERSION_NOT_SUPPORTED")


# by paths


async def _by_path(call: Call, work: Callable[[Call, dict[str, Any], Frame], Awaitable[None]]) -> None:
    wire: Any = call.wire
    params = {**call.query, **call.body, **({"id": call.parameters["id"]} if "id" in call.parameters else {})}
    try:
        _check_version(call)
        old = "/v1/" in call.route.path
        given = wire.new_params(params) if old and call.body else params
        await work(_of_key(call), given, Frame(old=old))
    except TaskError as error:
        refused = wire.rest_error(error, error.reason)
        await call.connection.respond(refused.status, refused.headers, json_bytes.encode(refused.body))


async def send_message(call: Call) -> None:
    """A message to an agent → its task, once it is over or waits."""
    await _by_path(call, _send)


async def stream_message(call: Call) -> None:
    """A message to an agent → its task, streamed."""
    await _by_path(call, _stream)


async def task(call: Call) -> None:
    """A task."""
    await _by_path(call, _get)


async def tasks(call: Call) -> None:
    """All tasks of the client."""
    await _by_path(call, _list)


async def cancel_task(call: Call) -> None:
    """Ends a task."""
    await _by_path(call, _cancel)


async def subscribe_task(call: Call) -> None:
    """A task that goes on, streamed."""
    await _by_path(call, _subscribe)


async def card(call: Call) -> None:
    """What an agent can do, and where."""
    wire: Any = call.wire
    served = served_agent(call, call.parameters.get("model", ""))
    root = f"{_origin(call)}/a2a" + (f"/agents/{call.parameters['model']}" if "model" in call.parameters else "")
    tools = [tool.spec for tool in served.agent.tools if isinstance(tool, Tool)]
    security = {"bearer": {"httpAuthSecurityScheme": {"scheme": "bearer"}}} if call.service.has_keys else {}
    made = wire.dump_card(
        served.name,
        {"jsonrpc": root, "rest": root},
        description=served.agent.display_name or "",
        tools=tools,
        security=security,
    )
    is_current = call.headers.get("a2a-version", "").startswith("1") or call.query.get("version", "").startswith("1")
    body = json_bytes.encode(made if is_current else {**wire.old_card(made), **made})
    tag = f'"{blake2b(body, digest_size=12).hexdigest()}"'
    since = format_datetime(call.service.started_at, usegmt=True)
    headers = {"cache-control": "public, max-age=300", "etag": tag, "last-modified": since, "vary": "a2a-version"}
    if call.headers.get("if-none-match") == tag:
        await call.connection.respond(304, headers, b"")
        return
    await call.connection.respond(200, {"content-type": "application/json", **headers}, body)


def _origin(call: Call) -> str:
    scheme = "https" if call.headers.get("x-forwarded-proto") == "https" else "http"
    return f"{scheme}://{call.headers.get('host', '127.0.0.1')}"


# methods


async def _send(call: Call, params: dict[str, Any], frame: Frame) -> None:
    request, task_id = await _asked(call, params)
    served = served_agent(call, call.parameters.get("model", ""))
    run_id = await begun(call, request, served, task_id=task_id)
    how = if_object(params.get("configuration"))
    if not (how.get("returnImmediately") is True or how.get("blocking") is False):
        await drained(call, run_id)
    record = await task_record(call, task_id) or unkept(call, request, task_id, run_id)
    made = bounded(await whole_task(call, record), how.get("historyLength"))
    wire: Any = call.wire
    reply = wire.reply_of(await events_of(call, record.last), context_of(call, record))
    await _respond(call, frame.result(wire, frame.shape(wire, {"task": made} if reply is None else {"message": reply})))


async def _stream(call: Call, params: dict[str, Any], frame: Frame) -> None:
    request, task_id = await _asked(call, params)
    served = served_agent(call, call.parameters.get("model", ""))
    run_id = await begun(call, request, served, task_id=task_id)
    leaves = served.policy.on_disconnect == "cancel"
    await _streamed(call, run_id, request, task_id, frame, cancel_on_leave=leaves)


async def _asked(call: Call, params: dict[str, Any]) -> tuple[RunRequest, str]:
    """What a message asks for, and the id of its task.

    Raises:
        TaskError: its task is over, works, or is of another conversation.
    """
    wire: Any = call.wire
    request: RunRequest = wire.load_run(params, path=call.path, headers=call.headers)
    task_id = wire.task_of(request)
    if task_id:
        record = await _record(call, task_id)
        context = context_of(call, record)
        if request.thread_id not in (None, context):
            raise TaskError("the task is of another conversation; leave contextId out", "INVALID_PARAMS")
        if not record.waits:
            what = "is over" if record.is_over else "works"
            raise TaskError(f"the task {what}, and takes no message; send it without a taskId")
        request = wire.answered(request.replace(thread_id=context), record.last.pending)
        return request, task_id
    if request.thread_id is None:
        request = request.replace(thread_id=call.id)
    return wire.in_task(request, ""), call.id


async def _streamed(
    call: Call, run_id: str, request: RunRequest, task_id: str, frame: Frame, *, cancel_on_leave: bool = False
) -> None:
    wire, connection, runs = call.wire, call.connection, call.service.runs
    any_wire: Any = wire
    encoder: Any = any_wire.encoder(**any_wire.envelope(request, id=task_id, now=call.now))
    headers = {"content-type": wire.stream_type, "cache-control": "no-cache", "x-accel-buffering": "no"}

    def failed(error: DragomanError) -> bytes:
        objects = [*encoder.objects(RunError(error)), *encoder.closing()]
        return b"".join([frame.piece(wire, each) for each in objects])

    connection.stream(headers, wire.ping, failed)
    is_over = False
    try:
        async with aclosing(runs.pages(run_id)) as pages:
            async for page in pages:
                call.observed.add(page)
                objects = [each for event in shown(page) for each in encoder.objects(event)]
                if data := b"".join([frame.piece(wire, each) for each in objects]):
                    await connection.write(data)
        is_over = True
    finally:
        if cancel_on_leave and not is_over:
            with anyio.CancelScope(shield=True):
                await runs.cancel(run_id)
    await connection.end(b"".join([frame.piece(wire, each) for each in encoder.closing()]))


async def _get(call: Call, params: dict[str, Any], frame: Frame) -> None:
    record = await _record(call, if_text(params.get("id")))
    made = bounded(await whole_task(call, record), params.get("historyLength"))
    await _respond(call, frame.result(call.wire, frame.task(call.wire, made)))


async def _list(call: Call, params: dict[str, Any], frame: Frame) -> None:
    await _respond(call, frame.result(call.wire, await listed_tasks(call, params)))


async def _cancel(call: Call, params: dict[str, Any], frame: Frame) -> None:
    record = await _record(call, if_text(params.get("id")))
    if record.is_over:
        raise TaskError("the task is over, and cannot be cancelled", "TASK_NOT_CANCELABLE")
    last = record.last
    if record.waits:
        ended = msgspec.structs.replace(last, state="cancelled", pending=())
        newest = await call.service.answers.find(call.caller.id, [f"thread:{last.thread_id}"])
        await call.service.answers.save(ended, [f"task:{record.id}"])
        if newest is not None and newest.id != last.id:  # the conversation went on, and stays there
            await call.service.answers.save(newest)
    elif last.run_id is not None and await logged(call, last.run_id):
        await call.service.runs.cancel(last.run_id)
        await drained(call, last.run_id)
    made = await whole_task(call, await _record(call, record.id))
    await _respond(call, frame.result(call.wire, frame.task(call.wire, made)))


async def _subscribe(call: Call, params: dict[str, Any], frame: Frame) -> None:
    record = await _record(call, if_text(params.get("id")))
    if record.last.state != "in_progress" or record.last.run_id is None or not await logged(call, record.last.run_id):
        raise TaskError("the task does not work now, so that there is nothing to subscribe to; get it instead")
    wire: Any = call.wire
    request = RunRequest(record.last.request.messages[-1:], thread_id=context_of(call, record))
    request = wire.in_task(request, record.id if len(record.runs) > 1 else "")
    await _streamed(call, record.last.run_id, request, record.id, frame)


async def _no_push(call: Call, params: dict[str, Any], frame: Frame) -> None:  # noqa: ARG001 a method's
    raise TaskError("push notifications are not sent by this server", "PUSH_NOTIFICATION_NOT_SUPPORTED")


async def _no_card(call: Call, params: dict[str, Any], frame: Frame) -> None:  # noqa: ARG001 a method's
    raise TaskError("the agent has one card, and no other for those who sign in", "EXTENDED_AGENT_CARD_NOT_CONFIGURED")


_METHODS: Mapping[str, Callable[[Call, dict[str, Any], Frame], Awaitable[None]]] = {
    "SendMessage": _send,
    "SendStreamingMessage": _stream,
    "GetTask": _get,
    "ListTasks": _list,
    "CancelTask": _cancel,
    "SubscribeToTask": _subscribe,
    "CreateTaskPushNotificationConfig": _no_push,
    "GetTaskPushNotificationConfig": _no_push,
    "ListTaskPushNotificationConfigs": _no_push,
    "DeleteTaskPushNotificationConfig": _no_push,
    "GetExtendedAgentCard": _no_card,
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


async def _respond(call: Call, value: Any) -> None:
    await call.connection.respond(200, {"content-type": "application/json"}, json_bytes.encode(value))
