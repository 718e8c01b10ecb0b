"""What a client asks an agent: the parameters of `SendMessage` and `SendStreamingMessage`, both ways, and the objects of JSON-RPC around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman import json_bytes
from dragoman.codec.carried import apply_carried
from dragoman.codec.framing import event_bytes
from dragoman.codec.json_values import bounded, if_list, if_object, if_text, rest
from dragoman.codec.serving import Problem, Route
from dragoman.errors import HistoryError
from dragoman.interrupt import Resume
from dragoman.loss import Loss, Lost
from dragoman.message import Message, Origin, Role
from dragoman.request import RunRequest
from dragoman.wires.a2a.interrupts import dump_resume, load_resume
from dragoman.wires.a2a.messages import dump_message, load_message
from dragoman.wires.a2a.quirks import EXTENSION, NAME, OWN, extras, json_of, others, text_of

__all__ = [
    "METHODS",
    "OLD_METHODS",
    "dump_run",
    "framed",
    "in_task",
    "is_rpc",
    "load_run",
    "routes",
    "rpc_failure",
    "rpc_request",
    "rpc_result",
    "task_of",
]

METHODS = (
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
)
"""Of JSON-RPC and gRPC."""
OLD_METHODS: Mapping[str, str] = {
    "message/send": "SendMessage",
    "message/stream": "SendStreamingMessage",
    "tasks/get": "GetTask",
    "tasks/cancel": "CancelTask",
    "tasks/resubscribe": "SubscribeToTask",
    "tasks/pushNotificationConfig/set": "CreateTaskPushNotificationConfig",
    "tasks/pushNotificationConfig/get": "GetTaskPushNotificationConfig",
    "tasks/pushNotificationConfig/list": "ListTaskPushNotificationConfigs",
    "tasks/pushNotificationConfig/delete": "DeleteTaskPushNotificationConfig",
    "agent/getAuthenticatedExtendedCard": "GetExtendedAgentCard",
}
"""Name in 0.3 → in 1.0."""


def is_rpc(value: Any) -> bool:
    """Whether an object is one of JSON-RPC."""
    return "jsonrpc" in if_object(value)


def rpc_request(method: str, params: Mapping[str, Any], id: Any = 1) -> dict[str, Any]:  # noqa: A002 the protocol's
    """A request."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def rpc_result(result: Any, id: Any) -> dict[str, Any]:  # noqa: A002 the protocol's
    """An answer. `id`: the request's."""
    return {"jsonrpc": "2.0", "id": id, "result": result}


def rpc_failure(error: Mapping[str, Any], id: Any = None) -> dict[str, Any]:  # noqa: A002 the protocol's
    """An answer that tells an error (`errors.rpc_error`). `id`: the request's; `None`: it could not be read."""
    return {"jsonrpc": "2.0", "id": id, "error": error}


def framed(value: Mapping[str, Any]) -> bytes:
    """An object of a stream as bytes."""
    return event_bytes(json_bytes.encode(value))


_AGENTS = ("/a2a", "/a2a/agents/{model}")
routes = (
    Route("GET", "/.well-known/agent-card.json", "card", public=True),
    *[
        Route(method, root + path, purpose, public=purpose == "card")
        for root in _AGENTS
        for method, path, purpose in (
            ("GET", "/.well-known/agent-card.json", "card"),
            ("GET", "/extendedAgentCard", "extended_card"),
            ("GET", "/v1/card", "extended_card"),
            ("POST", "", "rpc"),
            ("POST", "/", "rpc"),
            ("POST", "/message:send", "send_message"),
            ("POST", "/message:stream", "stream_message"),
            ("POST", "/v1/message:send", "send_message"),
            ("POST", "/v1/message:stream", "stream_message"),
            ("GET", "/tasks", "tasks"),
            ("GET", "/tasks/{id}", "task"),
            ("GET", "/v1/tasks/{id}", "task"),
            ("POST", "/tasks/{id}:cancel", "cancel_task"),
            ("POST", "/v1/tasks/{id}:cancel", "cancel_task"),
            ("POST", "/tasks/{id}:subscribe", "subscribe_task"),
            ("GET", "/tasks/{id}:subscribe", "subscribe_task"),
            ("GET", "/v1/tasks/{id}:subscribe", "subscribe_task"),
            *[
                (method, f"{version}/tasks/{{id}}/pushNotificationConfigs{config}", purpose)
                for version in ("", "/v1")
                for method, config, purpose in (
                    ("POST", "", "create_push"),
                    ("GET", "", "list_push"),
                    ("GET", "/{config}", "get_push"),
                    ("DELETE", "/{config}", "delete_push"),
                )
            ],
        )
    ],
)
"""Where a server has what. Those under `v1` are of 0.3."""
_CARRIED = ("run_id", "tools", "context", "state", "settings", "metadata")
"""What is carried of a request under our extension. Whose conversation it is, and what goes to a provider unread, is not for a client
to say."""
_FIELDS = ("taskId", "referenceTaskIds", "extensions", "messageId")


def load_run(
    body: Mapping[str, Any],
    *,
    path: str = "",  # noqa: ARG001 the protocol's
    headers: Mapping[str, str] = {},  # noqa: ARG001 the protocol's
    origin: Origin | None = None,
    problems: list[Problem] | None = None,
) -> RunRequest:
    """What a client asks: the parameters, or the request of JSON-RPC that holds them (its id is in the notes of `native`, `rpc`).
    `taskId`, `referenceTaskIds`, `extensions`, `messageId`, `configuration` and `tenant` stand in `native`.

    Raises:
        HistoryError: there is no message in it.
    """
    given: Any = body
    if not isinstance(given, dict):
        raise HistoryError("a request of A2A is a JSON object")
    bounded(body)
    rpc = {"id": body.get("id")} if is_rpc(body) else None
    params = if_object(body.get("params")) if rpc is not None else if_object(given)
    message = params.get("message")
    if not isinstance(message, dict):
        raise HistoryError("a request of A2A has a message; send one")
    fields = if_object(message)
    resumes, left = _answers(fields)
    more = extras(fields.get("metadata"))
    messages = [_outer(each) for each in load_message(left, origin)] if left is not None else []
    if any(each.role is Role.MODEL for each in messages):
        raise HistoryError("a request's message is the user's: its role is ROLE_USER")
    request = RunRequest(
        tuple([each for each in messages if each.content]),
        thread_id=if_text(fields.get("contextId", fields.get("context_id"))) or None,
        resume=tuple(resumes),
        metadata=others(params.get("metadata")),
        native=_native(params, fields, rpc),
    )
    if problems is not None and not request.messages and not request.resume:
        problems.append(Problem(0, "parts", "the message says nothing"))
    return apply_carried(request, if_object(json_of(more.get("run"))), _CARRIED)


def _answers(message: Mapping[str, Any]) -> tuple[list[Resume], dict[str, Any] | None]:
    """The answers in a message, and the message without them; `None`: nothing else is in it."""
    parts = message.get("parts")
    if not isinstance(parts, list):
        return [], dict(message)
    read = [(part, load_resume(part)) for part in if_list(parts)]
    resumes = [resume for _, resume in read if resume is not None]
    left = [part for part, resume in read if resume is None]
    return resumes, None if resumes and not left else {**message, "parts": left}


def _outer(message: Message) -> Message:
    """A message without what says where it belongs; the request says that."""
    own = {
        key: value
        for key, value in OWN.fields(message.native).items()
        if key not in ("contextId", *_FIELDS)
    }
    native = {key: value for key, value in (message.native or {}).items() if key != NAME}
    return message.replace(native={**native, **({NAME: own} if own else {})} or None)


def _native(
    params: Mapping[str, Any], message: Mapping[str, Any], rpc: dict[str, Any] | None
) -> Any:
    task_id = {"taskId": message["task_id"]} if "task_id" in message else {}
    fields = {
        **task_id,
        **{name: message[name] for name in _FIELDS if name in message},
        **rest(params, "message", "metadata"),
    }
    native = OWN.note(
        {name: value for name, value in fields.items() if value not in (None, "", [])}
    )
    return native if rpc is None else OWN.with_notes(native, rpc=rpc)


def dump_run(request: RunRequest, *, losses: list[Loss] | None = None) -> dict[str, Any]:
    """The inverse: the parameters that ask it. One message is sent, and what came before it is known to the agent: a history that is
    not is a loss."""
    end = next(
        (
            at
            for at in range(len(request.messages), 0, -1)
            if request.messages[at - 1].role is Role.MODEL
        ),
        0,
    )
    before, new = request.messages[:end], request.messages[end:]
    if losses is not None:
        why = "an agent of A2A keeps the conversation itself"
        losses += [Loss(at, None, Lost.message, why) for at, _ in enumerate(before)]
    own = OWN.fields(request.native)
    spare = if_text(own.get("messageId")) or f"{request.run_id or 'run'}:asked"
    message = _joined([dump_message(each, spare) for each in new], spare)
    message["parts"] = [*(dump_resume(each) for each in request.resume), *message["parts"]]
    held = {
        name: value
        for name in _CARRIED
        if name != "metadata" and (value := _builtin(request, name))
    }
    if held:
        metadata = if_object(message.get("metadata"))
        message["metadata"] = {
            **metadata,
            EXTENSION: {**if_object(metadata.get(EXTENSION)), "run": text_of(held)},
        }
    if EXTENSION in if_object(message.get("metadata")):
        message["extensions"] = list(dict.fromkeys([*if_list(own.get("extensions")), EXTENSION]))
    if request.thread_id:
        message["contextId"] = request.thread_id
    message |= {name: own[name] for name in ("taskId", "referenceTaskIds") if name in own}
    params = {
        "message": message,
        **{name: value for name, value in own.items() if name not in _FIELDS},
    }
    return {**params, "metadata": dict(request.metadata)} if request.metadata else params


def _joined(messages: list[dict[str, Any]], spare: str) -> dict[str, Any]:
    """Several messages as the one that is sent."""
    if len(messages) == 1:
        return messages[0]
    parts = [part for each in messages for part in each["parts"]]
    last = messages[-1] if messages else {"messageId": spare, "role": "ROLE_USER"}
    return {"messageId": last["messageId"], "role": "ROLE_USER", "parts": parts}


def _builtin(request: RunRequest, name: str) -> Any:
    return msgspec.to_builtins(getattr(request, name))


def task_of(request: RunRequest) -> str:
    """The id of the task that a request goes on with; empty: it begins one."""
    return if_text(OWN.fields(request.native).get("taskId"))


def in_task(request: RunRequest, task_id: str) -> RunRequest:
    """A request that goes on with a task; empty: that begins one."""
    fields = rest(OWN.fields(request.native), "taskId")
    native = {name: value for name, value in (request.native or {}).items() if name != NAME}
    own = {**fields, **({"taskId": task_id} if task_id else {})}
    return request.replace(native={**native, **({NAME: own} if own else {})} or None)
