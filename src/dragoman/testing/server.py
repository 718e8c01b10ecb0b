"""`ScriptedServer`: a transport that reads requests and writes answers with the wire's own server
side, in place of the network."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from itertools import count, takewhile
from typing import Any, TypeAlias, cast
from urllib.parse import urlsplit

import anyio.lowlevel
import msgspec

from dragoman import wires
from dragoman.errors import (
    DragomanError,
    InvalidRequestError,
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
)
from dragoman.event import Event, MessageStarted
from dragoman.fold import fold
from dragoman.json_bytes import Json, JsonMap
from dragoman.media_request import MediaKind, MediaRequest
from dragoman.message import Message, Role, Usage
from dragoman.request import EmbeddingsRequest, HttpRequest, ModelRequest
from dragoman.result import BatchEmbeddingsResult, Vector
from dragoman.testing.scripted_answer import (
    Answer,
    AnswerFunction,
    ScriptedResponse,
    as_answer,
    deliver,
    live_events,
    make_events,
)
from dragoman.testing.scripted_media import (
    MediaFunction,
    find_media_kind,
    load_media_request,
    write_media,
)
from dragoman.testing.wire.bench import split_bytes
from dragoman.transport.base import Response
from dragoman.transport.exchange import Exchange
from dragoman.transport.player import Player
from dragoman.wires import EmbeddingsWire, Wire

__all__ = ["ScriptedServer", "Vectors"]

_BROKEN = (ProviderConnectionError, ProviderTimeoutError)
"""Errors of a connection without a response."""

Vectors: TypeAlias = Callable[[EmbeddingsRequest], "list[Vector] | DragomanError"]
"""Returns the vectors of an embeddings request, or the error that refuses it."""


class ScriptedServer:
    """A `Transport` that answers as a test says, for any wire.

    ```python server = ScriptedServer(wires.get("openai_chat"), lambda request:
    Message.model("Hello.")) agent = Agent(acme, transport=server, api_key="none") ```

    Args:
        wire: a wire with requests, streams and errors.
        reply: returns the answer to a request: text, a message, an error, an `Answer`, …; plain
            or async. A generator's pieces are sent as they come.
        base_url: the start of all URLs; a request to another URL is an error.
        models: names of models, returned for every GET.
        vectors: returns the vectors of texts, or an error; without it there are no embeddings.
        media: returns the answer to a request for images, speech or a transcript: a part, a text,
            a message or an error; without it there are none.
        piece: bytes per chunk of a response.
        stream: False to answer whole even if a stream is requested.
        remembers: keep answers, and put their conversation before a request that continues one
            by `previous_response_id`.

    Attributes:
        requests: the requests as the wire read them.
        embedded: the embeddings requests.
        media_requests: the requests for media.
        sent: all requests as HTTP had them.
    """

    def __init__(
        self,
        wire: Wire,
        reply: AnswerFunction,
        *,
        base_url: str = "",
        models: Sequence[str] = ("kit-model-1", "kit-model-2"),
        vectors: Vectors | None = None,
        media: MediaFunction | None = None,
        piece: int = 23,
        stream: bool = True,
        remembers: bool = False,
    ) -> None:
        """Creates a scripted server of a provider's API. `reply`: returns the answer to a
        request."""
        self.requests: list[ModelRequest] = []
        self.embedded: list[EmbeddingsRequest] = []
        self.media_requests: list[MediaRequest] = []
        self.sent: list[HttpRequest] = []
        self._open: set[object] = set()
        self._numbers = count(1)
        self._wire = wire
        self._reply = reply
        self._base_url = base_url
        self._models = models
        self._vectors = vectors
        self._media = media
        self._piece = piece
        self._stream = stream
        self._remembers = remembers
        self._stored: dict[str, tuple[Message, ...]] = {}

    @property
    def open(self) -> int:
        """Returns the number of responses that are neither read to their end nor closed."""
        return len(self._open)

    async def send(self, request: HttpRequest) -> Response:
        """See `Transport.send`.

        Raises:
            ProviderConnectionError: the request goes to another base URL, or this error is the
                answer.
        """
        self.sent.append(request)
        # Lists of models may stand beside the path with the API's version.
        expected = _get_host(self._base_url) if request.method == "GET" else self._base_url
        if not request.path.startswith(expected):
            raise ProviderConnectionError(
                f"a request went to {request.path} and must go to {self._base_url}"
            )
        await anyio.lowlevel.checkpoint()
        if request.method == "GET":
            return self._send_json({"data": [{"id": name} for name in self._models]})
        path = request.path[len(self._base_url) :]
        if (
            self._media is not None
            and (media_kind := find_media_kind(self._wire, path)) is not None
        ):
            return self._answer_media(media_kind, request, path, self._media)
        data = request.body
        if not isinstance(data, bytes):
            data = msgspec.json.encode(data)
        body = msgspec.json.decode(data)
        # Which path is for embeddings differs by provider, so every other path is.
        if self._vectors is not None and not self.is_chat(path):
            embeddings = wires.embeddings(self._wire.name)
            if embeddings is not None:
                return self._answer_embeddings(embeddings, body, path, self._vectors)
        headers = {name.lower(): value for name, value in request.headers.items()}
        wanted = self._wire.load_request(body, path=path, headers=headers)
        if (
            self._remembers
            and (response_id := wanted.options.get("previous_response_id")) is not None
        ):
            if response_id not in self._stored:
                unknown = InvalidRequestError(
                    f"Previous response with id '{response_id}' not found."
                )
                return self._respond_scripted(wanted, Answer(content=unknown), 0)
            wanted = _add_stored_messages(wanted, self._stored[response_id])
        self.requests.append(wanted)
        number = next(self._numbers)
        reply = await self._make_reply(wanted)
        if isinstance(reply, Exchange):
            return await Player([reply]).send(request)
        return self._respond_scripted(wanted, as_answer(reply), number)

    async def close(self) -> None:
        """Does nothing: a scripted server holds no connections."""

    async def _make_reply(self, wanted: ModelRequest) -> Any:
        """Returns the server's answer, calling and awaiting functions until there is one. A
        `ProviderError` that one raises is the answer."""
        reply: Any = self._reply
        try:
            # A script may hold a function, and that may return a coroutine.
            while inspect.isawaitable(reply) or (callable(reply) and not isinstance(reply, type)):
                reply = reply(wanted) if callable(reply) else await reply
        except ProviderError as error:
            return error
        return reply

    def _store_answer(self, wanted: ModelRequest, events: Sequence[Event], number: int) -> None:
        """Keeps a conversation for requests that continue it by its id."""
        if not self._remembers:
            return
        conversation = [message for message in wanted.messages if message.role is not Role.SYSTEM]
        self._stored[_make_envelope(wanted, number)["id"]] = (*conversation, *fold(events))

    def is_chat(self, path: str) -> bool:
        """True if a path or URL is one of the API's chat endpoints, by its last word."""
        chats = {
            _get_last_word(route.path)
            for route in getattr(self._wire, "routes", ())
            if route.purpose == "chat"
        }
        return _get_last_word(path) in chats

    def _answer_embeddings(
        self, wire: EmbeddingsWire, body: JsonMap, path: str, vectors: Vectors
    ) -> Response:
        """Answers an embeddings request with the vectors of its texts."""
        wanted = wire.load_request(body, path=path)
        self.embedded.append(wanted)
        made_vectors = vectors(wanted)
        if isinstance(made_vectors, DragomanError):
            return self._respond_scripted(
                ModelRequest(wanted.model), Answer(content=made_vectors), len(self.embedded)
            )
        usage = Usage(input_tokens=len(wanted.texts), total_tokens=len(wanted.texts))
        return self._send_json(
            wire.dump_response(BatchEmbeddingsResult(made_vectors, usage), request=wanted)
        )

    def _answer_media(
        self, media_kind: MediaKind, request: HttpRequest, path: str, media: MediaFunction
    ) -> Response:
        """Answers a request for media as the provider's server."""
        wanted = load_media_request(self._wire, media_kind, request, path)
        self.media_requests.append(wanted)
        made = media(wanted)
        if isinstance(made, DragomanError):
            count = len(self.media_requests)
            return self._respond_scripted(ModelRequest(wanted.model), Answer(content=made), count)
        media_type, data = write_media(self._wire, media_kind, wanted, made)
        headers = {"content-type": media_type}
        return self._open_response(200, headers, deliver(Answer(), data, self._piece))

    def _send_json(self, value: Any) -> Response:
        """Returns the server's successful response with a JSON body."""
        return self._open_response(
            200, {}, deliver(Answer(), msgspec.json.encode(value), self._piece)
        )

    def _open_response(
        self, status: int, headers: Mapping[str, str], pieces: AsyncGenerator[bytes]
    ) -> Response:
        """Returns a response of the server that counts as open until it is read or closed."""
        response = ScriptedResponse(status, headers, pieces, self._open.discard)
        self._open.add(response)
        return response

    def _respond_scripted(self, wanted: ModelRequest, answer: Answer, number: int) -> Response:
        """Returns the response of an answer, or raises the error that breaks the connection."""
        headers = {"x-request-id": f"kit-request-{number}", **answer.headers}
        content, status = answer.content, answer.status or 200
        # Broken connections and bugs in the test are raised; other errors are responses.
        if isinstance(content, Exception) and (
            not isinstance(content, DragomanError) or isinstance(content, _BROKEN)
        ):
            raise content
        if isinstance(content, DragomanError):
            written = self._wire.dump_error(content)
            status, headers = (
                answer.status or content.status or written.status,
                {**written.headers, **headers},
            )
            data = msgspec.json.encode(written.body)
        elif answer.body is not None:
            data = answer.body
        elif isinstance(content, AsyncIterator | Iterator):
            return self._open_response(
                status, headers, self._stream_pieces(wanted, answer, cast("Any", content), number)
            )
        else:
            data = self._write_answer(
                wanted, make_events(content or "", wanted, number), answer, number
            )
        return self._open_response(status, headers, deliver(answer, data, self._piece))

    async def _stream_pieces(
        self,
        wanted: ModelRequest,
        answer: Answer,
        pieces: AsyncIterator[Any] | Iterator[Any],
        number: int,
    ) -> AsyncGenerator[bytes]:
        """Yields the bytes of the server's answer whose pieces come one by one."""
        all_events: list[Event] = []
        encoder = self._wire.encoder(**_make_envelope(wanted, number))
        async with aclosing(live_events(pieces, wanted, number)) as batches:
            async for events in batches:
                all_events += events
                if self._is_streamed(wanted, answer):
                    for piece in split_bytes(b"".join(map(encoder.feed, events)), self._piece):
                        yield piece
        # Also stores the answer, so it is called for streams too.
        data = self._write_answer(wanted, all_events, answer, number)
        if self._is_streamed(wanted, answer):
            data = encoder.close()
        for piece in split_bytes(data, self._piece):
            yield piece

    def _is_streamed(self, wanted: ModelRequest, answer: Answer) -> bool:
        """True if the answer to a request is streamed."""
        if answer.stream is not None:
            return wanted.stream and answer.stream
        return wanted.stream and self._stream

    def _write_answer(
        self, wanted: ModelRequest, events: Sequence[Event], answer: Answer, number: int
    ) -> bytes:
        """Returns the body of the server's answer, streamed or whole."""
        self._store_answer(wanted, events, number)
        envelope = _make_envelope(wanted, number, events)
        if not self._is_streamed(wanted, answer):
            return msgspec.json.encode(self._wire.dump_response(events, **envelope))
        encoder = self._wire.encoder(**envelope)
        return b"".join([*[encoder.feed(event) for event in events], encoder.close()])


def _add_stored_messages(wanted: ModelRequest, stored: tuple[Message, ...]) -> ModelRequest:
    """Returns a request to the scripted server that continues a stored response, with the stored
    conversation before its new messages, as the provider has it."""
    instructions = tuple(takewhile(lambda message: message.role is Role.SYSTEM, wanted.messages))
    return wanted.replace(messages=(*instructions, *stored, *wanted.messages[len(instructions) :]))


def _make_envelope(wanted: ModelRequest, number: int, events: Sequence[Event] = ()) -> Json:
    """Returns id and model of a scripted server's answer: the model that the message names as its
    origin, else the requested one."""
    origins = (
        event.origin
        for event in events
        if isinstance(event, MessageStarted) and event.origin is not None
    )
    return {
        "id": f"kit-{number}",
        "model": next((origin.served_model for origin in origins), None) or wanted.model,
    }


def _get_last_word(path: str) -> str:
    """Returns the operation that a path names: `completions`, `generateContent`."""
    return path.partition("?")[0].rpartition("/")[2].rpartition(":")[2]


def _get_host(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}/" if parts.netloc else ""
