"""What a client asks an agent: the parameters of `SendMessage` and `SendStreamingMessage`, both
ways, and the objects of JSON-RPC around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from dragoman import json_bytes
from dragoman.codec.difference import restore_fields
from dragoman.codec.framing import frame_server_event
from dragoman.codec.json_values import check_depth, if_list, if_object, if_text, read_extra_fields
from dragoman.codec.serving import Problem, Route
from dragoman.errors import HistoryError
from dragoman.interrupt import Resume
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss, Lost
from dragoman.message import Message, Native, Origin, Role
from dragoman.request import RunRequest
from dragoman.wires.a2a.interrupts import dump_resume, load_resume
from dragoman.wires.a2a.messages import dump_message, load_message
from dragoman.wires.a2a.quirks import EXTENSION, NAME, OWN, extras, json_of, others, text_of

__all__ = [
    "OLD_METHODS",
    "OLD_NAMES",
    "dump_run",
    "framed",
    "in_task",
    "is_rpc",
    "last_index",
    "load_run",
    "routes",
    "rpc_failure",
    "rpc_request",
    "rpc_result",
    "task_of",
]

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
OLD_NAMES = {name: old_name for old_name, name in OLD_METHODS.items()}
"""Name in 1.0 → in 0.3."""


def last_index(messages: Sequence[T], is_match: Callable[[T], bool]) -> int:
    """Returns the index of the last message that matches, or -1."""
    for index in range(len(messages) - 1, -1, -1):
        if is_match(messages[index]):
            return index
    return -1


def is_rpc(value: Any) -> bool:
    """Whether an object is one of JSON-RPC."""
    return "jsonrpc" in if_object(value)


def rpc_request(method: str, params: JsonMap, id: Any = 1) -> Json:  # noqa: A002 the protocol's
    """A request."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def rpc_result(result: Any, id: Any) -> Json:  # noqa: A002 the protocol's
    """An answer. `id`: the request's."""
    return {"jsonrpc": "2.0", "id": id, "result": result}


def rpc_failure(error: JsonMap, id: Any = None) -> Json:  # noqa: A002 the protocol's
    """An answer that tells an error (`errors.rpc_error`). `id`: the request's; `None`: it could not
    be read."""
    return {"jsonrpc": "2.0", "id": id, "error": error}


def framed(value: JsonMap) -> bytes:
    """An object of a stream as bytes."""
    return frame_server_event(json_bytes.encode(value))


T = TypeVar("T")
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
"""What is carried of a request under our extension. Whose conversation it is, and what goes to a
provider unread, is not for a client to say."""
_FIELDS = ("taskId", "referenceTaskIds", "extensions", "messageId")


def load_run(
    body: JsonMap,
    *,
    path: str = "",  # noqa: ARG001 the protocol's
    headers: Mapping[str, str] = {},  # noqa: ARG001 the protocol's
    origin: Origin | None = None,
    problems: list[Problem] | None = None,
) -> RunRequest:
    """What a client asks: the parameters, or the request of JSON-RPC that holds them (its id is in
    the notes of `native`, `rpc`). `taskId`, `referenceTaskIds`, `extensions`, `messageId`,
    `configuration` and `tenant` stand in `native`.

    Raises:
        HistoryError: there is no message in it.
    """
    fields, rpc = _params_of(body)
    message = fields.get("message")
    if not isinstance(message, dict):
        raise HistoryError("a request of A2A has a message; send one")
    entry = if_object(message)
    # Answers are parts of the message, and a text may stand beside them.
    resumes, unanswered = _split_answers(entry)
    messages = [] if unanswered is None else load_message(unanswered, origin)
    if any(message.role is Role.MODEL for message in messages):
        raise HistoryError("a request's message is the user's: its role is ROLE_USER")
    request = RunRequest(
        tuple([_without_place(message) for message in messages if message.content]),
        thread_id=if_text(entry.get("contextId", entry.get("context_id"))) or None,
        resume=tuple(resumes),
        metadata=others(fields.get("metadata")),
        native=_native(fields, entry, rpc),
    )
    if problems is not None and not request.messages and not request.resume:
        problems.append(Problem(0, "parts", "the message says nothing"))
    carried = extras(entry.get("metadata")).get("run")
    return restore_fields(request, if_object(json_of(carried)), _CARRIED)


def _params_of(body: Any) -> tuple[Json, Json | None]:
    """Returns the parameters in a body, and what is noted of the request of JSON-RPC around them,
    if there is one."""
    if not isinstance(body, dict):
        raise HistoryError("a request of A2A is a JSON object")
    fields = if_object(body)
    check_depth(fields)
    if not is_rpc(fields):
        return fields, None
    return if_object(fields.get("params")), {"id": fields.get("id")}


def _split_answers(message: JsonMap) -> tuple[list[Resume], Json | None]:
    """Returns the answers in a message, and the message without them; `None`: nothing else is in
    it."""
    parts = message.get("parts")
    if not isinstance(parts, list):
        return [], dict(message)
    loaded = [(part, load_resume(part)) for part in if_list(parts)]
    resumes = [resume for _, resume in loaded if resume is not None]
    unanswered = [part for part, resume in loaded if resume is None]
    if resumes and not unanswered:
        return resumes, None
    return resumes, {**message, "parts": unanswered}


def _without_place(message: Message) -> Message:
    """Returns a message without what says where it belongs; the request says that."""
    fields = read_extra_fields(OWN.fields(message.native), "contextId", *_FIELDS)
    return message.replace(native=_with_fields(message.native, fields))


def _with_fields(native: Native, fields: Json) -> Native:
    """Returns `native` with these as the protocol's fields, and without its notes."""
    native = {name: value for name, value in (native or {}).items() if name != NAME}
    if fields:
        native[NAME] = fields
    return native or None


def _native(params: JsonMap, message: JsonMap, rpc: Json | None) -> Any:
    # Some libraries send the names of protobuf's fields.
    task_id = {"taskId": message["task_id"]} if "task_id" in message else {}
    fields = {
        **task_id,
        **{name: message[name] for name in _FIELDS if name in message},
        **read_extra_fields(params, "message", "metadata"),
    }
    native = OWN.note(
        {name: value for name, value in fields.items() if value not in (None, "", [])}
    )
    return native if rpc is None else OWN.with_notes(native, rpc=rpc)


def dump_run(request: RunRequest, *, losses: list[Loss] | None = None) -> Json:
    """A request → the parameters that ask it. One message is sent; what came before it is known to
    the agent: a history that is not is a loss."""
    # The agent has its own answers, and what was said before them.
    start = last_index(request.messages, lambda message: message.role is Role.MODEL) + 1
    if losses is not None:
        why = "an agent of A2A keeps the conversation itself"
        losses += [Loss(index, None, Lost.message, why) for index in range(start)]
    fields = OWN.fields(request.native)
    spare_id = if_text(fields.get("messageId")) or f"{request.run_id or 'run'}:asked"
    entries = [dump_message(message, spare_id) for message in request.messages[start:]]
    message = _join(entries, spare_id)
    message["parts"] = [*map(dump_resume, request.resume), *message["parts"]]
    _add_carried(message, request)
    if EXTENSION in if_object(message.get("metadata")):
        extensions = [*if_list(fields.get("extensions")), EXTENSION]
        message["extensions"] = list(dict.fromkeys(extensions))
    if request.thread_id:
        message["contextId"] = request.thread_id
    message |= {name: fields[name] for name in ("taskId", "referenceTaskIds") if name in fields}
    params = {"message": message, **read_extra_fields(fields, *_FIELDS)}
    return {**params, "metadata": dict(request.metadata)} if request.metadata else params


def _add_carried(message: Json, request: RunRequest) -> None:
    """Adds the fields that are carried, and say something, to a message; not `metadata`, for which
    the parameters have a field."""
    names = [name for name in _CARRIED if name != "metadata"]
    values = {name: msgspec.to_builtins(getattr(request, name)) for name in names}
    if carried := {name: value for name, value in values.items() if value}:
        metadata = if_object(message.get("metadata"))
        extension = {**if_object(metadata.get(EXTENSION)), "run": text_of(carried)}
        message["metadata"] = {**metadata, EXTENSION: extension}


def _join(messages: list[Json], spare_id: str) -> Json:
    """Returns several messages as the one that is sent."""
    if len(messages) == 1:
        return messages[0]
    parts = [part for message in messages for part in message["parts"]]
    id_ = messages[-1]["messageId"] if messages else spare_id
    return {"messageId": id_, "role": "ROLE_USER", "parts": parts}


def task_of(request: RunRequest) -> str:
    """The id of the task that a request goes on with; empty: it begins one."""
    return if_text(OWN.fields(request.native).get("taskId"))


def in_task(request: RunRequest, task_id: str) -> RunRequest:
    """A request that goes on with a task; empty: that begins one."""
    fields = read_extra_fields(OWN.fields(request.native), "taskId")
    if task_id:
        fields["taskId"] = task_id
    return request.replace(native=_with_fields(request.native, fields))
