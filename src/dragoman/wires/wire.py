"""The protocols that wires satisfy. A wire is a message format that dragoman reads and writes.

Usually a wire is a package whose functions are the protocol's methods. `Wire` describes a format
in which models are asked, `ProtocolWire` one in which agents are asked. `AgentClient`, `FileWire`,
`EmbeddingsWire` and `MediaWire` describe what only some wires have.

All of it is sans-I/O: bytes and dictionaries in, values out. The transport sends and receives, so
that the same wire serves as a client, as an endpoint of the server and as a format of histories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from dragoman.codec.dump_cache import DumpedRequest
from dragoman.codec.media_fields import MediaResponse
from dragoman.codec.serving import ErrorResponse, Problem, Route
from dragoman.errors import DragomanError
from dragoman.event import Event
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss
from dragoman.media_request import MediaRequest
from dragoman.message import Content, DataPart, FilePart, Message, Origin
from dragoman.request import Download, EmbeddingsRequest, HttpRequest, ModelRequest, RunRequest
from dragoman.result import BatchEmbeddingsResult

__all__ = [
    "EmbeddingsWire",
    "FileWire",
    "MediaClient",
    "MediaWire",
    "ProtocolWire",
    "StreamDecoder",
    "StreamEncoder",
    "Wire",
]


class StreamDecoder(Protocol):
    """Reads a streamed response into events. Never raises for what a provider sent: errors are
    `RunError` events."""

    def feed(self, data: bytes) -> list[Event]:
        """Returns the events that more bytes complete. The bytes may be cut anywhere."""
        ...

    def close(self) -> list[Event]:
        """Returns the last events. A stream that ended too early gives a `RunError` with a
        `StreamCutError`."""
        ...


class StreamEncoder(Protocol):
    """Writes events as a streamed response."""

    def feed(self, event: Event) -> bytes:
        """Returns the bytes for one event, or `b""` if the format has none for it."""
        ...

    def objects(self, event: Event) -> Sequence[JsonMap]:
        """Returns the JSON objects for one event, in order, before `feed` frames them."""
        ...

    def close(self) -> bytes:
        """Returns the last bytes, after all events."""
        ...


class _AnyWire(Protocol):
    """The part that every wire has: routes on a server, messages, errors."""

    @property
    def name(self) -> str:
        """Returns the wire's name, by which provider records refer to it. An attribute. An
        attribute."""
        ...

    @property
    def routes(self) -> Sequence[Route]:
        """Paths and methods of the official API, with their purposes. An attribute."""
        ...

    @property
    def stream_type(self) -> str:
        """Returns the media type of a streamed response. An attribute."""
        ...

    @property
    def ping(self) -> bytes:
        """Returns bytes that keep a stream open without adding to it, or `b""` if the format has
        none. An attribute."""
        ...

    def votes(self, message: Any) -> int:
        """Returns how surely a decoded JSON message is of this format: 0 impossible, 1 possible,
        2 likely, 3 almost certain. Never raises."""
        ...

    def load_messages(
        self, payload: Any, *, origin: Origin | None = None, problems: list[Problem] | None = None
    ) -> list[Message]:
        """Reads the part of a request that holds the conversation. The model's messages get
        `origin`. With `problems`, a message that cannot be read is left out and noted there, and
        the rest is read.

        Raises:
            HistoryError: the payload is not of this format.
        """
        ...

    def load_error(self, status: int, headers: Mapping[str, str], body: bytes) -> DragomanError:
        """Returns the exception for an error response."""
        ...

    def dump_error(self, error: DragomanError) -> ErrorResponse:
        """Returns the error response for an exception: status, headers and body."""
        ...


class Wire(_AnyWire, Protocol):
    """A message format in which models are asked. Sans-I/O: no sockets, no clock, no randomness.

    `target` says where the result goes: provider, endpoint and model. Signed content is written
    only for a target that reads its origin. Without a target it is written as for its own origin.
    `quirks` is the wire's own `Quirks` record.
    """

    def envelope(self, request: ModelRequest | None, *, id: str, now: datetime) -> Json:  # noqa: A002
        """Returns the arguments of `encoder` and `dump_response` for a response to `request`. `id`
        identifies the response. The wire adds the prefix that its API uses."""
        ...

    def dump_messages(
        self,
        messages: Iterable[Message],
        *,
        target: Origin | None = None,
        quirks: Any = None,
        losses: list[Loss] | None = None,
    ) -> Any:
        """Writes the part of a request that holds the conversation. Adds to `losses` what the
        format cannot hold."""
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
        """Reads the body of a request. `problems`: as for `load_messages`.

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
        """Writes the body of a model request in the wire's format."""
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
        """Writes path, headers and body of a request, and the tool names that had to change
        (`HttpRequest.names`). `history`: what was written for earlier requests
        (`codec.dump_with_history`). A wire may lack that parameter."""
        ...

    def load_response(
        self,
        body: bytes | JsonMap,
        *,
        origin: Origin | None = None,
        new_id: Callable[[], str] | None = None,
    ) -> list[Event]:
        """Reads a whole response into the events that its stream would have given."""
        ...

    def dump_response(
        self, events: Iterable[Event], *, losses: list[Loss] | None = None, **envelope: Any
    ) -> Json:
        """Writes a whole response. Adds to `losses` what it leaves out, such as choices beyond the
        first. `envelope`: as for `encoder`."""
        ...

    def decoder(
        self, *, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> StreamDecoder:
        """Returns a decoder for one streamed response. It also reads a whole one sent instead."""
        ...

    def encoder(self, **envelope: Any) -> StreamEncoder:
        """Returns an encoder for one streamed response. `envelope`: fields that events do not hold
        (id, model, created …), as returned by `envelope`."""
        ...


class ProtocolWire(_AnyWire, Protocol):
    """A format in which agents are asked. It has no endpoint for models. Methods that `Wire` has
    too mean the same here."""

    def envelope(self, request: RunRequest | None, *, id: str, now: datetime) -> Json:  # noqa: A002
        """Returns the arguments of `encoder` for a run that answers `request`. `id`: the run's."""
        ...

    def dump_messages(
        self,
        messages: Iterable[Message],
        *,
        target: Origin | None = None,
        losses: list[Loss] | None = None,
    ) -> Any:
        """Writes the part of a request that holds the conversation, as in `Wire`."""
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
        """Reads what a client asks an agent. Fields without a neutral counterpart go to the
        request's `native`.

        Raises:
            HistoryError: the body is not of this format.
        """
        ...

    def dump_run(self, request: RunRequest, *, losses: list[Loss] | None = None) -> Json:
        """Writes what an agent is asked as the body of a request. Adds to `losses` what the format
        cannot hold."""
        ...

    def decoder(
        self, *, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> StreamDecoder:
        """Returns a decoder for one streamed run."""
        ...

    def encoder(self, **envelope: Any) -> StreamEncoder:
        """Returns an encoder for one streamed run. `envelope`: as returned by `envelope`."""
        ...


class AgentClient(Protocol):
    """Asks an agent like a model: the module `client` of a protocol's package, if it has one.
    Methods that `Wire` has too mean the same here."""

    @property
    def name(self) -> str:
        """Returns the wire's name. An attribute."""
        ...

    def dump_request(
        self,
        request: ModelRequest,
        *,
        target: Origin | None = None,
        quirks: Any = None,
        losses: list[Loss] | None = None,
    ) -> Json:
        """Writes the body of a request. The agent's earlier messages go back as it sent them."""
        ...

    def dump_http(
        self,
        request: ModelRequest,
        *,
        target: Origin | None = None,
        quirks: Any = None,
        losses: list[Loss] | None = None,
    ) -> HttpRequest:
        """Writes path, headers and body of a request, as in `Wire`."""
        ...

    def decoder(
        self,
        *,
        origin: Origin | None = None,
        new_id: Callable[[], str] | None = None,
        tools: Sequence[str] = (),
    ) -> StreamDecoder:
        """Returns a decoder that reads a streamed run as one message. Its attribute `answer` is an
        `AgentAnswer`. `tools`: names of the request's tools."""
        ...

    def dump_cancel(self, run_id: str, quirks: Any = None) -> HttpRequest | None:
        """Returns the request that cancels a run, or None if it ends with its connection."""
        ...

    def load_error(self, status: int, headers: Mapping[str, str], body: bytes) -> DragomanError:
        """Returns the exception for an error response, as in `Wire`."""
        ...


@runtime_checkable
class FileWire(Protocol):
    """A wire whose providers hold files that their tools made."""

    def load_files(self, piece: Content) -> list[DataPart | FilePart]:
        """Returns the files that a piece of the model's message refers to."""
        ...

    def dump_download(self, part: FilePart) -> Download:
        """Returns the requests that fetch a file. Paths are relative to the provider's base URL."""
        ...


class EmbeddingsWire(Protocol):
    """The embeddings of a wire: the module `embeddings` of its package, if it has one. Error
    responses are read by the wire's own `load_error`."""

    def load_request(self, body: JsonMap, *, path: str = "") -> EmbeddingsRequest:
        """Reads the body of an embeddings request.

        Raises:
            InvalidRequestError: the body is not of this format, or holds no text.
        """
        ...

    def dump_request(self, request: EmbeddingsRequest, *, quirks: Any = None) -> Json:
        """Writes the body of a request."""
        ...

    def dump_http(self, request: EmbeddingsRequest, *, quirks: Any = None) -> HttpRequest:
        """Writes path, headers and body of a request."""
        ...

    def load_response(self, body: bytes | JsonMap) -> BatchEmbeddingsResult:
        """Reads the vectors of a response, in the order of the texts.

        Raises:
            ProviderError: the response is an error. The subclass says which.
            DecodeError: it holds no vectors.
        """
        ...

    def dump_response(
        self, result: BatchEmbeddingsResult, *, request: EmbeddingsRequest | None = None
    ) -> Json:
        """Writes vectors as a response to `request`."""
        ...


class MediaClient(Protocol):
    """Asks a provider for media: images, speech or a transcript. The answer is the events of one
    message. Error responses are read by the wire's own `load_error`."""

    def dump_http(self, request: Any, *, quirks: Any = None) -> HttpRequest:
        """Writes path, headers and body of a request of this kind.

        Raises:
            InvalidRequestError: the API cannot be asked this.
        """
        ...

    def decoder(
        self,
        request: Any,
        *,
        media_type: str = "",
        origin: Origin | None = None,
        new_id: Callable[[], str] | None = None,
    ) -> StreamDecoder:
        """Returns a decoder of the answer to a request, whole or streamed. `media_type`: that of
        the answer."""
        ...


class MediaWire(MediaClient, Protocol):
    """An endpoint for media of a wire, both ways: the module `images`, `speech` or `transcription`
    of its package, if it has one."""

    def load_request(self, body: JsonMap, *, path: str = "") -> MediaRequest:
        """Reads the body of a request: JSON, or the fields of a form, in which a file is a
        `DataPart`.

        Raises:
            InvalidRequestError: a field is missing, or cannot be read; it is named.
        """
        ...

    def dump_response(self, message: Message, *, request: Any) -> MediaResponse:
        """Writes a message as the whole answer to a request.

        Raises:
            InvalidRequestError: the answer has no room for it, or needs what the message lacks.
        """
        ...

    def encoder(self, request: Any) -> StreamEncoder:
        """Returns an encoder of the streamed answer to a request. Its attributes `stream_type` and
        `ping` say how the stream is sent."""
        ...
