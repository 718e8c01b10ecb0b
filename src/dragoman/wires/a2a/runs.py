"""What a client asks an agent: the parameters of `SendMessage` and `SendStreamingMessage`, both
ways, and the objects of JSON-RPC around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from dragoman import json_bytes
from dragoman.codec.framing import frame_server_event
from dragoman.codec.json_difference import restore_fields
from dragoman.codec.json_values import (
    check_depth,
    if_list,
    if_object,
    if_text,
    pick,
    read_extra_fields,
)
from dragoman.codec.memos import hide_memos
from dragoman.codec.serving import Problem, Route
from dragoman.errors import HistoryError
from dragoman.interrupt import Resume
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss, Lost
from dragoman.message import Message, Native, Origin, Role
from dragoman.request import RunRequest
from dragoman.wires.a2a.interrupts import dump_resume, load_resume
from dragoman.wires.a2a.messages import dump_message, load_message
from dragoman.wires.a2a.quirks import (
    EXTENSION,
    NAME,
    OWN,
    app_metadata,
    json_of,
    read_carried,
    text_of,
)

__all__ = [
    "OLD_METHODS",
    "OLD_NAMES",
    "dump_run",
    "frame_object",
    "assign_task",
    "is_rpc",
    "last_index",
    "load_run",
    "routes",
    "rpc_failure",
    "rpc_request",
    "rpc_result",
    "task_id_of",
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
"""Method name in 0.3 → its name in 1.0."""
OLD_NAMES = {name: old_name for old_name, name in OLD_METHODS.items()}
"""Method name in 1.0 → its name in 0.3."""


def last_index(messages: Sequence[T], is_match: Callable[[T], bool]) -> int:
    """Returns the index of the last message of an A2A run request that matches, or -1."""
    for index in range(len(messages) - 1, -1, -1):
        if is_match(messages[index]):
            return index
    return -1


def is_rpc(value: Any) -> bool:
    """True if an object belongs to JSON-RPC."""
    return "jsonrpc" in if_object(value)


def rpc_request(method: str, params: JsonMap, id: Any = 1) -> Json:  # noqa: A002 the protocol's
    """Returns the JSON-RPC request of an A2A run, with its parameters."""
    return {
        "jsonrpc": "2.0",
        "id": id,
        "method": method,
        "params": params,
    }


def rpc_result(result: Any, id: Any) -> Json:  # noqa: A002 the protocol's
    """Returns a JSON-RPC response with a result. `id` is the request's."""
    return {"jsonrpc": "2.0", "id": id, "result": result}


def rpc_failure(error: JsonMap, id: Any = None) -> Json:  # noqa: A002 the protocol's
    """Returns an A2A JSON-RPC response with an error.

    Args:
        error: the result of `errors.rpc_error`.
        id: the request's id, or None if it could not be read.
    """
    return {"jsonrpc": "2.0", "id": id, "error": error}


def frame_object(value: JsonMap) -> bytes:
    """Returns an object of a stream as a server-sent event."""
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
"""Paths of a server. Those under `v1` are for clients of 0.3."""
_CARRIED = ("run_id", "tools", "context", "state", "settings", "metadata")
"""Fields of a request that the extension carries. A client must not choose the conversation's
owner or a provider's options."""
_FIELDS = ("taskId", "referenceTaskIds", "extensions", "messageId")


def load_run(
    body: JsonMap,
    *,
    path: str = "",  # noqa: ARG001 the protocol's
    headers: Mapping[str, str] = {},  # noqa: ARG001 the protocol's
    origin: Origin | None = None,
    problems: list[Problem] | None = None,
) -> RunRequest:
    """Returns the request in the parameters of `SendMessage`, or in the JSON-RPC request around
    them.

    `taskId`, `referenceTaskIds`, `extensions`, `messageId`, `configuration` and `tenant` are kept
    in `native`, and the id of a JSON-RPC request in its notes.

    Raises:
        HistoryError: there is no user message in it.
    """
    fields, rpc = _split_rpc(body)
    message = fields.get("message")
    if not isinstance(message, dict):
        raise HistoryError("a request of A2A has a message; send one")
    entry = if_object(message)
    # Answers are parts of the message, and a text may stand beside them.
    resumes, unanswered = _split_answers(entry)
    if unanswered is None:
        messages = []
    else:
        messages = load_message(unanswered, origin)
    if any(message.role is Role.MODEL for message in messages):
        raise HistoryError("a request's message is the user's: its role is ROLE_USER")
    request = RunRequest(
        tuple([_without_ids(message) for message in messages if message.content]),
        thread_id=if_text(entry.get("contextId", entry.get("context_id"))) or None,
        resume=tuple(resumes),
        metadata=app_metadata(fields.get("metadata")),
        native=_load_native(fields, entry, rpc),
    )
    if problems is not None and not request.messages and not request.resume:
        problems.append(Problem(0, "parts", "the message says nothing"))
    carried = read_carried(entry.get("metadata")).get("run")
    return restore_fields(request, if_object(json_of(carried)), _CARRIED)


def _split_rpc(body: Any) -> tuple[Json, Json | None]:
    """Returns the parameters in a body, and the note of the JSON-RPC request around them or
    None."""
    if not isinstance(body, dict):
        raise HistoryError("a request of A2A is a JSON object")
    fields = if_object(body)
    check_depth(fields)
    if not is_rpc(fields):
        return fields, None
    return if_object(fields.get("params")), {"id": fields.get("id")}


def _split_answers(message: JsonMap) -> tuple[list[Resume], Json | None]:
    """Returns the A2A answers in a message, and the message without them or None if nothing else is
    left."""
    parts = message.get("parts")
    if not isinstance(parts, list):
        return [], dict(message)
    loaded = [(part, load_resume(part)) for part in if_list(parts)]
    resumes = [resume for _, resume in loaded if resume is not None]
    unanswered = [part for part, resume in loaded if resume is None]
    if resumes and not unanswered:
        return resumes, None
    return resumes, {**message, "parts": unanswered}


def _without_ids(message: Message) -> Message:
    """Returns a message without its task and context, which the request has."""
    fields = read_extra_fields(OWN.fields(message.native), "contextId", *_FIELDS)
    return message.replace(native=_with_fields(message.native, fields))


def _with_fields(native: Native, fields: Json) -> Native:
    """Returns `native` with these fields of A2A, and without the wire's notes."""
    changed = read_extra_fields(native or {}, NAME)
    if fields:
        changed[NAME] = fields
    return changed or None


def _load_native(params: JsonMap, message: JsonMap, rpc: Json | None) -> Any:
    """Returns the fields of the parameters and of the message that an A2A request has no field
    for."""
    # Some libraries send the names of protobuf's fields.
    if "task_id" in message:
        task_id = {"taskId": message["task_id"]}
    else:
        task_id = {}
    fields = {
        **task_id,
        **pick(message, _FIELDS),
        **read_extra_fields(params, "message", "metadata"),
    }
    native = OWN.note(
        {name: value for name, value in fields.items() if value not in (None, "", [])}
    )
    if rpc is None:
        return native
    return OWN.with_notes(native, rpc=rpc)


def dump_run(request: RunRequest, *, losses: list[Loss] | None = None) -> Json:
    """Returns the parameters of `SendMessage` for a request.

    Only what follows the agent's last answer is sent, since an agent keeps the conversation.
    Earlier messages are losses.
    """
    # The agent has its own answers, and what was said before them.
    start = last_index(request.messages, lambda message: message.role is Role.MODEL) + 1
    if losses is not None:
        why = "an agent of A2A keeps the conversation itself"
        losses += [Loss(index, None, Lost.message, why) for index in range(start)]
    fields = OWN.fields(request.native)
    spare_id = if_text(fields.get("messageId")) or f"{request.run_id or 'run'}:asked"
    new = hide_memos(request.messages[start:])
    entries = [dump_message(message, spare_id) for message in new]
    message = _join_messages(entries, spare_id)
    message["parts"] = [*map(dump_resume, request.resume), *message["parts"]]
    _add_carried(message, request)
    if EXTENSION in if_object(message.get("metadata")):
        extensions = [*if_list(fields.get("extensions")), EXTENSION]
        message["extensions"] = list(dict.fromkeys(extensions))
    if request.thread_id:
        message["contextId"] = request.thread_id
    message |= pick(fields, ("taskId", "referenceTaskIds"))
    params = {"message": message, **read_extra_fields(fields, *_FIELDS)}
    if request.metadata:
        return {**params, "metadata": dict(request.metadata)}
    return params


def _add_carried(message: Json, request: RunRequest) -> None:
    """Adds the A2A request's fields to the extension of its message. `metadata` has a field of its
    own."""
    names = [name for name in _CARRIED if name != "metadata"]
    values = {name: msgspec.to_builtins(getattr(request, name)) for name in names}
    if carried := {name: value for name, value in values.items() if value}:
        metadata = if_object(message.get("metadata"))
        extension = {**if_object(metadata.get(EXTENSION)), "run": text_of(carried)}
        message["metadata"] = {**metadata, EXTENSION: extension}


def _join_messages(messages: list[Json], spare_id: str) -> Json:
    """Returns several messages as the single one that an A2A request may have."""
    if len(messages) == 1:
        return messages[0]
    parts = [part for message in messages for part in message["parts"]]
    id_ = spare_id
    if messages:
        id_ = messages[-1]["messageId"]
    return {"messageId": id_, "role": "ROLE_USER", "parts": parts}


def task_id_of(request: RunRequest) -> str:
    """Returns the id of the task that a request continues, or an empty text for a new task."""
    return if_text(OWN.fields(request.native).get("taskId"))


def assign_task(request: RunRequest, task_id: str) -> RunRequest:
    """Returns the A2A request as one that continues this task, or begins one if `task_id` is
    empty."""
    fields = read_extra_fields(OWN.fields(request.native), "taskId")
    if task_id:
        fields["taskId"] = task_id
    return request.replace(native=_with_fields(request.native, fields))
