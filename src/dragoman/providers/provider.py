"""A provider's record: its URL, wire, key and capabilities.

A `Provider` is data: URL, headers, names of variables, default models, and `quirks`, which only
the wire reads. What takes code is a function in a field, for example `auth` or `discovery`. The
library reads the record and does not compare vendors' names, so that a new provider with a known
wire needs no other code. The other classes here are values of its fields.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Self

import msgspec

from dragoman.capability import Capability
from dragoman.errors import SettingsError
from dragoman.json_bytes import JsonMap
from dragoman.model_profile import ModelProfile
from dragoman.providers.auth import Auth, AuthResponse
from dragoman.providers.media_way import MediaWay
from dragoman.request import HttpRequest
from dragoman.transport.base import Transport

__all__ = ["Calls", "Discovery", "ModelEndpoint", "Provider", "TokenRates"]

_NAME = re.compile(r"[a-z][a-z0-9+.-]*")


class Calls(msgspec.Struct, frozen=True):
    """How a provider reports tool calls, measured on recorded traffic."""

    ids: Literal["given", "given or minted"]
    """Whether it gives each call an id. `given or minted`: not all of its models or versions do;
    dragoman mints the rest."""
    arguments: Literal["in pieces", "whole"]
    """How they come in a stream."""


class TokenRates(NamedTuple):
    """Tokens that a provider counts for parts of a request, measured on recorded requests and their
    usage."""

    request: float = 3
    """Once."""
    message: float = 4
    """For each message."""
    text: float = 1
    """For each token of text as `dragoman.model.tokens.text_tokens` counts them."""
    tools: float = 40
    """Once, where there are tools."""
    tool: float = 3
    """For each tool."""
    schema: float = 1
    """For each token of a tool's JSON."""
    call: float = 10
    """For each call and each result."""
    image: Literal["area", "flat", "tiles"] = "area"
    """By which rule images count."""
    page: float = 500
    """For each page of a document."""
    answer: float = 1
    """For each token of the schema of an answer."""


class ModelEndpoint(msgspec.Struct, frozen=True):
    """The endpoint that serves a model."""

    base_url: str
    """As `Provider.base_url`."""
    quirks: Any = None
    """As `Provider.quirks`."""


Discovery = Generator[HttpRequest, AuthResponse, ModelEndpoint]
"""Yields a request (`path` is the whole URL), is sent its answer, and returns what it found."""


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's record. An OpenAI-compatible provider is one of these and nothing else.

    Raises:
        SettingsError: a name cannot stand before the colon of a model string, or a field has a value of another
            kind that would be read as something else.
    """

    name: str
    """Lower case; what stands before the colon of a model string."""
    display_name: str
    """The name for people, as messages and tables show it."""
    wire: str
    """Name of the wire that it speaks."""
    base_url: str | Callable[[str], Awaitable[str]] | None = None
    """Up to what the wire's paths begin with (`…/v1`). A function of the model's name starts what
    serves it and tells its URL; `None`: the user must give one."""
    by_url: bool = False
    """Whether the URL of what is asked stands in the model's place (`a2a:https://host/agent`): then
    that is the base URL, unless the user gives another."""
    discovery: Callable[[str], Discovery] | None = None
    """The base URL → a flow of requests that finds where, and how, what is there is asked. `None`:
    there, as `quirks` say."""
    base_url_names: Mapping[str, str] = {}
    """Environment variables that may hold another base URL → what their value still lacks of it,
    such as `/v1`."""
    aliases: tuple[str, ...] = ()
    """Other names that may stand before the colon."""
    key_names: tuple[str, ...] = ()
    """Environment variables that may hold the key, first found wins; none: no key is needed. The
    last is the usual one."""
    key_required: bool = True
    """Whether a request without a key is an error (where there are `key_names`)."""
    key_header: str = "authorization"
    """Header that the key goes in."""
    key_prefix: str = "Bearer "
    """What stands before the key in `key_header`."""
    key_kinds: Mapping[str, tuple[str, str]] = {}
    """Beginning of a key → the header that such a key goes in, and what stands before it there. All
    others: as above."""
    auth: Callable[[Mapping[str, str], str | None], Auth | None] | None = None
    """Environment and key, if there is one → how requests are authorised where that takes more than
    a key in a header. `None`, or one that returns `None`: by the key."""
    auth_names: tuple[str, ...] = ()
    """Environment variables that `auth` reads, for the message when there is neither they nor a
    key."""
    headers: Mapping[str, str] = {}
    """Sent with every request."""
    chat_model: str | None = None
    """Default model."""
    embeddings_model: str | None = None
    """Default model for embeddings."""
    embeddings_batch: int = 96
    """Most texts of one request for embeddings."""
    embeddings_characters: int | None = None
    """Most characters of one request for embeddings, all texts together, by what the provider says
    of tokens, one of these being two characters or more. A single longer text goes alone. `None`:
    no limit."""
    embeddings_options: JsonMap = {}
    """Body fields of every request for embeddings, where the caller's options do not say
    otherwise."""
    embeddings_url: str | Callable[[str], Awaitable[str]] | None = None
    """As `base_url`, for embeddings; `None`: the same."""
    media_model: str | None = None
    """Default model for media; `None`: the chat model makes them."""
    media_ways: tuple[MediaWay, ...] = ()
    """The ways in which it makes media, the best one first; none: it makes none."""
    image_model: str | None = None
    """Default model for requests that ask for images alone; `None`: `media_model`."""
    image_options: JsonMap = {}
    """Body fields of every request for images, where the caller's options do not say otherwise."""
    speech_model: str | None = None
    """Default model for speech."""
    voice: str | None = None
    """Default voice for speech. `None`: the provider chooses one."""
    transcription_model: str | None = None
    """Default model for transcripts."""
    models_path: str | None = "/models"
    """Where it lists its models, appended to the base URL (`/../` goes up); `None`: it does not."""
    models: Callable[[], Sequence[str]] | None = None
    """Tells the names of its models where no request is needed for it."""
    capabilities: frozenset[Capability] = frozenset()
    """What its usual models can do while streaming; decides how things are done, not whether."""
    find_missing: Callable[[str], frozenset[Capability]] | None = None
    """The name of a model → the `capabilities` that this model lacks. `None`: all models are
    alike."""
    family: str | Callable[[str], str | None] | None = None
    """The vendor in whose table of model profiles its models are; or a function of the model's name
    that tells it, or `None` for none. `None`: its own name, or for a router the vendor that the
    model's name begins with (`anthropic/claude-opus-5`)."""
    relays: bool = False
    """Whether it is a router that chooses a host for each request: then only the limits and the
    inputs of a model's profile are taken over."""
    profile: ModelProfile | None = None
    """What holds for all of its models, before dragoman's table. `None`: nothing more."""
    orchestrator: Callable[[], Any] | None = None
    """Makes the orchestrator of a run with it (`dragoman.orchestration.StreamingOrchestrator`),
    where the agent is given none. `None`: the one that its capabilities ask for."""
    accumulator: Callable[[], Any] | None = None
    """Makes the accumulator of each message (`dragoman.orchestration.MessageAccumulator`),
    likewise. `None`: the usual one."""
    repeats_itself: bool = False
    """Whether its models are so small that they may say one thing over and over: such an answer is
    ended, with `length`."""
    transport: Transport | None = None
    """How its requests go, in place of the agent's transport; it stays open when the agent is
    closed. `None`: by the agent's."""
    quirks: Any = None
    """Record of the wire's own `Quirks` type: how this provider differs. `None`: not at all."""
    calls: Calls | None = None
    """How it reports the calls of tools. `None`: it calls no tools by itself, or that depends on
    the server."""
    token_rates: TokenRates | None = None
    """By which the tokens of a prompt are estimated. `None`: by the family that the model's name
    tells."""
    priced_as: str | None = None
    """Its id in the prices of `genai-prices`, for endpoints that these do not know, such as a
    proxy. `None`: it has none there."""
    free: Literal["always", "on this machine"] | None = None
    """Whether its models cost nothing: `on this machine` where the base URL is this machine's.
    `None`: they cost."""
    otel_name: str | None = None
    """Its name in OpenTelemetry's conventions (`gen_ai.provider.name`). `None`: they have none, and
    `name` is used."""

    def __post_init__(self) -> None:
        for field in ("aliases", "key_names", "auth_names"):
            names: object = getattr(self, field)
            if isinstance(names, str):
                raise self._record_error(
                    f'{field} must be a tuple of names and is a string; write {field}=("{names}",)'
                )
        for name in (self.name, *self.aliases):
            if not _NAME.fullmatch(name):
                raise self._record_error(
                    f'the provider name "{name}" cannot stand in a model string; write a lower-case letter followed by '
                    "lower-case letters, digits, +, . or -"
                )
        if not isinstance(self.quirks, msgspec.Struct | None):
            raise self._record_error(
                f"quirks must be a record of the wire {self.wire} and is a {type(self.quirks).__name__}; "
                "write quirks=Quirks(…), with the wire's own type, such as dragoman.wires.openai_chat.Quirks"
            )

    def without(self, missing: frozenset[Capability]) -> Self:
        """Returns the provider's record without these capabilities."""
        if not self.capabilities & missing:
            return self
        return msgspec.structs.replace(self, capabilities=self.capabilities - missing)

    def for_model(self, model: str) -> Self:
        """Returns the record with the capabilities of one model. `model`: its name."""
        if self.find_missing is None:
            return self
        return self.without(self.find_missing(model))

    def _record_error(self, what: str) -> SettingsError:
        return SettingsError(f"the record of {self.display_name}: {what}")
