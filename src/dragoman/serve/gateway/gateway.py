"""A gateway: what a client of any wire asks goes to any provider.

`Gateway.answer` handles a call in steps. It finds the models of the client's name, applies the
gateway's defaults and limits to the request, and opens the seals in the history. `Fitting`, the
innermost middleware, fits the request to the model that is asked in the end.

The answer then passes through small generators: one hides names that a pattern matched, one
reports losses, one holds back what a retry may retract, and one seals what the client keeps.
Each is left out where it has nothing to do, so that a plain stream passes unchanged.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from operator import is_
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman import providers
from dragoman.arguments import expect, expect_sequence
from dragoman.errors import AuthenticationError, InvalidRequestError, SettingsError
from dragoman.event import Event
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss, refusal_error
from dragoman.media_request import MediaKind, MediaRequest
from dragoman.message import Message
from dragoman.model.access import Key
from dragoman.model.agent_models import Models
from dragoman.model.middleware import Middleware
from dragoman.model.resolve_model import default_transport
from dragoman.model.tokens import TokenCount
from dragoman.model_profile import ModelProfile
from dragoman.request import EmbeddingsRequest, ModelRequest, OnLoss, Settings
from dragoman.result import BatchEmbeddingsResult, ModelInfo
from dragoman.serve.accounts.payer import note_asked
from dragoman.serve.core.answer_record import Record
from dragoman.serve.core.call import Call
from dragoman.serve.core.request_fields import (
    admit_fields,
    embedding_losses,
    limit_candidates,
    without_lengths,
)
from dragoman.serve.core.turn import Turn
from dragoman.serve.gateway.ask_media import ask_media
from dragoman.serve.gateway.count_tokens import count_tokens
from dragoman.serve.gateway.fit_request import ClientCopy, Fitting, is_uncarried, with_losses
from dragoman.serve.gateway.gateway_file import load_gateway
from dragoman.serve.gateway.offers import OfferedModels, match_name, providers_of, read_offers
from dragoman.serve.gateway.show_answer import (
    hide_unlisted,
    make_not_found_error,
    seal_answer,
    show_final,
)
from dragoman.serve.gateway.upstreams import Listings, Upstreams
from dragoman.serve.seals.open_messages import open_messages
from dragoman.transport import AiohttpTransport, Recorder, Retry, Transport
from dragoman.wires.serving import get_serving
from dragoman.wires.wire import Wire

if TYPE_CHECKING:
    # cryptography, which few need
    from dragoman.serve.seals.token_encryption import Sealer

__all__ = ["Gateway"]


_Remembered = Literal["nothing", "uncarried", "all"]
_NEEDED = {"nothing": None, "uncarried": is_uncarried, "all": None}
_NEUTRAL_METADATA = ("usage_estimated",)
"""What is said of vectors whatever the provider."""


class Gateway:
    """Which models clients may ask for, and where these are. It is a `Backend`."""

    edits = True
    """The conversation is the client's."""
    detaches = False
    """What nobody reads any more is not paid for, unless its client asks for it in the
    background."""
    working_memories = ()
    """Models have none."""
    has_threads_in_memory = False
    """Models have no threads."""

    def __init__(
        self,
        models: OfferedModels,
        *,
        keys: Mapping[str, Key] = {},
        base_urls: Mapping[str, str] = {},
        transport: Transport | None = None,
        environment: Mapping[str, str] | None = None,
        on_loss: OnLoss | str = "tell",
        settings: Settings | None = None,
        max_tokens: int | None = None,
        retries: int | None = None,
        middleware: Sequence[Middleware] = (),
        references: bool = False,
        provider_store: bool = False,
        record: Path | str | None = None,
        seal_key: str | bytes | Sequence[str | bytes] | None = None,
        longest_call_id: int = 0,
    ) -> None:
        """Args:
            models: the name that a client asks for → a model string, a provider's record, or several of them as a fallback; or a list
                of model strings that clients ask for as they are. A `*` stands for any characters: `["openai:gpt-*"]`,
                `{"gpt-*": "openai:gpt-*"}`. A model string without one gets every name that fits: `{"claude-*": "openai:gpt-5"}`.
                Names without a `*` go first, then names whose model has one too, then the others, in the order given.
            keys: provider → its key, or a function that gives it; else it is found in the environment.
            base_urls: provider → where it is, if that is elsewhere.
            transport: how requests go; left out, by HTTP with retries.
            environment: variables that go before those of the process.
            on_loss: what to do where a provider cannot be told all that a client asks: `tell` leaves it out and names it in the header
                `dragoman-loss`; `refuse` answers with an error that names it.
            settings: stand in where a request says nothing; `cache` where a client of another API
                marks nothing for the cache.
            max_tokens: most tokens of an answer, whatever a request says.
            retries: how often a failed request is sent again at most.
            middleware: around every request to a provider, the first outermost.
            references: pass on what names things kept in a provider's account, such as `previous_response_id`. All clients share
                that account, and who guesses a name reads what is another's.
            provider_store: whether providers that store conversations, as OpenAI's Responses API does, may store those of other APIs'
                clients. Clients of the same API say it themselves.
            record: a folder in which each exchange with a provider is written for `dragoman.testing`'s player, without keys.
            seal_key: seals what a provider signed, so that clients of other formats keep it and bring it back with their history; 16
                random bytes or more, or several of them, the newest first: all open what was sealed. Left out, nothing is sealed.
            longest_call_id: characters of a call's id in which what is sealed may stand too, for clients that bring back nothing but ids; as
                long as theirs may be. 0: an id is never longer than its provider made it.

        Raises:
            SettingsError: a name, a model or a setting cannot be used.
            TypeError: an argument is of another type.
        """
        if on_loss not in ("tell", "refuse"):
            raise SettingsError(
                f'Gateway(on_loss={on_loss!r}) is unknown; it is "tell" or "refuse"'
            )
        expect("settings", settings, Settings, type(None))
        if max_tokens is not None and max_tokens < 1:
            raise SettingsError(f"Gateway(max_tokens={max_tokens}) must be 1 or more")
        if retries is not None and retries < 0:
            raise SettingsError(f"Gateway(retries={retries}) must be 0 or more")
        expect("longest_call_id", longest_call_id, int)
        if longest_call_id < 0 or (longest_call_id and seal_key is None):
            raise SettingsError(
                f"Gateway(longest_call_id={longest_call_id}) must be 0 or more, and seal_key=… must be there for an id to hold anything"
            )
        layers = expect_sequence("middleware", middleware, "functions")
        offers = read_offers(models)
        self._patterns = offers.patterns
        self._upstreams = Upstreams(
            _make_transport(transport, record),
            keys=keys,
            base_urls=base_urls,
            environment=environment,
            middleware=layers,
        )
        self._models, self._catch_alls = (
            {name: self._upstreams.models(choice) for name, choice in named.items()}
            for named in (offers.names, offers.catch_alls)
        )
        choices = [*offers.names.values(), *offers.catch_alls.values(), *offers.patterns]
        self._upstreams.check_unused(providers_of(choices))
        self._listings = Listings(self._upstreams)
        self._is_plain, self._stores = not layers, provider_store
        if on_loss == "tell":
            self._on_loss: OnLoss = "tell"
        else:
            self._on_loss = "error"
        self._settings, self._max_tokens, self._retries = (
            settings or Settings(),
            max_tokens,
            retries,
        )
        self._defaults = msgspec.structs.replace(self._settings, cache=None)
        self.references = references
        """Whether names of what a provider keeps are passed on to it."""
        self._remembered: dict[str, _Remembered] = {}
        self._sealer = _make_sealer(seal_key)
        self._longest_id = longest_call_id

    @classmethod
    def from_toml(
        cls,
        path: Path | str,
        *,
        transport: Transport | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Gateway:
        """Makes a gateway as a TOML file says it: see `load_gateway`.

        Raises:
            SettingsError: the file cannot be read, or what it says cannot be used; with the line and the name of the entry.
        """
        return load_gateway(cls, path, transport=transport, environment=environment)

    @property
    def names(self) -> Sequence[str]:
        """Returns the model names that clients of the gateway may ask for. A `*` stands for any
        characters."""
        patterns = [f"{pattern.before}*{pattern.after}" for pattern in self._patterns]
        return [*self._models, *patterns, *self._catch_alls]

    async def models(self) -> Sequence[ModelInfo]:
        """Returns the names that clients may ask the gateway for; of a pattern those that the
        provider lists, refreshed now and then."""
        # Named models replace listed ones of the same name.
        named = [
            ModelInfo(name, upstream.provider.name, profile=_find_profile(upstream))
            for name, upstream in self._models.items()
        ]
        models = {
            info.name: info for info in [*await self._listings.list_models(self._patterns), *named]
        }
        return list(models.values())

    def find_profile(self, name: str) -> ModelProfile | None:
        """Returns what is known of the first of the gateway's models of a client's name.

        Raises:
            ModelNotFoundError: there are none.
        """
        return _find_profile(self._find_models(name))

    def check_keys(self) -> Mapping[str, AuthenticationError | None]:
        """Returns the error for a key that is missing, or None, for each model that the gateway
        names and each pattern."""
        errors = {
            name: error
            for models in self._all_models()
            for name, error in models.check_keys().items()
        }
        for pattern in self._patterns:
            errors[pattern.model] = self._upstreams.key_error(pattern.provider)
        return errors

    def serves(self, model: str) -> bool:
        """True if the gateway serves this. See `Backend`."""
        return (
            model in self._models
            or any(pattern.string(model) is not None for pattern in self._patterns)
            or self._match_catch_all(model) is not None
        )

    def model_string(self, name: str) -> str:
        """Returns the model string of the gateway's first model that answers to a client's name.

        Raises:
            ModelNotFoundError: there is none.
        """
        return str(self._find_models(name).string)

    def admit(self, call: Call) -> Call:
        """See `Backend`."""
        return call if self.references else admit_fields(call)

    def remembers(self, call: Call, request: ModelRequest) -> bool:  # noqa: ARG002
        """See `Backend`; what the gateway remembers."""
        return self._find_remembered(call.wire) != "nothing"

    def answer(self, call: Call, turn: Turn, record: Record) -> AsyncGenerator[list[Event], None]:
        """Yields through the gateway the provider's answer as it is, calls and all. What a retry or
        a failed model began is left out.

        Raises:
            ModelNotFoundError: there is no such model.
            InvalidRequestError: the request asks for what is not passed on.
        """
        model = self._find_models(turn.model_request.model).chat()
        note_asked(turn.model_request.model)
        record.keep_only(_NEEDED[self._find_remembered(call.wire)])
        request, losses = self._prepare_request(call, turn.model_request)
        sealer, owner = self._sealer, call.caller.id
        recalled, unopened = open_messages(request.messages, call.wire, sealer, owner)
        client = self._read_client_copy(call, turn, recalled)
        is_own = client is not None and model.provider.wire == call.wire.name
        request = request.replace(
            messages=client.request.messages if client is not None and is_own else recalled
        )
        losses = [*losses, *unopened]
        fitting = Fitting(
            request,
            turn.model_request.model,
            client,
            recalled,
            stores=self._stores,
            cache=self._settings.cache,
        )
        events = model.with_innermost(fitting).batches(request.replace(model=model.string))
        # A pattern's model: the provider's error would show a name that the client never
        # sent.
        if turn.model_request.model not in self._models:
            events = hide_unlisted(events, turn.model_request.model)
        if losses or call.losses:
            events = with_losses(events, losses, self._on_loss, call.losses)
        # where one model is asked once, nothing is taken back
        if not self._is_plain or model.fallbacks:
            events = show_final(events)
        if sealer is None:
            return events
        from dragoman.serve.seals.seal_events import Sealing

        return seal_answer(events, Sealing(call.wire, sealer, owner, longest_id=self._longest_id))

    async def count_tokens(self, call: Call, request: ModelRequest) -> TokenCount:
        """Asks the gateway's provider to count tokens. See `Backend`. The first model of a name is
        asked, where its API counts."""
        models = self._find_models(request.model)
        recalled, _ = open_messages(request.messages, call.wire, self._sealer, call.caller.id)
        return await count_tokens(models.chat(), call, request, recalled)

    async def embed(self, call: Call, request: EmbeddingsRequest) -> BatchEmbeddingsResult:
        """Asks the gateway's provider for embeddings. See `Backend`. Options go to a provider of
        the client's wire as they are, and to no other.

        Raises:
            InvalidRequestError: there is no text, or an option that may not be left out.
        """
        if not request.texts:
            raise InvalidRequestError(
                "there is no text to embed; lists of tokens are not taken, since each model has its own"
            )
        model = self._find_models(request.model).embeddings()
        note_asked(request.model)
        options: JsonMap = request.options
        is_own = model.provider.wire == call.wire.name
        losses = list(call.losses)
        if not is_own:
            losses += embedding_losses(request, call.wire.name)
        if losses:
            if self._on_loss == "error" and (refused := refusal_error(losses)) is not None:
                raise refused
            call.observed.losses = losses
        if not is_own:
            options = {}
        purpose = request.purpose or "document"
        result = await model.embed(
            request.texts, purpose, dimensions=request.dimensions, options=options
        )
        return msgspec.structs.replace(
            result, metadata=_metadata_for_client(result.metadata, request.model, is_own=is_own)
        )

    def make_media(
        self, call: Call, media_kind: MediaKind, request: MediaRequest
    ) -> AsyncGenerator[list[Event], None]:
        """Asks the gateway's provider for media. See `Backend`. Of a fallback the first model is
        asked. Options go to a provider of the client's API as they are, and to no other.

        Raises:
            SettingsError: the model makes no such media.
            InvalidRequestError: there is an option that may not be left out.
        """
        note_asked(request.model)
        events = ask_media(
            self._find_models(request.model), call, media_kind, request, on_loss=self._on_loss
        )
        if request.model not in self._models:
            events = hide_unlisted(events, request.model)
        return events

    async def close(self) -> None:
        """Closes the connections."""
        await self._upstreams.transport.close()

    def _find_remembered(self, wire: Wire) -> _Remembered:
        """Returns what the gateway remembers of answers to clients of a wire. Where one provider
        stands behind all models, and its API is the client's, clients have all that there is, but
        for what their libraries do not carry."""
        if (known := self._remembered.get(wire.name)) is not None:
            return known
        behind = [providers.get(pattern.provider) for pattern in self._patterns]
        for models in self._all_models():
            # A model that only makes vectors has no chat.
            with suppress(SettingsError):
                behind += models.chat().providers
        restores = get_serving(wire).request_fields.restores
        remembered: _Remembered = "nothing"
        if len({provider.name for provider in behind}) != 1 or behind[0].wire != wire.name:
            remembered = "all"
        elif restores is not None and restores(behind[0].quirks):
            remembered = "uncarried"
        self._remembered[wire.name] = remembered
        return remembered

    def _read_client_copy(
        self, call: Call, turn: Turn, recalled: tuple[Message, ...]
    ) -> ClientCopy | None:
        """Returns what the gateway's client sent, if that is the whole conversation. `recalled`:
        the conversation as the server has it, its seals opened."""
        if (sent := turn.sent) is None:
            return None
        opened = recalled
        if sent.messages is not turn.model_request.messages:
            opened, _ = open_messages(sent.messages, call.wire, self._sealer, call.caller.id)
        is_exact = len(opened) == len(sent.messages) and all(map(is_, opened, sent.messages))
        if is_exact:
            request = sent
        else:
            request = sent.replace(messages=opened)
        return ClientCopy(request, call.body, is_exact, turn.stored)

    def _prepare_request(
        self, call: Call, request: ModelRequest
    ) -> tuple[ModelRequest, list[Loss]]:
        """Returns the request as the gateway may send it on, and the losses of what no provider is
        asked for.

        Raises:
            InvalidRequestError: it asks for what is not passed on.
        """
        wire = call.wire.name
        request, losses = limit_candidates(request, wire)
        # What the request says wins over the gateway's defaults.
        settings = request.settings.over(self._defaults)
        if self._max_tokens is not None:
            # A number below 1 means no limit to some providers.
            requested = settings.max_tokens or 0
            settings = msgspec.structs.replace(
                settings,
                max_tokens=min(self._max_tokens, requested if requested > 0 else self._max_tokens),
            )
            request = without_lengths(request, wire)
        return request.replace(
            wire=wire, settings=settings, on_loss=self._on_loss, retries=self._retries
        ), losses

    def _find_models(self, name: str) -> Models:
        """Returns the gateway's models of a client's name.

        Raises:
            ModelNotFoundError: there are none.
        """
        if (models := self._models.get(name)) is not None:
            return models
        for pattern in self._patterns:
            if (string := pattern.string(name)) is not None:
                return self._upstreams.cached_models(string)
        if (models := self._match_catch_all(name)) is not None:
            return models
        raise make_not_found_error(name)

    def _match_catch_all(self, name: str) -> Models | None:
        """Returns the models of the first catch-all that fits a client's name, or None."""
        for pattern, models in self._catch_alls.items():
            if match_name(name, pattern) is not None:
                return models
        return None

    def _all_models(self) -> list[Models]:
        """Returns the models of all names but those of patterns, which clients choose."""
        return [*self._models.values(), *self._catch_alls.values()]


def _find_profile(models: Models) -> ModelProfile | None:
    """Returns what is known of the first of the gateway's models of a name. A model that only makes
    vectors has no profile."""
    with suppress(SettingsError):
        return models.chat().find_profile()
    return None


def _metadata_for_client(metadata: JsonMap, model: str, *, is_own: bool) -> Json:
    """Returns what a client reads of what a provider says beside its vectors: the model by the
    client's name for it, and nothing that another API has."""
    metadata_kept = {
        name: value for name, value in metadata.items() if is_own or name in _NEUTRAL_METADATA
    }
    if "model" in metadata_kept:
        return {**metadata_kept, "model": model}
    return metadata_kept


def _make_transport(transport: Transport | None, record: Path | str | None) -> Transport:
    """Returns the gateway's transport. `record`: a folder in which to record every attempt of a
    request; retries then go outside of the recorder. A transport that the caller gives does its own
    retries."""
    if record is None:
        return transport or default_transport()
    if transport is not None:
        return Recorder(transport, record)
    return Retry(Recorder(AiohttpTransport(), record))


def _make_sealer(keys: str | bytes | Sequence[str | bytes] | None) -> Sealer | None:
    """Returns the sealer for the gateway's keys, or None without keys."""
    if keys is None:
        return None
    from dragoman.serve.seals.token_encryption import Sealer

    return Sealer([keys] if isinstance(keys, str | bytes) else keys)
