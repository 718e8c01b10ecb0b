"""A scripted server in place of the network: it reads requests and writes answers by the wire's own other half."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import anyio
import msgspec

from dragoman import wires
from dragoman.errors import DragomanError, ProviderConnectionError, StreamCutError
from dragoman.message import Message, Usage
from dragoman.request import EmbeddingsRequest, HttpRequest, ModelRequest
from dragoman.result import BatchEmbeddingsResult, Vector
from dragoman.testing.wire.bench import cut_into, events_of
from dragoman.wires import Wire

__all__ = ["Answer", "ScriptedServer"]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the server answers to one request, and how the answer goes wrong."""

    said: Message | DragomanError | None = None
    """The model's message, or the error that it is refused with; `None`: `body` is all."""
    status: int = 200
    """Of an answer that is a `body`."""
    headers: Mapping[str, str] = {}
    """Sent with it."""
    body: bytes | None = None
    """In place of what the wire would write."""
    wrong: bytes = b""
    """Stands in the middle of what the wire writes, and nothing after it."""
    cut: bool = False
    """The connection breaks in the middle."""
    silent: bool = False
    """Nothing comes after the middle; the connection stands."""


class ScriptedServer:
    """A `Transport` that answers as it is told, for any wire.

    ```python
    server = ScriptedServer(wires.get("openai_chat"), lambda request: Message.model("Hello."))
    agent = Agent(acme, transport=server, api_key="none")
    ```

    Args:
        wire: what it speaks; it must be able to do requests, streams and errors.
        reply: a request → the answer: a message, an error or an `Answer`.
        base_url: what URLs begin with; a request to elsewhere is a fault of the caller's.
        models: the names of its models, which it tells to every GET.
        vectors: a text → its vector. Where it is given, requests are for embeddings.
        piece: how many bytes arrive at a time.

    Attributes:
        requests: the requests as the wire read them.
        embedded: those for embeddings.
        sent: the same as HTTP had them.
        open: answers that are neither read to their end nor closed.
    """

    def __init__(
        self,
        wire: Wire,
        reply: Callable[[ModelRequest], Message | DragomanError | Answer],
        *,
        base_url: str = "",
        models: Sequence[str] = ("kit-model-1", "kit-model-2"),
        vectors: Callable[[str], Vector] | None = None,
        piece: int = 23,
    ) -> None:
        self.requests: list[ModelRequest] = []
        self.embedded: list[EmbeddingsRequest] = []
        self.sent: list[HttpRequest] = []
        self.open = 0
        self._wire = wire
        self._reply = reply
        self._base_url = base_url
        self._models = models
        self._vectors = vectors
        self._piece = piece

    async def send(self, request: HttpRequest) -> _Response:
        """See `Transport.send`.

        Raises:
            ProviderConnectionError: the request goes to another base URL.
        """
        self.sent.append(request)
        place = (
            _host(self._base_url) if request.method == "GET" else self._base_url
        )  # lists may stand beside the API's version
        if not request.path.startswith(place):
            raise ProviderConnectionError(f"a request went to {request.path} and must go to {self._base_url}")
        await anyio.lowlevel.checkpoint()
        if request.method == "GET":
            listing = {"data": [{"id": name} for name in self._models]}
            return _Response(self, 200, {}, msgspec.json.encode(listing), self._piece, Answer())
        body = msgspec.json.decode(
            request.body if isinstance(request.body, bytes) else msgspec.json.encode(request.body)
        )
        path = request.path[len(self._base_url) :]
        if self._vectors is not None:
            return self._embeddings(body, path, self._vectors)
        headers = {name.lower(): value for name, value in request.headers.items()}
        wanted = self._wire.load_request(body, path=path, headers=headers)
        self.requests.append(wanted)
        reply = self._reply(wanted)
        return self._response(wanted, reply if isinstance(reply, Answer) else Answer(said=reply))

    async def close(self) -> None:
        """Nothing is open."""

    def _embeddings(self, body: Mapping[str, Any], path: str, vectors: Callable[[str], Vector]) -> _Response:
        wire = wires.embeddings(self._wire.name)
        if wire is None:
            raise ProviderConnectionError(f"the wire {self._wire.name} has no embeddings")
        wanted = wire.load_request(body, path=path)
        self.embedded.append(wanted)
        reply = self._reply(ModelRequest(wanted.model))
        if isinstance(reply, DragomanError):
            return self._response(ModelRequest(wanted.model), Answer(said=reply))
        usage = Usage(input_tokens=len(wanted.texts), total_tokens=len(wanted.texts))
        made = BatchEmbeddingsResult([vectors(text) for text in wanted.texts], usage)
        data = msgspec.json.encode(wire.dump_response(made, request=wanted))
        return _Response(self, 200, {}, data, self._piece, Answer())

    def _response(self, wanted: ModelRequest, answer: Answer) -> _Response:
        headers = {"x-request-id": f"kit-request-{len(self.requests)}", **answer.headers}
        status = answer.status
        if answer.body is not None:
            data = answer.body
        elif isinstance(answer.said, DragomanError):
            written = self._wire.dump_error(answer.said)
            status, headers = written.status, {**written.headers, **headers}
            data = msgspec.json.encode(written.body)
        else:
            data = self._written(wanted, answer.said or Message.model())
        if answer.wrong:
            data = data[: len(data) // 2] + answer.wrong
        return _Response(self, status, headers, data, self._piece, answer)

    def _written(self, wanted: ModelRequest, message: Message) -> bytes:
        envelope: dict[str, Any] = {"id": f"kit-{len(self.requests)}", "model": wanted.model}
        events = events_of(message)
        if not wanted.stream:
            return msgspec.json.encode(self._wire.dump_response(events, **envelope))
        encoder = self._wire.encoder(**envelope)
        return b"".join([*[encoder.feed(event) for event in events], encoder.close()])


class _Response:
    """A `Response` of the scripted server."""

    def __init__(
        self, server: ScriptedServer, status: int, headers: Mapping[str, str], data: bytes, piece: int, answer: Answer
    ) -> None:
        self.status = status
        self.headers = headers
        self._server = server
        self._answer = answer
        self._pieces = cut_into(data[: len(data) // 2] if answer.cut or answer.silent else data, piece)
        self._open = True
        server.open += 1

    async def read(self) -> bytes:
        """See `Response.read`."""
        if not self._open:
            raise ProviderConnectionError("the answer was closed before this read")
        await anyio.lowlevel.checkpoint()
        piece = next(self._pieces, b"")
        if not piece and self._answer.silent:
            await anyio.sleep_forever()
        if not piece and self._answer.cut:
            raise StreamCutError("the scripted connection breaks here")
        if not piece:
            self._end()
        return piece

    async def close(self) -> None:
        """See `Response.close`."""
        self._end()

    def _end(self) -> None:
        if self._open:
            self._open = False
            self._server.open -= 1


def _host(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/" if parts.netloc else ""
