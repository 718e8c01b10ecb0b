"""One request of a client's, as endpoints and backends see it: `Call`; and what gives its answer: `Backend`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec

from dragoman.codec.serving import Route
from dragoman.errors import AuthenticationError
from dragoman.event import Event
from dragoman.loss import Loss
from dragoman.request import EmbeddingsRequest, ModelRequest
from dragoman.result import BatchEmbeddingsResult, ModelInfo
from dragoman.serve.calls.service import Service
from dragoman.serve.http.callers import Caller
from dragoman.serve.http.connection import Connection
from dragoman.serve.http.observed import Observed
from dragoman.wires.serving import ServedWire
from dragoman.wires.wire import Wire

if TYPE_CHECKING:
    from dragoman.serve.conversations.recalling import Recalled
    from dragoman.serve.conversations.recording import Recording

__all__ = ["Backend", "Call"]


class Call(msgspec.Struct, frozen=True, eq=False):
    """A request of a client's, after its key and its body were checked."""

    service: Service
    """What all calls share."""
    wire: Wire
    """Which the client speaks."""
    route: Route
    """The place of the wire's API that it goes to."""
    caller: Caller
    """Whose it is."""
    path: str
    """Its path from the root of the API's host, with its query: as the wire's `load_request` takes it."""
    query: Mapping[str, str]
    """Its query, the last of each name."""
    headers: Mapping[str, str]
    """Its headers, names in lower case."""
    parameters: Mapping[str, str]
    """What stands in the path in the place of `{model}` and `{id}`."""
    body: Mapping[str, Any]
    """Its JSON; empty where it has none."""
    connection: Connection
    """Where the answer goes."""
    id: str
    """Of this call, as the wire's `envelope` takes it: 32 hexadecimal digits."""
    now: datetime
    """When it came."""
    observed: Observed
    """What metrics and logs say of it."""
    losses: tuple[Loss, ...] = ()
    """What its body had beyond that, and is not passed on."""

    @property
    def served(self) -> ServedWire:
        """The wire with what its routes need."""
        return cast("ServedWire", self.wire)

    def with_id(self, id: str) -> Call:  # noqa: A002 the field's name
        """The same call under another id."""
        return msgspec.structs.replace(self, id=id)


class Backend(Protocol):
    """What stands behind the endpoints: an agent, or a gateway to providers."""

    async def models(self) -> Sequence[ModelInfo]:
        """What a client may name, for lists."""
        ...

    def serves(self, model: str) -> bool:
        """Whether a client may name that."""
        ...

    def check_keys(self) -> Mapping[str, AuthenticationError | None]:
        """Model → the error for a key that is missing, or None."""
        ...

    @property
    def edits(self) -> bool:
        """Whether a client may change what the model said, and what tools gave, in the conversation that it sends back."""
        ...

    @property
    def detaches(self) -> bool:
        """Whether an answer is made to its end although its client left."""
        ...

    @property
    def references(self) -> bool:
        """Whether names of what a provider keeps are passed on to it."""
        ...

    def admit(self, call: Call) -> Call:
        """The call with those fields of its body alone that are passed on.

        Raises:
            InvalidRequestError: it asks for what is not passed on.
        """
        ...

    def remembers(self, call: Call, request: ModelRequest) -> bool:
        """Whether the conversation of a request is looked up and kept, beside what the client may ask for by an id."""
        ...

    def answer(
        self, call: Call, known: Recalled, recording: Recording
    ) -> AsyncGenerator[list[Event], None]:
        """A chat → the events that its client gets, one list for each read. A failure is a `RunError`, last; what is raised ends the call.
        What the client does not get of the answer it gives to `recording`."""
        ...

    async def embed(self, call: Call, request: EmbeddingsRequest) -> BatchEmbeddingsResult:
        """Texts → their vectors.

        Raises:
            DragomanError: there are none.
        """
        ...

    async def close(self) -> None:
        """Gives back what it holds."""
        ...
