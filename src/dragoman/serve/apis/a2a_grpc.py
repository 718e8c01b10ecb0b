"""A2A over gRPC: each call is the request of JSON-RPC that it stands for, in this process, so that
keys, limits and tasks are the same. Needs the extra `a2a`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.errors import SettingsError
from dragoman.json_bytes import Json, JsonMap
from dragoman.runtime import extra_hint, is_loopback

if TYPE_CHECKING:
    from starlette.applications import Starlette

__all__ = ["Method", "load_methods", "serve_grpc"]

_PATH = "/a2a"
_FORWARDED = ("authorization", "x-api-key", "a2a-version", "a2a-extensions", "dragoman-thread")
"""Metadata of a call that are headers of the request."""
_STATUSES: Mapping[int, str] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "RESOURCE_EXHAUSTED",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}
_MOST_BYTES = 32 * 1024 * 1024


class Method(msgspec.Struct, frozen=True):
    """A method of the service: its messages, as bytes, and the JSON of the method of JSON-RPC that
    it stands for."""

    name: str
    """As in JSON-RPC."""
    request_type: type[Any]
    """The protobuf class of its request."""
    answer_type: type[Any]
    """The protobuf class of its answer, or of each of them."""
    streams: bool
    """Whether it answers with a stream."""

    def read(self, data: bytes) -> Json | None:
        """Returns the parameters of a gRPC request, or None if it is no message of that type, or
        holds what JSON has no form for."""
        from google.protobuf import json_format, message

        request = self.request_type()
        try:
            request.ParseFromString(data)
            return json_format.MessageToDict(request)
        except (message.DecodeError, json_format.Error, ValueError, RecursionError, OverflowError):
            return None

    def write(self, result: Any) -> bytes:
        """Returns the gRPC answer for a result. Fields that the type does not have are left out."""
        from google.protobuf import json_format

        answer = self.answer_type()
        json_format.ParseDict(if_object(result), answer, ignore_unknown_fields=True)
        return answer.SerializeToString()


def load_methods() -> tuple[str, dict[str, Method]]:
    """Returns the gRPC service's name, and its methods by theirs.

    Raises:
        ImportError: a package is missing.
    """
    from a2a.types import a2a_pb2
    from google.protobuf.message_factory import GetMessageClass

    file: Any = a2a_pb2.DESCRIPTOR
    service = file.services_by_name["A2AService"]
    methods: dict[str, Method] = {}
    for method in service.methods:
        types = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
        methods[method.name] = Method(method.name, *types, method.server_streaming)
    return service.full_name, methods


@asynccontextmanager
async def serve_grpc(
    app: Starlette, *, host: str = "127.0.0.1", port: int = 0, grace_seconds: float = 5.0
) -> AsyncGenerator[str]:
    """Serves the agents of `serve.app` over gRPC, and yields the address, which their cards name
    from then on. Use it around `serve_http`, which runs the application.

    Raises:
        SettingsError: a package is missing, the port is taken, or others than this machine could reach it and there are no keys.
    """
    service: Any = app.state.service
    if not service.has_keys and not is_loopback(host):
        raise SettingsError(
            f"{host} can be reached from other machines; give keys that clients must send (auth=)"
        )
    try:
        import grpc

        service_name, methods = load_methods()
    except ImportError as error:
        raise SettingsError(f"A2A over gRPC needs a2a-sdk: {extra_hint('a2a')}") from error
    server: Any = grpc.aio.server(options=[("grpc.max_receive_message_length", _MOST_BYTES)])
    handlers: Json = {}
    for name, method in methods.items():
        if method.streams:
            make_handler: Any = grpc.unary_stream_rpc_method_handler
        else:
            make_handler = grpc.unary_unary_rpc_method_handler
        handlers[name] = make_handler(
            _make_stream_handler(app, method)
            if method.streams
            else _make_unary_handler(app, method)
        )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service_name, handlers),))
    try:
        bound: int = server.add_insecure_port(f"{host}:{port}")
    except RuntimeError as error:
        raise SettingsError(f"{host}:{port} cannot be listened at: {error}") from error
    await server.start()
    service.grpc_address = f"{host}:{bound}"
    try:
        yield service.grpc_address
    finally:
        service.grpc_address = ""
        await server.stop(grace_seconds)


def _make_unary_handler(app: Any, method: Method) -> Any:
    """Returns a gRPC handler that answers one A2A call with a single response."""

    async def call(request: bytes, context: Any) -> bytes:
        """Answers one A2A gRPC call with a single message."""
        pieces: list[bytes] = []
        async with aclosing(_forward_body(app, method, request, context)) as body:
            async for piece in body:
                pieces.append(piece)
        answer = if_object(json_bytes.decode(b"".join(pieces)))
        if "error" in answer:
            await _abort_grpc_call(context, if_object(answer["error"]))
        return method.write(answer.get("result"))

    return call


def _make_stream_handler(app: Any, method: Method) -> Any:
    """Returns a gRPC handler that answers one A2A call with a stream of responses."""

    async def call(request: bytes, context: Any) -> AsyncGenerator[bytes]:
        """Answers one A2A gRPC call with a stream of messages."""
        pending = b""
        async with aclosing(_forward_body(app, method, request, context)) as body:
            async for piece in body:
                *frames, pending = (pending + piece).split(b"\n\n")
                for frame in frames:
                    if frame.startswith(b"data: "):
                        answer = if_object(json_bytes.decode(frame.removeprefix(b"data: ")))
                        yield method.write(answer.get("result"))
        if pending.strip().startswith(b"{"):
            await _abort_grpc_call(
                context, if_object(if_object(json_bytes.decode(pending)).get("error"))
            )

    return call


async def _forward_body(
    app: Any, method: Method, request: bytes, context: Any
) -> AsyncGenerator[bytes]:
    """Yields to the gRPC client the body of the answer, piece by piece. Leaving it means that the
    client has left."""
    params = method.read(request)
    if params is None:
        await _refuse_grpc_call(context, 400)
    data = json_bytes.encode({"jsonrpc": "2.0", "id": 1, "method": method.name, "params": params})
    metadata = {
        key.lower(): value
        for key, value in context.invocation_metadata() or ()
        if isinstance(value, str)
    }
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    headers += [
        (key.encode(), metadata[key].encode("latin-1", "replace"))
        for key in _FORWARDED
        if key in metadata
    ]
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": _PATH, "raw_path": _PATH.encode(), "query_string": b"", "root_path": "", "headers": headers,
        "client": None, "server": ("127.0.0.1", 0), "state": {},
    }  # fmt: skip
    pipe = _Pipe(data)
    work = asyncio.create_task(
        app(scope, pipe.receive, pipe.send), name=f"dragoman-grpc-{method.name}"
    )
    # Also ends the pipe if the application fails before it answers.
    work.add_done_callback(lambda _: pipe.end())
    try:
        while (piece := await pipe.take()) is not None:
            if pipe.status not in (0, 200):
                await _refuse_grpc_call(context, pipe.status)
            yield piece
        if pipe.status not in (0, 200):
            await _refuse_grpc_call(context, pipe.status)
    finally:
        pipe.leave()
        await asyncio.wait([work])


class _Pipe:
    """One request within the process, as ASGI has it."""

    def __init__(self, body: bytes) -> None:
        """Creates the pipe between a gRPC call and the ASGI application. `body`: of the request."""
        self._body: bytes | None = body
        self.client_left = asyncio.Event()
        """The client has left."""
        self.status = 0
        self.pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = asyncio.Event()

    async def receive(self) -> Json:
        """Passes the body of a gRPC call to the ASGI application."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self.client_left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        """Takes the response of the ASGI application for a gRPC call."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif not self.client_left.is_set() and (piece := message.get("body")):
            self._room.clear()
            self.pieces.put_nowait(piece)
            await self._room.wait()

    async def take(self) -> bytes | None:
        """Returns for gRPC the next piece of the answer, or None at its end. The piece before it
        has gone out to the client by then, so no more than one waits here, however slowly the
        client reads."""
        self._room.set()
        return await self.pieces.get()

    def leave(self) -> None:
        """Stops waiting for the client, which has left."""
        self.client_left.set()
        self._room.set()

    def end(self) -> None:
        """Marks the end of the answer."""
        self.pieces.put_nowait(None)


async def _refuse_grpc_call(context: Any, status: int) -> None:
    """Aborts a gRPC call with the gRPC status that matches an HTTP status."""
    import grpc

    name = _STATUSES.get(status, "INTERNAL")
    await context.abort(getattr(grpc.StatusCode, name), f"refused with {status}")


async def _abort_grpc_call(context: Any, error: JsonMap) -> None:
    """Ends a call with an error and its `ErrorInfo`."""
    from a2a.utils.grpc_status import status_to_grpc
    from google.protobuf import any_pb2
    from google.rpc import code_pb2, error_details_pb2, status_pb2  # pyright: ignore[reportMissingTypeStubs]

    from dragoman.wires.a2a import FAULTS

    info = if_object(next(iter(if_list(error.get("data"))), None))
    reason = if_text(info.get("reason"))
    if reason in FAULTS:
        name = FAULTS[reason].grpc
    else:
        name = "INTERNAL"
    status: Any = status_pb2.Status(
        code=code_pb2.Code.Value(name), message=if_text(error.get("message"))
    )
    detail: Any = any_pb2.Any()
    detail.Pack(error_details_pb2.ErrorInfo(reason=reason, domain=if_text(info.get("domain"))))
    status.details.append(detail)
    convert: Any = status_to_grpc
    await context.abort_with_status(convert(status))
