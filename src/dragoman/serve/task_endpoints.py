"""What a server does at the places of a protocol that has tasks, by a method's name or a path."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from email.utils import format_datetime
from hashlib import blake2b
from typing import Any

import anyio
import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.errors import DragomanError, InvalidRequestError, ModelNotFoundError, public
from dragoman.event import RunError
from dragoman.logs import logger
from dragoman.run_request import RunRequest
from dragoman.serve.call import Call
from dragoman.serve.protocol_runs import begun, served_agent
from dragoman.serve.shown_events import shown
from dragoman.serve.task_webhooks import asked_config, config_id, notify, notify_record, subscribed
from dragoman.serve.tasks import TaskRecord, context_of, drained, events_of, task_record, tasks_of, whole_task
from dragoman.tools import Tool

__all__ = [
    "cancel_task",
    "card",
    "create_push",
    "delete_push",
    "get_push",
    "list_push",
    "rpc",
    "send_message",
    "stream_message",
    "subscribe_task",
    "task",
    "tasks",
]

_LOG = logger("serve")
_LOOK_SECONDS = 0.2
"""How often a task that waits is looked at, for who has subscribed to it."""
_MOST = 100
_FEW = 50


class TaskError(InvalidRequestError):
    """A request that its task does not allow. `reason`: the protocol's name for that."""

    def __init__(self, message: str, reason: str = "UNSUPPORTED_OPERATION") -> None:
        super().__init__(message)
        self.reason = reason


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
        await _method(method)(call, _params(call), frame)
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
    return _camel(if_object(params))


def _camel(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters by the names that JSON has for them; protobuf's are taken too."""
    how = params.get("configuration")
    named = {_camel_name(name): value for name, value in params.items()}
    return {**named, **({"configuration": _camel(if_object(how))} if isinstance(how, dict) else {})}


def _camel_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join([each.title() for each in rest])


def _check_rpc(call: Call, id_: Any) -> None:
    body = call.body
    wrong = body.get("jsonrpc") != "2.0" or not isinstance(body.get("method"), str)
    if wrong or isinstance(id_, bool) or not isinstance(id_, str | int | float | None):
        raise TaskError('a request of JSON-RPC has "jsonrpc": "2.0", a method and an id', "INVALID_REQUEST")


def _check_version(call: Call) -> None:
    version = call.headers.get("a2a-version") or call.query.get("A2A-Version", "")
    if version not in ("", "1.0", "0.3"):
        raise TaskError(f"the version {version!r:.20} is not spoken here; 1.0 and 0.3 are", "VERSION_NOT_SUPPORTED")


# by paths


async def _by_path(call: Call, work: Callable[[Call, dict[str, Any], Frame], Awaitable[None]]) -> None:
    wire: Any = call.wire
    named = call.parameters
    ids = {"id": named["id"]} if "id" in named else {}
    if call.route.purpose.endswith("_push"):
        ids = {"taskId": named["id"], **({"id": named["config"]} if "config" in named else {})}
    params = _camel({**call.query, **call.body, **ids})
    try:
        _check_version(call)
        old = "/v1/" in call.route.path
        await work(call, wire.new_params(params) if old and call.body else params, Frame(old=old))
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


async def create_push(call: Call) -> None:
    """Takes an address that notifications of a task go to."""
    await _by_path(call, _create_push)


async def get_push(call: Call) -> None:
    """Such an address."""
    await _by_path(call, _get_push)


async def list_push(call: Call) -> None:
    """All of a task."""
    await _by_path(call, _list_push)


async def delete_push(call: Call) -> None:
    """Forgets one."""
    await _by_path(call, _delete_push)


async def card(call: Call) -> None:
    """What an agent can do, and where."""
    wire: Any = call.wire
    served = served_agent(call, call.parameters.get("model", ""))
    root = f"{_origin(call)}/a2a" + (f"/agents/{call.parameters['model']}" if "model" in call.parameters else "")
    tools = [tool.spec for tool in served.agent.tools if isinstance(tool, Tool)]
    security = {"bearer": {"httpAuthSecurityScheme": {"scheme": "bearer"}}} if call.service.has_keys else {}
    made = wire.dump_card(
        served.name,
        {"jsonrpc": root, "rest": root, **({"grpc": call.service.grpc_address} if call.service.grpc_address else {})},
        description=served.agent.display_name or "",
        tools=tools,
        push=call.service.webhooks.policy is not None,
        security=security,
    )
    is_current = call.headers.get("a2a-version", "").startswith("1") or call.query.get("version", "").startswith("1")
    is_current |= not served.policy.older
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
    subscribed(call, task_id, params)
    run_id = await begun(call, request, served, task_id=task_id)
    notify(call, run_id, task_id, request)
    how = if_object(params.get("configuration"))
    if not (how.get("returnImmediately") is True or how.get("blocking") is False):
        await drained(call, run_id)
    record = await _record(call, task_id)
    made = _bounded(await whole_task(call, record), how.get("historyLength"))
    wire: Any = call.wire
    reply = wire.reply_of(await events_of(call, record.last), context_of(call, record))
    await _respond(call, frame.result(wire, frame.shape(wire, {"task": made} if reply is None else {"message": reply})))


async def _stream(call: Call, params: dict[str, Any], frame: Frame) -> None:
    request, task_id = await _asked(call, params)
    served = served_agent(call, call.parameters.get("model", ""))
    subscribed(call, task_id, params)
    run_id = await begun(call, request, served, task_id=task_id)
    notify(call, run_id, task_id, request)
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
    made = _bounded(await whole_task(call, record), params.get("historyLength"))
    await _respond(call, frame.result(call.wire, frame.task(call.wire, made)))


async def _list(call: Call, params: dict[str, Any], frame: Frame) -> None:
    size, token = _number(params.get("pageSize"), _FEW, "pageSize"), if_text(params.get("pageToken"))
    if not 0 < size <= _MOST:
        raise TaskError(f"pageSize must be a number from 1 to {_MOST}", "INVALID_PARAMS")
    context, state = params.get("contextId"), params.get("status")
    found = [each for each in await tasks_of(call) if context in (None, "", context_of(call, each))]
    made = [(each, await whole_task(call, each)) for each in found] if state else [(each, None) for each in found]
    if state:
        made = [(each, whole) for each, whole in made if whole and if_object(whole.get("status")).get("state") == state]
    start = _start(token, [each.id for each, _ in made])
    page = made[start : start + size]
    wholes = [whole or await whole_task(call, each) for each, whole in page]
    keeps = params.get("includeArtifacts") in (True, "true")
    listed = [_bounded(_kept(whole, artifacts=keeps), params.get("historyLength")) for whole in wholes]
    more = page[-1][0].id if page and start + size < len(made) else ""
    next_token = base64.urlsafe_b64encode(more.encode()).decode() if more else ""
    answer = {"tasks": listed, "nextPageToken": next_token, "pageSize": size, "totalSize": len(made)}
    await _respond(call, frame.result(call.wire, answer))


async def _cancel(call: Call, params: dict[str, Any], frame: Frame) -> None:
    record = await _record(call, if_text(params.get("id")))
    if record.is_over:
        raise TaskError("the task is over, and cannot be cancelled", "TASK_NOT_CANCELABLE")
    last = record.last
    if record.waits:
        ended = msgspec.structs.replace(last, state="cancelled", pending=())
        await call.service.answers.save(ended, [f"task:{record.id}", f"thread:{last.thread_id}"])
    elif last.run_id is not None:
        await call.service.runs.cancel(last.run_id)
        await drained(call, last.run_id)
    made = await whole_task(call, await _record(call, record.id))
    await _respond(call, frame.result(call.wire, frame.task(call.wire, made)))


async def _subscribe(call: Call, params: dict[str, Any], frame: Frame) -> None:
    record = await _record(call, if_text(params.get("id")))
    if record.is_over:
        raise TaskError("the task is over, so that there is nothing to subscribe to; get it instead")
    if record.waits:
        record = await _next_run(call, record, frame)
    run_id = record.last.run_id
    if record.is_over or run_id is None:
        await call.connection.end(frame.piece(call.wire, {"task": await whole_task(call, record)}))
        return
    wire: Any = call.wire
    request = RunRequest(record.last.request.messages[-1:], thread_id=context_of(call, record))
    request = wire.in_task(request, record.id if len(record.runs) > 1 else "")
    await _streamed(call, run_id, request, record.id, frame)


async def _next_run(call: Call, record: TaskRecord, frame: Frame) -> TaskRecord:
    """Shows a task that waits, and stays until somebody goes on with it or ends it."""
    headers = {"content-type": call.wire.stream_type, "cache-control": "no-cache", "x-accel-buffering": "no"}
    call.connection.stream(headers, call.wire.ping, lambda error: b"")  # noqa: ARG005 the task is as it was
    await call.connection.write(frame.piece(call.wire, {"task": await whole_task(call, record)}))
    while record.waits:
        await anyio.sleep(_LOOK_SECONDS)
        record = await _record(call, record.id)
    return record


async def _push_task(call: Call, params: dict[str, Any]) -> TaskRecord:
    if call.service.webhooks.policy is None:
        raise TaskError("push notifications are not sent by this server", "PUSH_NOTIFICATION_NOT_SUPPORTED")
    return await _record(call, if_text(params.get("taskId")) or if_text(params.get("id")))


async def _create_push(call: Call, params: dict[str, Any], frame: Frame) -> None:
    record = await _push_task(call, params)
    hooks = call.service.webhooks
    config = {name: value for name, value in asked_config(params).items() if name != "taskId"}
    kept = hooks.add(call.caller.id, record.id, config, call.service.new_id())
    notify_record(call, record)
    await _respond(call, frame.result(call.wire, kept))


async def _get_push(call: Call, params: dict[str, Any], frame: Frame) -> None:
    record = await _push_task(call, params)
    found = call.service.webhooks.of(call.caller.id, record.id).get(config_id(params))
    if found is None:
        raise ModelNotFoundError("there is no such configuration of push notifications here")
    await _respond(call, frame.result(call.wire, found))


async def _list_push(call: Call, params: dict[str, Any], frame: Frame) -> None:
    record = await _push_task(call, params)
    configs = list(call.service.webhooks.of(call.caller.id, record.id).values())
    await _respond(call, frame.result(call.wire, {"configs": configs, "nextPageToken": ""}))


async def _delete_push(call: Call, params: dict[str, Any], frame: Frame) -> None:
    record = await _push_task(call, params)
    call.service.webhooks.remove(call.caller.id, record.id, config_id(params))
    await _respond(call, frame.result(call.wire, {}))


async def _no_card(call: Call, params: dict[str, Any], frame: Frame) -> None:  # noqa: ARG001 a method's
    raise TaskError("the agent has one card, and no other for those who sign in", "EXTENDED_AGENT_CARD_NOT_CONFIGURED")


_METHODS: Mapping[str, Callable[[Call, dict[str, Any], Frame], Awaitable[None]]] = {
    "SendMessage": _send,
    "SendStreamingMessage": _stream,
    "GetTask": _get,
    "ListTasks": _list,
    "CancelTask": _cancel,
    "SubscribeToTask": _subscribe,
    "CreateTaskPushNotificationConfig": _create_push,
    "GetTaskPushNotificationConfig": _get_push,
    "ListTaskPushNotificationConfigs": _list_push,
    "DeleteTaskPushNotificationConfig": _delete_push,
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


def _bounded(task: dict[str, Any], most: Any) -> dict[str, Any]:
    """A task with the end of its history alone, where its client wants no more."""
    if most is None:
        return task
    count = _number(most, 0, "historyLength")
    if count < 0:
        raise TaskError("historyLength must be 0 or more", "INVALID_PARAMS")
    history = if_list(task.get("history"))
    left = {name: value for name, value in task.items() if name != "history"}
    return {**left, "history": history[-count:]} if count and history else left


def _kept(task: dict[str, Any], *, artifacts: bool) -> dict[str, Any]:
    return task if artifacts else {name: value for name, value in task.items() if name != "artifacts"}


def _number(value: Any, default: int, name: str) -> int:
    if value is None or value == "":
        return default
    if isinstance(value, str) and value.lstrip("-").isascii() and value.lstrip("-").isdigit() and len(value) < 10:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise TaskError(f"{name} must be a whole number", "INVALID_PARAMS")


def _start(token: str, ids: list[str]) -> int:
    if not token:
        return 0
    try:
        last = base64.urlsafe_b64decode(token.encode()).decode()
    except ValueError as error:
        raise TaskError("pageToken is none of this server's", "INVALID_PARAMS") from error
    if last not in ids:
        raise TaskError("pageToken is none of this server's", "INVALID_PARAMS")
    return ids.index(last) + 1
