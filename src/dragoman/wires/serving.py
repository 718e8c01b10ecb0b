"""What a server uses of a wire beside messages, requests and events: functions and data of its
package that only those have that need them.

`Serving`: what any wire may have or lack. `ServedWire`: what a wire has whose routes have the
purposes that are named there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple, Protocol

from dragoman.codec.agent_card import Abilities, AgentCard
from dragoman.codec.allow_list import AllowList
from dragoman.codec.serving import BEARER, Forward, KeyPlace, RequestFields, SealForm
from dragoman.json_bytes import Json, JsonMap
from dragoman.result import ModelInfo
from dragoman.wires.wire import Wire

__all__ = ["NEEDED", "ServedWire", "Serving", "serving", "stream_form"]


class Serving(NamedTuple):
    """What a wire may have for a server, each under its name in the wire's package."""

    keys: Sequence[KeyPlace] = BEARER
    """Where its clients put their key."""
    bodies: Mapping[str, JsonMap] = {}
    """Path of a route → JSON Schema of what clients send there."""
    request_fields: RequestFields = RequestFields()
    """What is known of its further request fields."""
    allowed: AllowList | None = None
    """Fields of its requests that a gateway passes on; `None`: all."""
    forward: Forward | None = None
    """How a client's body goes to a provider of the same API as it is; `None`: it is read and
    written again."""
    seal: SealForm = SealForm()
    """Where its clients keep a token of the server."""


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
    "capabilities": ("dump_capabilities",),
}
"""Purpose of a route → the functions of its wire that a server calls there, beside those that every
wire has."""


def stream_form(wire: Wire, encoder: object) -> tuple[str, bytes]:
    """The media type of a streamed answer, and what keeps it open: the wire's, where its encoder
    has none of its own."""
    return getattr(encoder, "stream_type", wire.stream_type), getattr(encoder, "ping", wire.ping)


class ServedWire(Wire, Protocol):
    """A wire whose routes have purposes beside a chat: what is named in brackets needs the
    function."""

    def dump_models(self, models: Sequence[ModelInfo], *, now: datetime) -> Json:
        """All models (`models`)."""
        ...

    def dump_model(self, model: ModelInfo, *, now: datetime) -> Json:
        """One of them (`model`)."""
        ...

    def dump_token_count(self, count: int) -> Json:
        """How many tokens messages are (`count_tokens`)."""
        ...

    def dump_capabilities(self, card: AgentCard, abilities: Abilities) -> Json:
        """What an agent can do (`capabilities`)."""
        ...
