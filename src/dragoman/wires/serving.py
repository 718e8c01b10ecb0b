"""The parts of a wire that only a server needs, beside messages, requests and events.

`Serving` holds data that any wire may have or lack. `ServedWire` names the functions that a wire
must have if its routes have certain purposes, such as listing models.
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

__all__ = ["REQUIRED_FUNCTIONS", "ServedWire", "Serving", "get_serving", "get_stream_form"]


class Serving(NamedTuple):
    """Data of a wire for a server. Each field is an attribute that the wire's package may have."""

    keys: Sequence[KeyPlace] = BEARER
    """Headers or parameters in which clients send their key."""
    bodies: Mapping[str, JsonMap] = {}
    """Path of a route → JSON Schema of the body that clients send there."""
    request_fields: RequestFields = RequestFields()
    """Facts about request fields that have no neutral counterpart."""
    allowed: AllowList | None = None
    """Request fields that a gateway passes on. None: all."""
    forward: Forward | None = None
    """Passes a client's body unchanged to a provider of the same API. None: the body is read and
    written again."""
    seal: SealForm = SealForm()
    """Where clients keep a token of the server."""


def get_serving(wire: object) -> Serving:
    """Returns a wire's data for a server. It is collected once per wire."""
    try:
        return _collect_serving(wire)
    except TypeError:
        # A plug-in's wire may be an object without a hash, which the cache cannot hold.
        return _collect_serving.__wrapped__(wire)


@lru_cache(256)
def _collect_serving(wire: object) -> Serving:
    return Serving(**{name: getattr(wire, name) for name in Serving._fields if hasattr(wire, name)})


REQUIRED_FUNCTIONS: Mapping[str, Sequence[str]] = {
    "models": ("dump_models",),
    "model": ("dump_model",),
    "count_tokens": ("dump_token_count",),
    "capabilities": ("dump_capabilities",),
}
"""Purpose of a route → the functions that a server calls there, beside those of every wire."""


def get_stream_form(wire: Wire, encoder: object) -> tuple[str, bytes]:
    """Returns the media type and the ping of a streamed response: the encoder's if it has its own,
    else the wire's."""
    return getattr(encoder, "stream_type", wire.stream_type), getattr(encoder, "ping", wire.ping)


class ServedWire(Wire, Protocol):
    """A wire whose routes have purposes beside a chat. Each function is needed for the purpose in
    brackets."""

    def dump_models(self, models: Sequence[ModelInfo], *, now: datetime) -> Json:
        """Writes the list of models (`models`)."""
        ...

    def dump_model(self, model: ModelInfo, *, now: datetime) -> Json:
        """Writes one model (`model`)."""
        ...

    def dump_token_count(self, count: int) -> Json:
        """Writes the number of tokens of a request (`count_tokens`)."""
        ...

    def dump_capabilities(self, card: AgentCard, abilities: Abilities) -> Json:
        """Writes the capabilities of an agent (`capabilities`)."""
        ...
