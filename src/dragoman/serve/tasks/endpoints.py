"""What a server does at the places of a protocol that has tasks, by a method's name or a path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import if_object
from dragoman.errors import public
from dragoman.serve.calls.call import Call
from dragoman.serve.tasks import methods
from dragoman.serve.tasks.cards import extended
from dragoman.serve.tasks.frames import Frame, TaskError, respond, task_wire

__all__ = [
    "cancel_task",
    "create_push",
    "delete_push",
    "extended_card",
    "get_push",
    "list_push",
    "rpc",
    "send_message",
    "stream_message",
    "subscribe_task",
    "task",
    "tasks",
]

# by JSON-RPC


async def rpc(call: Call) -> None:
    """Does what a method asks for; whatever is wrong is an answer of JSON-RPC."""
    wire = task_wire(call)
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
        shown_error = error if isinstance(error, TaskError) else public(error)
        call.observed.error = error
        failure = wire.rpc_error(shown_error, getattr(error, "reason", ""))
        await respond(call, wire.rpc_failure(failure, frame.id))


def _method(name: str) -> Callable[[Call, dict[str, Any], Frame], Awaitable[None]]:
    if name not in methods.METHODS:
        raise TaskError(f"there is no method {name!r:.100} here", "METHOD_NOT_FOUND")
    return methods.METHODS[name]


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
        raise TaskError(
            'a request of JSON-RPC has "jsonrpc": "2.0", a method and an id', "INVALID_REQUEST"
        )


def _of_key(call: Call) -> Call:
    """A call without what its body says of a user: a task is its key's, since other methods name no user."""
    return msgspec.structs.replace(call, body={})


def _check_type(call: Call) -> None:
    wire = task_wire(call)
    kind = call.headers.get("content-type", "").partition(";")[0].strip().lower()
    if call.body and kind and kind not in wire.MEDIA_TYPES:
        words = f"a body of the type {kind!r:.100} is not read here; send {' or '.join(wire.MEDIA_TYPES)}"
        raise TaskError(words, "CONTENT_TYPE_NOT_SUPPORTED")


def _check_version(call: Call) -> None:
    version = call.headers.get("a2a-version") or call.query.get("A2A-Version", "")
    if version not in ("", "1.0", "0.3"):
        raise TaskError(
            f"the version {version!r:.20} is not spoken here; 1.0 and 0.3 are",
            "VERSION_NOT_SUPPORTED",
        )


# by paths


async def _by_path(
    call: Call, work: Callable[[Call, dict[str, Any], Frame], Awaitable[None]]
) -> None:
    wire = task_wire(call)
    named = call.parameters
    ids = {"id": named["id"]} if "id" in named else {}
    is_push = call.route.purpose.endswith("_push")
    if is_push:
        ids = {"taskId": named["id"], **({"id": named["config"]} if "config" in named else {})}
    params = _camel({**call.query, **call.body, **ids})
    try:
        _check_version(call)
        _check_type(call)
        old = "/v1/" in call.route.path
        given = wire.new_params(params) if old and call.body and not is_push else params
        await work(_of_key(call), given, Frame(old=old))
    except TaskError as error:
        refused = wire.rest_error(error, error.reason)
        await call.connection.respond(
            refused.status, refused.headers, json_bytes.encode(refused.body)
        )


async def send_message(call: Call) -> None:
    """A message to an agent → its task, once it is over or waits."""
    await _by_path(call, methods.send)


async def stream_message(call: Call) -> None:
    """A message to an agent → its task, streamed."""
    await _by_path(call, methods.stream)


async def task(call: Call) -> None:
    """A task."""
    await _by_path(call, methods.get)


async def tasks(call: Call) -> None:
    """All tasks of the client."""
    await _by_path(call, methods.listed)


async def cancel_task(call: Call) -> None:
    """Ends a task."""
    await _by_path(call, methods.cancel)


async def subscribe_task(call: Call) -> None:
    """A task that goes on, streamed."""
    await _by_path(call, methods.subscribe)


async def extended_card(call: Call) -> None:
    """What an agent can do, for who has a key."""
    await _by_path(call, extended)


async def create_push(call: Call) -> None:
    """Takes an address that notifications of a task go to."""
    await _by_path(call, methods.create_push)


async def get_push(call: Call) -> None:
    """Such an address."""
    await _by_path(call, methods.get_push)


async def list_push(call: Call) -> None:
    """All of a task."""
    await _by_path(call, methods.list_push)


async def delete_push(call: Call) -> None:
    """Forgets one."""
    await _by_path(call, methods.delete_push)
