"""One request of a client, as all of the server sees it: `Call`; and the API that it is a call of:
`Api`.

An API's room in `apis/` makes an `Api` of its wire: it says what is done at each place, and what
the API has that others do not. What is the same in all of them stands in `core/`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, cast

import msgspec

from dragoman import json_bytes
from dragoman.codec.serving import ErrorResponse, Route
from dragoman.errors import DragomanError
from dragoman.interrupt import Interrupt, Resume
from dragoman.json_bytes import JsonMap
from dragoman.loss import Loss
from dragoman.message import Content, Message, ToolCallPart, ToolResultPart
from dragoman.request import ModelRequest, RunRequest
from dragoman.serve.core.service import Service
from dragoman.serve.http.call_metrics import Observed
from dragoman.serve.http.callers import Caller
from dragoman.serve.http.connection import Connection
from dragoman.serve.store.stored_answer import Answered
from dragoman.wires.serving import ServedWire
from dragoman.wires.wire import Wire

__all__ = ["Api", "Call", "Handler", "Links"]


class Call(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A request of a client, after its key and its body were checked."""

    service: Service
    """What all calls share."""
    api: Api
    """Whose place it goes to."""
    wire: Wire
    """The format that the client speaks."""
    route: Route
    """The place of the wire's API that it goes to."""
    caller: Caller
    """Whose it is."""
    path: str
    """Path from the root of the API's host, with the query, as the wire's `load_request` takes
    it."""
    query: Mapping[str, str]
    """Fields of the query, the last of each name."""
    headers: Mapping[str, str]
    """Headers, names in lower case."""
    parameters: Mapping[str, str]
    """What the path has in the place of `{model}` and `{id}`."""
    body: JsonMap
    """The JSON; empty if there is none."""
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
        """Returns the call's wire with what a server needs of it."""
        return cast("ServedWire", self.wire)

    @property
    def gives_answers(self) -> bool:
        """True if clients of this API may ask for answers by their ids."""
        return any(route.purpose == "response" for route in self.wire.routes)

    async def respond(self, value: Any, headers: Mapping[str, str] = {}) -> None:
        """Answers with JSON."""
        body = json_bytes.encode(value)
        await self.connection.respond(200, {"content-type": "application/json", **headers}, body)


Handler = Callable[[Call], Awaitable[None]]
"""What is done at a place."""


class Links(msgspec.Struct, frozen=True):
    """What a request says of answers that the server keeps, and the request without it."""

    request: ModelRequest
    """Without the fields that say it, but for `store`, which is said to the provider too."""
    after: str | None = None
    """Id of the call whose answer it goes on from, without the prefix of the wire's ids."""
    conversation: str | None = None
    """Id of the conversation that it belongs to."""
    stored: bool = True
    """Whether the client may ask for the answer later."""
    background: bool = False
    """Whether the client does not wait for the answer."""


class Api:
    """What the server does for clients of one API. Rooms override what their API has
    differently."""

    id_header = "x-request-id"
    """Header in which its clients look for the id of a request, in lower case."""
    drops_parts = False
    """True if a stream can go on after some of what it told was retracted, and its end tells the
    answer without that."""
    stream_headers: Mapping[str, str] = {}
    """Headers of a streamed run, beside its type."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self.handlers = handlers
        """Purpose of a route → what is done there. A route without a handler is not offered."""

    def refuse(
        self,
        wire: Wire,
        error: DragomanError,
        purpose: str,  # noqa: ARG002
        media_type: str,  # noqa: ARG002
    ) -> ErrorResponse:
        """Returns the answer to a request that failed. `purpose`: of its place; `media_type`: of
        what was sent."""
        return wire.dump_error(error)

    async def complete(self, call: Call, *, passes_on: bool) -> Call:  # noqa: ARG002
        """Returns the call with all that its body names. `passes_on`: what is not kept here is left
        to the provider."""
        return call

    def links(self, request: ModelRequest) -> Links:
        """Returns what a request says of answers that are kept."""
        return Links(request)

    async def respond_in_progress(self, call: Call, envelope: JsonMap, state: str) -> None:
        """Answers with an answer that is still being made in the background. `state`: `queued` or
        `in_progress`."""
        raise NotImplementedError("only an API whose requests ask for it gives such answers")

    async def end(self, call: Call, answered: Answered) -> Answered:  # noqa: ARG002
        """Returns the answer of a durable run that is over, with what the API keeps beside it."""
        return answered

    def regenerates(self, request: RunRequest) -> str | None:  # noqa: ARG002
        """Returns the id of the message that is to be made anew; empty: the last answer; None:
        none."""
        return None

    def is_lasting(self, message: Message) -> bool:  # noqa: ARG002
        """True if a system text belongs to its conversation, for clients that go on by an id; else
        it is for one answer."""
        return False

    def answer_keys(self, answered: Answered) -> list[str]:  # noqa: ARG002
        """Returns further keys under which an answer is found."""
        return []

    def dump_interrupt(self, interrupt: Interrupt) -> Content | None:  # noqa: ARG002
        """Returns the API's own piece for what a run waits for; None: a reserved tool is called."""
        return None

    def load_interrupt(self, piece: Content) -> Interrupt | None:  # noqa: ARG002
        """Returns what such a piece, as clients send it back, waits for."""
        return None

    def load_resume(self, piece: Content) -> Resume | None:  # noqa: ARG002
        """Returns a client's answer to what waits, if a piece is one."""
        return None

    def answer_call(
        self,
        piece: Content,  # noqa: ARG002
        calls: Mapping[str, ToolCallPart],  # noqa: ARG002
    ) -> ToolResultPart | None:
        """Returns the result that a piece of a client's stands for, if it answers one of the calls
        that a provider asks about. `calls`: by id."""
        return None
