"""The models that one agent talks to: of its own provider, and of others in the middle of a
conversation."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from dragoman.errors import AuthenticationError, SettingsError
from dragoman.media_request import MediaKind
from dragoman.model.access import Access, Key
from dragoman.model.chat_model import ChatModel
from dragoman.model.fallbacks import Fallback, ModelChoice, split_choice
from dragoman.model.middleware import Middleware
from dragoman.model.resolve_model import (
    ModelString,
    default_model,
    parse_model_string,
    provider_middleware,
    resolve_model,
)
from dragoman.model_profile import ModelProfile
from dragoman.providers.provider import Provider
from dragoman.providers.registry import REGISTRY
from dragoman.transport.base import Transport

if TYPE_CHECKING:
    from dragoman.model.embeddings_model import EmbeddingsModel
    from dragoman.model.media_endpoint import MediaEndpoint
    from dragoman.model.media_generation import MediaModel

__all__ = ["Models"]


class Models:
    """Makes the models of an agent: each chat model once, and one access per provider. Key, base
    URL and headers are for the agent's own provider only."""

    def __init__(
        self,
        model: ModelChoice | None,
        *,
        transport: Transport,
        api_key: Key | None,
        base_url: str | None,
        headers: Mapping[str, str] | None,
        environment: Mapping[str, str] | None,
        environment_only: bool,
        middleware: Iterable[Middleware],
        new_id: Callable[[], str],
        clock: Callable[[], datetime],
        access_to: Callable[[Provider], Access] | None = None,
        profile: ModelProfile | None = None,
    ) -> None:
        """Creates the models of an agent. `access_to`: returns the access to each provider, if
        several agents share them. `profile`: what the user knows of the own model.

        Raises:
            SettingsError: a model string is malformed, no provider has that name, or two models of a fallback have one.
        """
        self._system: Mapping[str, str] = {} if environment_only else os.environ
        # An empty list is an error of the caller, and reported below.
        choice: ModelChoice
        if model is None or model == "":
            choice = default_model(environment, self._system)
        else:
            choice = model
        first, layer = split_choice(choice)
        self.string, self.provider = resolve_model(first)
        self._transport, self._environment = transport, environment
        self._middleware, self._new_id, self._clock = tuple(middleware), new_id, clock
        self._shared, self._profile = access_to, profile
        self._access = self._new_access(
            self.provider, api_key=api_key, base_url=base_url, headers=headers
        )
        self._accesses: dict[str, Access] = {}
        self._chat: dict[str, ChatModel] = {}
        self._fallbacks = [layer for layer in self._middleware if isinstance(layer, Fallback)]
        self._own: ChatModel | None = None
        if layer or self._fallbacks:
            self._own = self.chat(choice)

    @property
    def name(self) -> str:
        """Returns the full model string of the agent's model: the names that were given, otherwise
        the provider's defaults."""
        string, provider = self.string, self.provider
        chat, embeddings = (
            string.chat or provider.chat_model,
            string.embeddings or provider.embeddings_model,
        )
        return str(ModelString(string.provider, chat, embeddings, string.media))

    def chat(self, model: ModelChoice | None = None) -> ChatModel:
        """Returns the chat model, by default the agent's own. Given several, returns the first with
        the others as fallbacks.

        Raises:
            SettingsError: there is no such provider, it has no default model and none is named, or two models of a fallback have
                one name.
        """
        if model is None and self._own is not None:
            return self._own
        first, layers = None, list[Fallback]()
        if model is not None:
            first, layer = split_choice(model)
            layers += [layer] if layer is not None else []
        first_model = self._make_model(first)
        if not layers and not self._fallbacks:
            if model is None:
                self._own = first_model
            return first_model
        members = self._fallback_models(first_model, [*layers, *self._fallbacks])
        if not layers and not members:
            return first_model
        return first_model.led_by(layers, members)

    def check_keys(self) -> dict[str, AuthenticationError | None]:
        """Returns the error for a key that is missing, or None, for the own model and each of its
        fallbacks."""
        try:
            first = self.chat()
        except SettingsError:  # it only embeds
            return {self.name: _find_key_error(self._access)}
        models = [first, *first.fallbacks.values()]
        return {model.string: _find_key_error(self._access_to(model.provider)) for model in models}

    def _fallback_models(
        self, first: ChatModel, fallbacks: Iterable[Fallback]
    ) -> dict[str, ChatModel]:
        """Returns the agent's models of fallbacks by model string, without the first model."""
        members = {first.string: first}
        for model in [model for layer in fallbacks for model in layer.models]:
            member = self._make_model(model)
            # Two records with one name: requests are routed by model string, and could reach either.
            if members.setdefault(member.string, member).provider is not member.provider:
                raise SettingsError(
                    f"two models of a fallback are called {member.string}: give one provider's record another name"
                )
        del members[first.string]
        return members

    def _make_model(self, model: str | Provider | None) -> ChatModel:
        """Returns the agent's chat model of a model string or record, without fallbacks. Made
        once."""
        string, provider = self._resolve(model)
        name = string.chat
        # `provider` alone means the model that the agent was given, not the provider's default.
        if not name and provider is self.provider:
            name = self.string.chat
        is_own = provider is self.provider and name == self.string.chat
        key = f"{provider.name}:{name}"
        chat_model = self._chat.get(key)
        if chat_model is None or chat_model.provider is not provider:
            chat_model = self._chat[key] = ChatModel(
                provider,
                name,
                transport=self._transport,
                access=self._access_to(provider),
                middleware=self._middleware,
                provider_middleware=provider_middleware(provider),
                others=self._make_model,
                profile=self._profile if is_own else None,
                new_id=self._new_id,
                clock=self._clock,
            )
        return chat_model

    def embeddings(self) -> EmbeddingsModel:
        """Returns the embeddings model of the agent's provider.

        Raises:
            SettingsError: the provider makes no embeddings.
        """
        from dragoman.model.embeddings_model import EmbeddingsModel

        return EmbeddingsModel(
            self.provider, self.string.embeddings, transport=self._transport, access=self._access
        )

    def media_endpoint(
        self, media_kind: MediaKind, model: str | Provider | None = None
    ) -> MediaEndpoint:
        """Returns what makes one kind of media for the agent. `model`: a model string, or a
        provider's record; `None`: the default model of the agent's provider, or for images what its
        model string says.

        Raises:
            SettingsError: there is no such provider, or it has no such endpoint, or no default model.
        """
        from dragoman.model.media_endpoint import MediaEndpoint

        string, provider = self._resolve(model)
        # A model that is named for one request is meant for it.
        name = string.chat if model is not None else None
        if model is not None or media_kind == "images":
            name = string.media or name
        return MediaEndpoint(
            provider,
            media_kind,
            name,
            transport=self._transport,
            access=self._access_to(provider),
            new_id=self._new_id,
            clock=self._clock,
        )

    def media(self, media_types: Sequence[str], model: ModelChoice | None = None) -> MediaModel:
        """Returns the agent's model that makes media of these types, with its fallbacks. `model`:
        in place of the agent's.

        Raises:
            SettingsError: there is no such provider, it makes no such media, or it has no default model.
        """
        from dragoman.model.media_generation import MediaModel, name_media_model

        first = None if model is None else split_choice(model)[0]
        string, provider = self._resolve(first)
        # A model that is named for one run is meant for it, whatever its kind.
        named = string.media or (string.chat if first is not None else None)
        name = name_media_model(provider, media_types, media=named, chat=string.chat)
        if not string.chat and provider.chat_model is None:
            model = str(ModelString(provider.name, name))
        return MediaModel(self.chat(model), media_types, name, self._make_image_model)

    def _make_image_model(self, access: Access, name: str) -> MediaEndpoint:
        """Returns the agent's model for images of the provider that this access reaches."""
        from dragoman.model.media_endpoint import MediaEndpoint

        return MediaEndpoint(
            access.provider,
            "images",
            name,
            transport=self._transport,
            access=access,
            new_id=self._new_id,
            clock=self._clock,
        )

    def access(self, model: str | Provider | None = None) -> Access:
        """Returns the access to a model's provider, by default the agent's own.

        Raises:
            SettingsError: there is no such provider.
        """
        return self._access_to(self._resolve(model)[1])

    def _resolve(self, model: str | Provider | None) -> tuple[ModelString, Provider]:
        """Returns the model string and provider's record of a model; the agent's own record wins
        over a registered one."""
        if model is None:
            return self.string, self.provider
        if (
            isinstance(model, str)
            and (string := parse_model_string(model)).provider == self.provider.name
        ):
            return string, self.provider
        return resolve_model(model)

    def _access_to(self, provider: Provider) -> Access:
        """Returns the agent's access to a provider. Made once."""
        if provider is self.provider:
            return self._access
        access = self._accesses.get(provider.name)
        if access is None or access.provider is not provider:
            access = self._accesses[provider.name] = self._new_access(provider)
        return access

    def _new_access(
        self,
        provider: Provider,
        *,
        api_key: Key | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Access:
        """Returns a new access of the agent to a provider, or the shared one."""
        if self._shared is not None:
            return self._shared(provider)
        clock = self._clock
        # Prices and token rates are found by the provider's name, which is all that an answer has.
        REGISTRY.remember(provider)
        return Access(
            provider,
            self._transport,
            api_key=api_key,
            base_url=base_url,
            headers=headers,
            environment=self._environment,
            system=self._system,
            clock=lambda: clock().timestamp(),
        )


def _find_key_error(access: Access) -> AuthenticationError | None:
    """Returns the error for a missing key of an agent's model, or None."""
    try:
        access.check_key()
    except AuthenticationError as error:
        return error
    # Credentials that cannot be used are no missing key; a request will report them.
    except SettingsError:
        return None
    return None
