"""The API of A2A: methods by JSON-RPC, and the same by paths, for clients of 1.0 and of 0.3.

Every call ends in one of `a2a_methods.METHODS`. `answer_rpc` finds the method by its name in the
body; the handlers of `_make_path_handler` are bound to a path each and build the same parameters
from path, query and body. Both check the version and accept protobuf's names of fields.

A `Frame` tells the method how to write its answer: as JSON-RPC or plain, in the form of 1.0 or
0.3. Errors are written as the client's binding writes them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import if_object
from dragoman.codec.serving import ErrorResponse
from dragoman.errors import DragomanError, public
from dragoman.json_bytes import Json, JsonMap
from dragoman.serve.apis import a2a_methods as methods
from dragoman.serve.apis import a2a_push as push
from dragoman.serve.apis.a2a_frames import Frame, TaskError, respond
from dragoman.serve.apis.a2a_tasks import end_task
from dragoman.serve.apis.cards import show_card, show_extended_card
from dragoman.serve.core.call import Api, Call, Handler
from dragoman.serve.store.stored_answer import Answered
from dragoman.wires import a2a
from dragoman.wires.wire import Wire

__all__ = ["A2aApi"]

_VERSIONS = ("", "1.0", "0.3")

# by JSON-RPC


async def answer_rpc(call: Call) -> None:
    """Runs the JSON-RPC method that a client of A2A calls. Every error becomes a JSON-RPC
    answer."""
    body, id_ = call.body, call.body.get("id")
    frame = Frame(rpc=True, id=id_ if isinstance(id_, str | int | float) or id_ is None else None)
    try:
        _check_rpc(call, id_)
        name = a2a.OLD_METHODS.get(body["method"], body["method"])
        frame = msgspec.structs.replace(frame, old=name != body["method"])
        await _find_method(name)(_drop_user(call), _read_params(call), frame)
    except Exception as error:
        if call.connection.started:
            raise
        if isinstance(error, TaskError):
            shown_error = error
        else:
            shown_error = public(error)
        call.observed.error = error
        failure = a2a.rpc_error(shown_error, getattr(error, "reason", ""))
        await respond(call, a2a.rpc_failure(failure, frame.id))


def _find_method(name: str) -> methods.Method:
    if name not in methods.METHODS:
        raise TaskError(f"there is no method {name!r:.100} here", "METHOD_NOT_FOUND")
    return methods.METHODS[name]


def _read_params(call: Call) -> Json:
    """Returns the params of an A2A JSON-RPC request, with keys in camelCase. Raises `TaskError` if
    they are no object."""
    _check_version(call)
    params: Any = call.body.get("params")
    if params is not None and not isinstance(params, dict):
        raise TaskError("params must be an object", "INVALID_PARAMS")
    return _to_camel(if_object(params))


def _check_rpc(call: Call, id_: Any) -> None:
    """Checks that the body of an A2A request is a valid JSON-RPC 2.0 request with a method and an
    id."""
    body = call.body
    is_wrong = body.get("jsonrpc") != "2.0" or not isinstance(body.get("method"), str)
    if is_wrong or isinstance(id_, bool) or not isinstance(id_, str | int | float | None):
        raise TaskError(
            'a request of JSON-RPC has "jsonrpc": "2.0", a method and an id', "INVALID_REQUEST"
        )


# by paths


def _make_path_handler(method: methods.Method) -> Callable[[Call], Awaitable[None]]:
    """Returns a handler for A2A's REST binding: it runs a method with the parameters in the path,
    the query and the body of a request, and answers errors as this binding does."""

    async def answer(call: Call) -> None:
        """Answers one request of A2A's REST binding."""
        try:
            _check_version(call)
            _check_type(call)
            # Only the paths of 0.3 contain /v1/.
            is_old = "/v1/" in call.route.path
            await method(
                _drop_user(call), _read_path_params(call, is_old=is_old), Frame(old=is_old)
            )
        except TaskError as error:
            refused = a2a.rest_error(error, error.reason)
            body = json_bytes.encode(refused.body)
            await call.connection.respond(refused.status, refused.headers, body)

    return answer


def _read_path_params(call: Call, *, is_old: bool) -> Json:
    """Returns the params of an A2A request by path, from its path, query and body."""
    parameters = call.parameters
    if "id" in parameters:
        ids = {"id": parameters["id"]}
    else:
        ids = {}
    is_push = call.route.purpose.endswith("_push")
    if is_push:
        ids = {
            "taskId": parameters["id"],
            **({"id": parameters["config"]} if "config" in parameters else {}),
        }
    params = _to_camel({**call.query, **call.body, **ids})
    if is_old and call.body and not is_push:
        return a2a.new_params(params)
    return params


def _check_type(call: Call) -> None:
    """Raises `TaskError` if the content type of a request's body is none of A2A's."""
    media_type = call.headers.get("content-type", "").partition(";")[0].strip().lower()
    if call.body and media_type and media_type not in a2a.MEDIA_TYPES:
        message = f"a body of the type {media_type!r:.100} is not read here; send {' or '.join(a2a.MEDIA_TYPES)}"
        raise TaskError(message, "CONTENT_TYPE_NOT_SUPPORTED")


# both


def _to_camel(params: JsonMap) -> Json:
    """Returns A2A parameters by the names that JSON has for them; protobuf's are taken too."""
    named = {_camel_name(name): value for name, value in params.items()}
    configuration = params.get("configuration")
    if isinstance(configuration, dict):
        named["configuration"] = _to_camel(if_object(configuration))
    return named


def _camel_name(name: str) -> str:
    first, *parts = name.split("_")
    return first + "".join([part.title() for part in parts])


def _drop_user(call: Call) -> Call:
    """Returns a call with an empty body, so that no field of it names a user. A task belongs to a
    key: most methods name no user, and could not find a task that belongs to one."""
    return msgspec.structs.replace(call, body={})


def _check_version(call: Call) -> None:
    """Raises `TaskError` if the client asks for a version of A2A other than 1.0 and 0.3."""
    version = call.headers.get("a2a-version") or call.query.get("A2A-Version", "")
    if version not in _VERSIONS:
        raise TaskError(
            f"the version {version!r:.20} is not spoken here; 1.0 and 0.3 are",
            "VERSION_NOT_SUPPORTED",
        )


_HANDLERS: Mapping[str, Handler] = {
    "rpc": answer_rpc,
    "card": show_card,
    "extended_card": _make_path_handler(show_extended_card),
    "send_message": _make_path_handler(methods.send_message),
    "stream_message": _make_path_handler(methods.stream_message),
    "task": _make_path_handler(methods.get_task),
    "tasks": _make_path_handler(methods.show_tasks),
    "cancel_task": _make_path_handler(methods.cancel_task),
    "subscribe_task": _make_path_handler(methods.subscribe_to_task),
    "create_push": _make_path_handler(push.create_push),
    "get_push": _make_path_handler(push.get_push),
    "list_push": _make_path_handler(push.list_push),
    "delete_push": _make_path_handler(push.delete_push),
}
"""Purpose of a place → what answers there."""


class A2aApi(Api):
    """A2A: an error before a request was understood is answered as its binding does."""

    def __init__(self) -> None:
        super().__init__(_HANDLERS)

    async def end(self, call: Call, answered: Answered) -> Answered:
        """See `Api`. The task is kept as it is after the run."""
        return await end_task(call, answered)

    def refuse(
        self,
        wire: Wire,  # noqa: ARG002
        error: DragomanError,
        purpose: str,
        media_type: str,
    ) -> ErrorResponse:
        """Answers a request of an A2A client that failed. See `Api`."""
        return a2a.dump_refusal(error, purpose, media_type)
