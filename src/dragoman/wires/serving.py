"""What a server uses of a wire beside messages, requests and events: functions and data of its package that only those have that need them.

`Serving`: what any wire may have or lack. `ServedWire`: what a wire has whose routes have the purposes that are named there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from dragoman.codec.agent_card import Abilities, AgentCard
from dragoman.codec.allowed import Allowed
from dragoman.codec.forwarding import Forward
from dragoman.codec.serving import BEARER, ErrorResponse, KeyPlace, Links, RequestFields
from dragoman.errors import DragomanError
from dragoman.interrupt import Interrupt, Resume
from dragoman.loss import Loss
from dragoman.message import Content, Message, ToolCallPart
from dragoman.request import ModelRequest
from dragoman.result import ModelInfo
from dragoman.run_request import RunRequest
from dragoman.wires.wire import StreamEncoder, Wire

__all__ = ["NEEDED", "ServedWire", "Serving", "serving", "stream_form"]

Json = dict[str, Any]


class Serving(NamedTuple):
    """What a wire may have for a server, each under its name in the wire's package."""

    keys: Sequence[KeyPlace] = BEARER
    """Where its clients put their key."""
    bodies: Mapping[str, Mapping[str, Any]] = {}
    """Path of a route → JSON Schema of what clients send there."""
    request_fields: RequestFields = RequestFields()
    """What is known of its further request fields."""
    allowed: Allowed | None = None
    """Fields of its requests that a gateway passes on; `None`: all."""
    forward: Forward | None = None
    """How a client's body goes to a provider of the same API as it is; `None`: it is read and written again."""
    adapt: Callable[[ModelRequest, Mapping[str, Any], list[Loss]], Mapping[str, Any]] | None = None
    """A request and its verbatim body → the body for a model that the client did not name, by what the API's documentation says; what that
    changes is added to the losses."""
    restores: Callable[[Any], bool] | None = None
    """By a vendor's quirks, whether it demands back what the API's libraries have no field for; `None`: none does."""
    unstored: Mapping[str, Any] = {}
    """Options by which a provider keeps nothing of a request in its account."""
    stream_headers: Mapping[str, str] = {}
    """Headers of a streamed answer, beside its type."""
    id_header: str = "x-request-id"
    """Header in which its clients look for the id of a request, in lower case."""
    dump_idle: Callable[..., Json | None] | None = None
    """A body, its path and `now=` → the answer to a request that asks the model for nothing; `None`: it asks for something."""
    nothing_runs: int | None = None
    """Status for a client that wants to go on reading where nothing runs; `None`: there is no such thing here."""
    dump_refusal: Callable[[DragomanError, str, str], ErrorResponse] | None = None
    """An error, the purpose of its place and the media type of what was sent → the answer, before a request is understood; else it is
    `dump_error`."""
    links: Callable[[ModelRequest], Links] | None = None
    """What a request says of answers that are kept."""
    is_lasting: Callable[[Message], bool] | None = None
    """Whether a system text of a request belongs to its conversation, for who goes on by an id; else it is for one answer."""
    item_references: Callable[[Mapping[str, Any]], list[tuple[int, str]]] | None = None
    """A body → place and id of each item that it names in place of sending it."""
    items_by_id: Callable[[Mapping[str, Any]], dict[str, Json]] | None = None
    """A whole answer → its items by their ids."""
    with_items: Callable[[Mapping[str, Any], Mapping[int, Mapping[str, Any]]], Json] | None = None
    """A body and items → the body with each in its place."""
    dump_seal: Callable[[str], Content] | None = None
    """A server's token → the piece in which a client keeps it."""
    load_seal: Callable[[Content], str | None] | None = None
    """A piece → the token that it may hold."""
    dump_call_seal: Callable[[str, ToolCallPart], ToolCallPart] | None = None
    """A token and a call → the call in which a client keeps it."""
    load_call_seal: Callable[[ToolCallPart], tuple[str, ToolCallPart] | None] | None = None
    """A call → the token that it may hold, and the call without it."""
    dump_interrupt: Callable[[Interrupt], Content | None] | None = None
    """What a run waits for → the API's own piece for it; `None`: it has none, and a reserved tool is called."""
    load_interrupt: Callable[[Content], Interrupt | None] | None = None
    """Such a piece, as clients send it back → what waits."""
    load_resume: Callable[[Content], Resume | None] | None = None
    """A piece of a client's → its answer to what waits."""
    regenerated: Callable[[RunRequest], str | None] | None = None
    """The id of the message that is to be made anew; empty: the last answer; `None`: none is."""
    envelope_again: Callable[..., Json] | None = None
    """The `envelope` of a stream that a client reads again from its beginning."""


def serving(wire: object) -> Serving:
    """Returns what a wire has of it, computed once a wire."""
    try:
        return _serving(wire)
    except TypeError:  # it has no hash
        return _serving.__wrapped__(wire)


@lru_cache(256)
def _serving(wire: object) -> Serving:
    return Serving(**{name: getattr(wire, name) for name in Serving._fields if hasattr(wire, name)})


NEEDED: Mapping[str, Sequence[str]] = {
    "models": ("dump_models",),
    "model": ("dump_model",),
    "count_tokens": ("dump_token_count",),
    "version": ("dump_version",),
    "response": ("call_id", "with_state"),
    "input_items": ("call_id", "dump_input_items"),
    "delete_response": ("call_id", "dump_deleted"),
    "cancel_response": ("call_id", "with_state"),
    "capabilities": ("dump_capabilities",),
    "card": ("dump_card",),
}
"""Purpose of a route → the functions of its wire that a server calls there, beside those that every wire has."""


def stream_form(wire: Wire, encoder: StreamEncoder) -> tuple[str, bytes]:
    """The media type of a streamed answer, and what keeps it open: the wire's, where its encoder has none of its own."""
    return getattr(encoder, "stream_type", wire.stream_type), getattr(encoder, "ping", wire.ping)


class ServedWire(Wire, Protocol):
    """A wire whose routes have purposes beside a chat: what is named in brackets needs the function."""

    def dump_models(self, models: Sequence[ModelInfo], *, now: datetime) -> Json:
        """All models (`models`)."""
        ...

    def dump_model(self, model: ModelInfo, *, now: datetime) -> Json:
        """One of them (`model`)."""
        ...

    def dump_token_count(self, count: int) -> Json:
        """How many tokens messages are (`count_tokens`)."""
        ...

    def dump_version(self) -> Json:
        """The server's version (`version`)."""
        ...

    def call_id(self, response_id: str) -> str:
        """The id of a stored answer without the prefix of the wire's ids (`response`, and all of such)."""
        ...

    def with_state(
        self, body: Mapping[str, Any], state: str, error: Mapping[str, Any] | None
    ) -> Json:
        """A response that is not completed: `in_progress`, `failed` or `cancelled`; with the body of its error (`response`)."""
        ...

    def dump_input_items(self, messages: Iterable[Message]) -> list[Json]:
        """What a stored answer answers, oldest first; each with an `id` (`input_items`)."""
        ...

    def dump_deleted(self, call_id: str) -> Json:
        """That an answer is forgotten (`delete_response`)."""
        ...

    def dump_capabilities(self, card: AgentCard, abilities: Abilities) -> Json:
        """What an agent can do (`capabilities`)."""
        ...
