"""A gateway between a client of any wire and a provider of any other, all in this process: both
ends are the wires' own halves."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from dragoman import serve, wires
from dragoman.event import Event
from dragoman.message import Message
from dragoman.model.chat_model import ChatModel
from dragoman.providers.provider import Provider
from dragoman.request import HttpRequest, ModelRequest
from dragoman.testing import ScriptedModel
from dragoman.transport.base import Response
from support.switching import PROVIDERS

__all__ = ["MODEL", "AsgiTransport", "Ends", "answered", "client_of", "gated"]

MODEL = "gated"
"""The name under which clients ask for the model."""


class AsgiTransport:
    """A `Transport` to an ASGI application, without sockets. Notes what came back."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.sent: list[HttpRequest] = []
        self.headers: list[Mapping[str, str]] = []
        self.bodies: list[bytes] = []
        self.statuses: list[int] = []

    async def send(self, request: HttpRequest) -> Response:
        """Sends a request and waits for the whole answer."""
        self.sent.append(request)
        parts = urlsplit(request.path)
        body = (
            request.body if isinstance(request.body, bytes) else msgspec.json.encode(request.body)
        )
        scope = {
            "type": "http",
            "method": request.method,
            "path": parts.path,
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "headers": [
                (name.lower().encode(), value.encode()) for name, value in request.headers.items()
            ],
            "server": ("127.0.0.1", 80),
            "client": ("127.0.0.1", 9),
            "scheme": "http",
            "root_path": "",
            "http_version": "1.1",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
        }
        scope["headers"] += [(b"host", b"127.0.0.1"), (b"content-length", str(len(body)).encode())]
        messages = [
            {
                "type": "http.request",
                "body": b"" if request.method == "GET" else body,
                "more_body": False,
            }
        ]
        start: dict[str, Any] = {}
        pieces: list[bytes] = []

        async def receive() -> Any:
            if messages:
                return messages.pop()
            return await asyncio.Future()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            elif data := message.get("body"):
                pieces.append(data)

        await self.app(scope, receive, send)
        headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        self.headers.append(headers)
        self.statuses.append(start["status"])
        self.bodies.append(b"".join(pieces))
        return _Answer(start["status"], headers, pieces)

    async def close(self) -> None:
        """Nothing is open."""


class _Answer:
    def __init__(self, status: int, headers: Mapping[str, str], pieces: Sequence[bytes]) -> None:
        self.status, self.headers = status, headers
        self._pieces = list(pieces)

    async def read(self) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""

    async def close(self) -> None:
        self._pieces.clear()


class Ends(msgspec.Struct):
    """Both ends of a gateway."""

    client: ChatModel
    """What a client of it has."""
    transport: AsgiTransport
    """What went between the client and the gateway."""
    upstream: ScriptedModel
    """What the gateway asks."""
    direct: ChatModel
    """The same provider without a gateway."""


def client_of(
    wire: str, app: Any, *, under: bool = True, key: str = "none", name: str = MODEL
) -> tuple[ChatModel, AsgiTransport]:
    """A model whose provider is a server. `under`: at the place of the wire's whole API, not at the
    root. `key`: what it sends as its key. `name`: the model that it asks for."""
    api = wires.get(wire)
    path = api.dump_http(ModelRequest(MODEL, (Message.user("Hi."),), stream=False)).path.partition(
        "?"
    )[0]
    routes = [
        route.path.replace("{model}", MODEL) for route in api.routes if route.purpose == "chat"
    ]
    base = next(route.removesuffix(path) for route in routes if route.endswith(path))
    place = f"http://127.0.0.1/{wire}{base}" if under else f"http://127.0.0.1{base}"
    known = PROVIDERS.get(wire)
    record = Provider(
        name="gate", display_name="Gate", wire=wire, base_url=place, quirks=known and known.quirks
    )
    transport = AsgiTransport(app)
    return ChatModel(
        record, name, transport=transport, headers={"authorization": f"Bearer {key}"}
    ), transport


def gated(
    client: str, upstream: str | Provider, answers: Any, *, store: Any = "memory:", **how: Any
) -> Ends:
    """A client of one wire before a provider of another. `store`: of the application; `how`: of the
    `Gateway`."""
    if isinstance(upstream, str) and upstream in PROVIDERS:
        model = ScriptedModel.like(PROVIDERS[upstream], answers, key_required=False)
    else:
        model = (
            upstream
            if isinstance(upstream, ScriptedModel)
            else ScriptedModel(answers, wire=upstream)
        )
    gateway = serve.Gateway({MODEL: model}, **how)
    chat, transport = client_of(client, serve.app(gateway=gateway, store=store))
    return Ends(chat, transport, model, ChatModel(model, transport=model.transport))


async def answered(model: ChatModel, request: ModelRequest) -> list[Event]:
    """The events of a request."""
    return [event async for event in model.stream(request)]
