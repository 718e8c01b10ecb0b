"""What a wire is: a message format that goes both ways. Protocols, which a package of functions
satisfies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from dragoman.codec.history import DumpedRequest
from dragoman.codec.serving import ErrorResponse, Problem, Route
from dragoman.errors import DragomanError
from dragoman.event import Event
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss
from dragoman.message import Content, DataPart, FilePart, Message, Origin
from dragoman.request import Download, EmbeddingsRequest, HttpRequest, ModelRequest, RunRequest
from dragoman.result import BatchEmbeddingsResult

__all__ = ["EmbeddingsWire", "FileWire", "ProtocolWire", "StreamDecoder", "StreamEncoder", "Wire"]


class StreamDecoder(Protocol):
    """A streamed response → events. Never raises for what a provider sent: errors are `RunError`
    events."""

    def feed(self, data: bytes) -> list[Event]:
        """More bytes, cut anywhere → the events that they complete."""
        ...

    def close(self) -> list[Event]:
        """The end of the bytes. A stream that ended too early gives a `RunError` with a
        `StreamCutError`."""
        ...


class StreamEncoder(Protocol):
    """Events → a streamed response."""

    def feed(self, event: Event) -> bytes:
        """One event → the bytes that tell of it (`b""`: none)."""
        ...

    def objects(self, event: Event) -> Sequence[JsonMap]:
        """One event → what `feed` would frame: the JSON objects that tell of it, in order."""
        ...

    def close(self) -> bytes:
        """The end of the events → the last bytes."""
        ...


class _AnyWire(Protocol):
    """What every wire has: its places in a server, its messages, its errors."""

    @property
    def name(self) -> str:
        """By which it is known, and named in records; an attribute."""
        ...

    @property
    def routes(self) -> Sequence[Route]:
        """Where the official API has what; an attribute."""
        ...

    @property
    def stream_type(self) -> str:
        """Media type of a streamed answer; an attribute."""
        ...

    @property
    def ping(self) -> bytes:
        """What keeps a stream open and says nothing; `b""`: the format has no such thing. An
        attribute."""
        ...

    def votes(self, message: Any) -> int:
        """How surely one element of a conversation, as JSON has it, is of this format: 0 it cannot
        be, 1 it could be, 2 it is likely, 3 it is hardly anything else. Never raises."""
        ...

    def load_messages(
        self, payload: Any, *, origin: Origin | None = None, problems: list[Problem] | None = None
    ) -> list[Message]:
        """The part of a request that holds the conversation → messages. `origin` is given to the
        model's messages. With `problems`, an element of the conversation that cannot be read is
        left out and noted there, and the rest is read.

        Raises:
            HistoryError: the payload is not of this format.
        """
        ...

    def load_error(self, status: int, headers: Mapping[str, str], body: bytes) -> DragomanError:
        """An error's response → the exception that says it."""
        ...

    def dump_error(self, error: DragomanError) -> ErrorResponse:
        """An exception → the response that says it: status, headers and body."""
        ...


class Wire(_AnyWire, Protocol):
    """A message format, both ways. Sans-I/O: no sockets, no clock, no randomness. A wire is a
    package with these names.

    `target` is where the result goes: provider, endpoint and model. Signed content is written only
    for a target that reads its origin; without a target, as if for its own origin. `quirks` is the
    wire's own `Quirks` record.
    """

    def envelope(self, request: ModelRequest | None, *, id: str, now: datetime) -> Json:  # noqa: A002
        """What `encoder` and `dump_response` are told beside the events of an answer to `request`,
        by the API's conventions. `id` tells the response from others; the wire gives it its
        prefix."""
        ...

    def dump_messages(
        self,
        messages: Iterable[Message],
        *,
        target: Origin | None = None,
        quirks: Any = None,
        losses: list[Loss] | None = None,
    ) -> Any:
        """Messages → the part of a request that holds the conversation. What the wire cannot hold
        is added to `losses`."""
        ...

    def load_request(
        self,
        body: JsonMap,
        *,
        path: str = "",
        headers: Mapping[str, str] = {},
        origin: Origin | None = None,
        problems: list[Problem] | None = None,
    ) -> ModelRequest:
        """A request's body → the neutral request. `problems`: as for `load_messages`.

        Raises:
            HistoryError: the body is not of this format.
        """
        ...

    def dump_request(
        self,
        request: ModelRequest,
        *,
        target: Origin | None = None,
        quirks: Any = None,
        losses: list[Loss] | None = None,
    ) -> Json:
        """The neutral request → a request's body."""
        ...

    def dump_http(
        self,
        request: ModelRequest,
        *,
        target: Origin | None = None,
        quirks: Any = None,
        losses: list[Loss] | None = None,
        history: DumpedRequest | None = None,
    ) -> HttpRequest:
        """The neutral request → path, headers and body, and the names of tools that were made fit
        (`HttpRequest.names`). `history`, which a wire may lack: what the model knows of earlier
        requests (`codec.history_dump`)."""
        ...

    def load_response(
        self,
        body: bytes | JsonMap,
        *,
        origin: Origin | None = None,
        new_id: Callable[[], str] | None = None,
    ) -> list[Event]:
        """A whole response → the events that its stream would have been."""
        ...

    def dump_response(
        self, events: Iterable[Event], *, losses: list[Loss] | None = None, **envelope: Any
    ) -> Json:
        """Events → a whole response. What it leaves out (choices beyond the first) is added to
        `losses`; `envelope` as for `encoder`."""
        ...

    def decoder(
        self, *, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> StreamDecoder:
        """A decoder of one streamed response; a whole one sent in its place is read too."""
        ...

    def encoder(self, **envelope: Any) -> StreamEncoder:
        """An encoder of one streamed response. `envelope`: what events do not hold (id, model,
        created …), as `envelope` gives it."""
        ...


class ProtocolWire(_AnyWire, Protocol):
    """A format in which agents are asked, both ways, and which has no endpoint of a model. What is
    named as in `Wire` is as there."""

    def envelope(self, request: RunRequest | None, *, id: str, now: datetime) -> Json:  # noqa: A002
        """What `encoder` is told beside the events of a run that answers `request`. `id`: of the
        run."""
        ...

    def dump_messages(
        self,
        messages: Iterable[Message],
        *,
        target: Origin | None = None,
        losses: list[Loss] | None = None,
    ) -> Any:
        """As in `Wire`."""
        ...

    def load_run(
        self,
        body: JsonMap,
        *,
        path: str = "",
        headers: Mapping[str, str] = {},
        origin: Origin | None = None,
        problems: list[Problem] | None = None,
    ) -> RunRequest:
        """What a client asks an agent. What has no field of its own stands in the request's
        `native`.

        Raises:
            HistoryError: the body is not of this format.
        """
        ...

    def dump_run(self, request: RunRequest, *, losses: list[Loss] | None = None) -> Json:
        """What an agent is asked → the body of a request. What the format cannot hold is added to
        `losses`."""
        ...

    def decoder(
        self, *, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> StreamDecoder:
        """A decoder of one streamed run."""
        ...

    def encoder(self, **envelope: Any) -> StreamEncoder:
        """An encoder of one streamed run. `envelope`: as `envelope` gives it."""
        ...


class AgentClient(Protocol):
    """How an agent is asked like a model: the module `client` of a protocol's package, where it has
    one. What is named as in `Wire` is as there."""

    @property
    def name(self) -> str:
        """The wire's; an attribute."""
        ...

    def dump_request(
        self,
        request: ModelRequest,
        *,
        target: Origin | None = None,
        quirks: Any = None,
        losses: list[Loss] | None = None,
    ) -> Json:
        """As in `Wire`. What the agent said before is told as it told it."""
        ...

    def dump_http(
        self,
        request: ModelRequest,
        *,
        target: Origin | None = None,
        quirks: Any = None,
        losses: list[Loss] | None = None,
    ) -> HttpRequest:
        """As in `Wire`."""
        ...

    def decoder(
        self,
        *,
        origin: Origin | None = None,
        new_id: Callable[[], str] | None = None,
        tools: Sequence[str] = (),
    ) -> StreamDecoder:
        """A decoder that tells a streamed run as one message, from its `answer` (an `AgentAnswer`).
        `tools`: names of those that the request has."""
        ...

    def dump_cancel(self, run_id: str, quirks: Any = None) -> HttpRequest | None:
        """The request that ends a run; `None`: it ends with its connection."""
        ...

    def load_error(self, status: int, headers: Mapping[str, str], body: bytes) -> DragomanError:
        """As in `Wire`."""
        ...


@runtime_checkable
class FileWire(Protocol):
    """What a wire has beside all this where its providers hold files that their tools made."""

    def load_files(self, piece: Content) -> list[DataPart | FilePart]:
        """The files that a piece of the model's message tells of, but is not itself."""
        ...

    def dump_download(self, part: FilePart) -> Download:
        """How the provider is asked for a file; paths are relative to its base URL."""
        ...


class EmbeddingsWire(Protocol):
    """The embeddings of a wire, both ways: the module `embeddings` of its package, where it has
    one. Errors with a status are the wire's own `load_error`."""

    def load_request(self, body: JsonMap, *, path: str = "") -> EmbeddingsRequest:
        """A request's body → the neutral request.

        Raises:
            InvalidRequestError: the body is not of this format, or holds no text.
        """
        ...

    def dump_request(self, request: EmbeddingsRequest, *, quirks: Any = None) -> Json:
        """The neutral request → a request's body."""
        ...

    def dump_http(self, request: EmbeddingsRequest, *, quirks: Any = None) -> HttpRequest:
        """The neutral request → path, headers and body."""
        ...

    def load_response(self, body: bytes | JsonMap) -> BatchEmbeddingsResult:
        """A response → its vectors, in the order of the texts.

        Raises:
            ProviderError: an error stands in the place of the vectors; which subclass tells why.
            DecodeError: it holds no vectors.
        """
        ...

    def dump_response(
        self, result: BatchEmbeddingsResult, *, request: EmbeddingsRequest | None = None
    ) -> Json:
        """Vectors → a response to `request`."""
        ...
