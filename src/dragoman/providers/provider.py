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
    """The name before the colon of a model string, in lower case."""
    display_name: str
    """The name in messages and tables."""
    wire: str
    """The name of the wire that the provider speaks."""
    base_url: str | Callable[[str], Awaitable[str]] | None = None
    """The URL that the wire's paths are appended to, such as `https://host/v1`. A function gets
    the model's name, starts the server if needed and returns its URL. `None`: the user must pass
    a URL."""
    by_url: bool = False
    """True if a model string holds a URL in place of the model (`a2a:https://host/agent`). That URL
    is the base URL unless the user passes another."""
    discovery: Callable[[str], Discovery] | None = None
    """A function of the base URL. It yields requests that find the endpoint, and returns it.
    `None`: the base URL is the endpoint, with `quirks`."""
    base_url_names: Mapping[str, str] = {}
    """Environment variables that may hold another base URL, each with the suffix to append to its
    value, such as `/v1`."""
    aliases: tuple[str, ...] = ()
    """Other names that are allowed before the colon."""
    key_names: tuple[str, ...] = ()
    """Environment variables that may hold the key. The first that is set wins, and error messages
    name the last. Empty: the provider needs no key."""
    key_required: bool = True
    """True if a request without a key is an error. Only matters with `key_names`."""
    key_header: str = "authorization"
    """The header that carries the key."""
    key_prefix: str = "Bearer "
    """The text before the key in `key_header`."""
    key_kinds: Mapping[str, tuple[str, str]] = {}
    """Keys that go into another header: the first characters of such a key, with its header and the
    text before the key. All other keys use `key_header`."""
    auth: Callable[[Mapping[str, str], str | None], Auth | None] | None = None
    """A function that gets the environment and the key (or None) and returns an `Auth`, for
    providers that need more than a key in a header. If it is `None`, or returns `None`, the key is
    used."""
    auth_names: tuple[str, ...] = ()
    """Environment variables that `auth` reads. The error for a missing key names them."""
    headers: Mapping[str, str] = {}
    """Headers of every request."""
    chat_model: str | None = None
    """The default chat model."""
    embeddings_model: str | None = None
    """The default model for embeddings."""
    embeddings_batch: int = 96
    """The most texts in one request for embeddings."""
    embeddings_characters: int | None = None
    """The most characters in one request for embeddings, over all texts. Providers count tokens, so
    use at most two characters for each token of their limit. A longer text is sent alone. `None`:
    no limit."""
    embeddings_options: JsonMap = {}
    """Body fields of every request for embeddings. The caller's options win."""
    embeddings_url: str | Callable[[str], Awaitable[str]] | None = None
    """The base URL for embeddings. `None`: `base_url`."""
    media_model: str | None = None
    """The default model for media. `None`: the chat model makes them."""
    media_ways: tuple[MediaWay, ...] = ()
    """The ways in which the provider makes media, the best one first. Empty: it makes none."""
    image_model: str | None = None
    """The default model for requests that ask for images only. `None`: `media_model`."""
    image_options: JsonMap = {}
    """Body fields of every request for images. The caller's options win."""
    speech_model: str | None = None
    """The default model for speech."""
    voice: str | None = None
    """The default voice for speech. `None`: the provider chooses one."""
    transcription_model: str | None = None
    """The default model for transcripts."""
    models_path: str | None = "/models"
    """The path of the list of models, appended to the base URL (`/../` goes up). `None`: the
    provider lists no models."""
    models: Callable[[], Sequence[str]] | None = None
    """A function that returns the names of the models, for providers whose list needs no
    request."""
    capabilities: frozenset[Capability] = frozenset()
    """What the provider's usual models can do while streaming. It decides how dragoman does
    something, not whether."""
    find_missing: Callable[[str], frozenset[Capability]] | None = None
    """A function that gets a model's name and returns the `capabilities` that this model lacks.
    `None`: all models are alike."""
    family: str | Callable[[str], str | None] | None = None
    """The vendor in whose table of model profiles the models are listed, or a function that gets a
    model's name and returns that vendor (or None). `None`: the provider itself, or for a router the
    vendor at the start of the model's name (`anthropic/claude-opus-5`)."""
    relays: bool = False
    """True for a router that chooses a host for each request. Then only the limits and inputs of a
    model's profile apply."""
    profile: ModelProfile | None = None
    """What all of the provider's models accept. It comes before dragoman's table. `None`: nothing
    is known."""
    orchestrator: Callable[[], Any] | None = None
    """Makes the orchestrator of a run (`dragoman.orchestration.StreamingOrchestrator`) if the agent
    has none. `None`: the capabilities decide."""
    accumulator: Callable[[], Any] | None = None
    """Makes the accumulator of each message (`dragoman.orchestration.MessageAccumulator`) if the
    agent has none. `None`: the default one."""
    repeats_itself: bool = False
    """True if the provider's models are so small that they may repeat themselves. dragoman ends
    such an answer with `length`."""
    transport: Transport | None = None
    """Sends the provider's requests in place of the agent's transport. It stays open when the agent
    is closed. `None`: the agent's transport."""
    quirks: Any = None
    """How the provider deviates from its wire: a record of the wire's own `Quirks` type. `None`: it
    does not."""
    calls: Calls | None = None
    """How the provider reports tool calls. `None`: it calls no tools by itself, or that depends on
    the server."""
    token_rates: TokenRates | None = None
    """How to estimate the tokens of a prompt. `None`: by the model's family, which its name
    shows."""
    priced_as: str | None = None
    """The provider's id in the prices of `genai-prices`, for endpoints that these do not know, such
    as a proxy. `None`: it has none."""
    free: Literal["always", "on this machine"] | None = None
    """When its models cost nothing: `always`, or `on this machine` if the base URL is this
    machine's. `None`: they cost."""
    otel_name: str | None = None
    """The provider's name in OpenTelemetry's conventions (`gen_ai.provider.name`). `None`:
    `name`."""

    def __post_init__(self) -> None:
        """Checks a provider record. Raises `SettingsError` for a field that is not of the form it
        must have."""
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
        """Returns the provider record without the capabilities that one of its models lacks.
        `model`: the model's name."""
        if self.find_missing is None:
            return self
        return self.without(self.find_missing(model))

    def _record_error(self, what: str) -> SettingsError:
        return SettingsError(f"the record of {self.display_name}: {what}")
