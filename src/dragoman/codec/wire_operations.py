"""What the operations of every wire do the same way around what is its own: conversations and
requests, both ways, and responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

import msgspec

from dragoman.codec.dump_cache import DumpedRequest
from dragoman.codec.dump_with_history import (
    Dumped,
    DumpRules,
    dump_tools_with_history,
    dump_with_history,
)
from dragoman.codec.json_values import check_depth, if_object, read_extra_fields
from dragoman.codec.outgoing_conversation import Outgoing, drop_foreign_options
from dragoman.codec.response_encoder import ResponseEncoder
from dragoman.codec.response_state import join_messages
from dragoman.codec.server_tools import ServerTools, fit_server_tools, read_server_tools
from dragoman.codec.serving import ErrorResponse, Problem
from dragoman.codec.tool_fields import ToolFields, fit_tools
from dragoman.errors import DragomanError
from dragoman.event import Event
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss
from dragoman.message import Message, Origin
from dragoman.request import HttpRequest, ModelRequest, ToolSpec

__all__ = [
    "ConversationFormat",
    "RequestEnvelope",
    "RequestFormat",
    "ResponseFormat",
    "RequestDump",
]

E = TypeVar("E", bound=ResponseEncoder)
Q = TypeVar("Q")
P = TypeVar("P")
O = TypeVar("O", bound=Outgoing[Any])  # noqa: E741 the letter of its bound


def _no_fault(_: JsonMap) -> None:
    return None


class ConversationFormat(msgspec.Struct, Generic[O, P], frozen=True):
    """The conversations of one format, both ways."""

    load: Callable[[Any, Origin | None, list[Problem] | None], list[Message]]
    """(payload, origin, problems) → messages; a payload whose depth is bounded, where no problems
    are noted."""
    outgoing: Callable[[Iterable[Message], Origin | None, Any, list[Loss] | None], O]
    """(messages, target, quirks, losses) → the conversation, ready for its dump."""
    dump: Callable[[O], P]
    """The same → the payload."""

    def load_messages(
        self, payload: Any, *, origin: Origin | None = None, problems: list[Problem] | None = None
    ) -> list[Message]:
        """Converts, as every wire and format does, the part of a request that holds the
        conversation to messages. `origin` is given to the model's. With `problems`, an element that
        cannot be read is left out and noted there.

        Raises:
            HistoryError: the payload is no conversation of this format.
        """
        # With problems, each element is checked by itself, so that one too deep costs only itself.
        if problems is None:
            check_depth(payload)
        return self.load(payload, origin, problems)

    def dump_messages(
        self,
        messages: Iterable[Message],
        *,
        target: Origin | None = None,
        quirks: Any = None,
        losses: list[Loss] | None = None,
    ) -> P:
        """Converts, as every wire and format does, messages to the part of a request that holds the
        conversation. What the format or its target cannot hold is added to `losses`."""
        return self.dump(self.outgoing(messages, target, quirks, losses))


class RequestEnvelope(msgspec.Struct, frozen=True):
    """What stands around the body of a request that is read."""

    path: str
    """Of the HTTP request; empty where it is not known."""
    headers: Mapping[str, str]
    """Of the same."""
    origin: Origin | None
    """For the model's messages."""
    problems: list[Problem] | None
    """Takes what of the conversation cannot be read."""


class RequestDump(msgspec.Struct, Generic[Q], frozen=True):
    """A request on its way out."""

    request: ModelRequest
    """Without options that are fields of another wire."""
    target: Origin | None
    """Who will read it; `None`: nobody yet."""
    quirks: Q
    """What its reader does differently."""
    losses: list[Loss]
    """Grows with what is left out or changed."""
    turn: DumpedRequest | None
    """What the model knows of earlier requests."""

    def conversation(
        self,
        outgoing: Callable[
            [Iterable[Message], Origin | None, Q, list[Loss], Sequence[ToolSpec]], O
        ],
        dump: Callable[[O], Any],
        field: str = "",
        **way: Any,
    ) -> Dumped[O]:
        """Dumps the conversation of the request, as the wire's operation does. `outgoing` prepares
        it; the other arguments are those of `DumpRules`."""
        rules: DumpRules[O] = DumpRules(
            lambda messages, losses, tools: outgoing(
                messages, self.target, self.quirks, losses, tools
            ),
            dump,
            field,
            **way,
        )
        functions = [tool for tool in self.request.tools if isinstance(tool, ToolSpec)]
        return dump_with_history(self.turn, rules, self.request.messages, self.losses, functions)

    def tools(self, out: Outgoing[Any], dump: Callable[[], Sequence[Any]]) -> JsonMap:
        """Returns by the wire's operation the body's field `tools`, or no field if there are no
        tools."""
        return dump_tools_with_history(
            self.turn,
            out,
            self.request.tools,
            lambda: {"tools": tools} if (tools := dump()) else {},
        )[0]


class RequestFormat(msgspec.Struct, Generic[Q], frozen=True):
    """The requests of one format, both ways."""

    name: str
    """The wire's."""
    quirks: Callable[[], Q]
    """Makes the usual ones."""
    load: Callable[[JsonMap, RequestEnvelope], ModelRequest]
    """The body, and what stands around it → the neutral request. The body is bounded in its depth,
    where problems are noted but for its conversation; what a caller gave need not be an object."""
    dump: Callable[[RequestDump[Q]], HttpRequest]
    """The inverse."""
    conversation: tuple[str, ...]
    """Fields of the body that hold the conversation."""
    fault: Callable[[JsonMap], DragomanError | None] = _no_fault
    """(body) → why it cannot be sent."""
    tool_fields: ToolFields = {}
    """Fields of tools that other APIs have too."""
    server_tools: ServerTools = ServerTools()
    """The tools that providers of the API run."""

    def load_request(
        self,
        body: JsonMap,
        *,
        path: str = "",
        headers: Mapping[str, str] = {},
        origin: Origin | None = None,
        problems: list[Problem] | None = None,
    ) -> ModelRequest:
        """Converts, as every wire does, a body, with its path and headers, to the neutral request.
        `problems` as for `load_messages`.

        Raises:
            HistoryError: the body is no request of this format.
        """
        if problems is None:
            check_depth(body)
        else:
            # The conversation's elements are checked one by one where they are read.
            check_depth(read_extra_fields(if_object(body), *self.conversation))
        request = self.load(body, RequestEnvelope(path, headers, origin, problems))
        return read_server_tools(request, self.name, self.server_tools)

    def dump_request(
        self,
        request: ModelRequest,
        *,
        target: Origin | None = None,
        quirks: Q | None = None,
        losses: list[Loss] | None = None,
    ) -> Json:
        """Converts, as every wire does, the neutral request to a body."""
        return cast("Json", self._dump_model_request(request, target, quirks, losses, None).body)

    def dump_http(
        self,
        request: ModelRequest,
        *,
        target: Origin | None = None,
        quirks: Q | None = None,
        losses: list[Loss] | None = None,
        history: DumpedRequest | None = None,
    ) -> HttpRequest:
        """Converts, as every wire does, the neutral request to path, headers and body. `history`:
        what the model knows of earlier requests.

        Raises:
            DragomanError: there is nothing to send.
        """
        http = self._dump_model_request(request, target, quirks, losses, history)
        if (error := self.fault(if_object(http.body))) is not None:
            raise error
        return http

    def _dump_model_request(
        self,
        request: ModelRequest,
        target: Origin | None,
        quirks: Q | None,
        losses: list[Loss] | None,
        turn: DumpedRequest | None,
    ) -> HttpRequest:
        """Dumps a model request to HTTP: drops foreign options, fits tools, then calls the wire's
        own dump."""
        losses = [] if losses is None else losses
        quirks = self.quirks() if quirks is None else quirks
        request = drop_foreign_options(request, self.name, losses)
        request = fit_server_tools(request, self.name, self.server_tools, losses)
        request = fit_tools(request, self.name, self.tool_fields, quirks, losses)
        return self.dump(RequestDump(request, target, quirks, losses, turn))


class ResponseFormat(msgspec.Struct, Generic[E], frozen=True):
    """The responses of one format, as they are written."""

    stream: Callable[[JsonMap], E]
    """(envelope) → the encoder of a streamed one."""
    dump: Callable[[Message, JsonMap], Json]
    """(message, envelope) → a whole one."""
    dump_error: Callable[[DragomanError], ErrorResponse]
    """The wire's."""

    def encoder(self, **envelope: Any) -> E:
        """Returns an encoder of one response. `envelope`: what no event holds, or what is to stand
        in place of it."""
        return self.stream(envelope)

    def dump_response(
        self, events: Iterable[Event], *, losses: list[Loss] | None = None, **envelope: Any
    ) -> Json:
        """Converts, as every wire does, events to a whole response; an error's body where they tell
        of an error. `envelope` as for `encoder`."""
        message = join_messages(events, losses)
        if isinstance(message, DragomanError):
            return self.dump_error(message).body
        return self.dump(message, envelope)
