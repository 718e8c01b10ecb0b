"""The providers behind a gateway: one way to each, shared by all models there; the models that were
asked for lately, and those that a provider lists."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TypeVar

import anyio

from dragoman import providers
from dragoman.arguments import expect
from dragoman.errors import AuthenticationError, DragomanError, SettingsError
from dragoman.logs import logger
from dragoman.model.access import Access, Key
from dragoman.model.agent_models import Models
from dragoman.model.fallbacks import ModelChoice
from dragoman.model.middleware import Middleware
from dragoman.model.model_list import list_models
from dragoman.profiles.registry import REGISTRY
from dragoman.providers import Provider
from dragoman.result import ModelInfo
from dragoman.runtime import new_id, now
from dragoman.serve.gateway.offers import Pattern
from dragoman.transport import Transport

__all__ = ["Listings", "Upstreams"]

T = TypeVar("T")

_MOST_CACHED = 256
"""Models that are kept of those that clients name by a pattern."""

_LOG = logger("serve.gateway")
_FRESH_SECONDS = 300.0
"""Seconds for which a list holds."""
_RETRY_SECONDS = 30.0
"""Seconds after which a provider is asked again that gave none."""
_WAIT_SECONDS = 5.0
"""Seconds for which a list is waited for."""
_MOST_LISTED = 1000
"""Models of one provider that are listed at most."""


class Upstreams:
    """Makes the models of a gateway. Keys and base URLs are given by provider, else found as
    everywhere."""

    def __init__(
        self,
        transport: Transport,
        *,
        keys: Mapping[str, Key],
        base_urls: Mapping[str, str],
        environment: Mapping[str, str] | None,
        middleware: Sequence[Middleware],
        new_id: Callable[[], str] = new_id,
    ) -> None:
        """Creates the gateway's upstreams, by provider name."""
        self.transport = transport
        self._keys, self._base_urls, self._environment = (
            _resolve_names("keys", keys),
            _resolve_names("base_urls", base_urls),
            environment,
        )
        self._middleware, self._new_id = tuple(middleware), new_id
        self._accesses: dict[str, Access] = {}
        self._cached_models: OrderedDict[str, Models] = OrderedDict()

    def models(self, choice: ModelChoice) -> Models:
        """Returns the upstream chat models behind a gateway's name, in the order of the fallback.

        Raises:
            SettingsError: as `Models`.
        """
        return Models(
            choice,
            transport=self.transport,
            api_key=None,
            base_url=None,
            headers=None,
            environment=self._environment,
            environment_only=False,
            middleware=self._middleware,
            new_id=self._new_id,
            clock=now,
            access_to=self.access,
        )

    def cached_models(self, string: str) -> Models:
        """Returns the upstream models of a model string that a client named, and keeps them for the
        next time.

        Raises:
            SettingsError: as `Models`.
        """
        models = self._cached_models.get(string)
        if models is None:
            models = self._cached_models[string] = self.models(string)
            if len(self._cached_models) > _MOST_CACHED:
                # Clients choose these names, so only the latest are kept.
                self._cached_models.popitem(last=False)
        self._cached_models.move_to_end(string)
        return models

    def access(self, provider: Provider) -> Access:
        """Returns the gateway's shared access to an upstream provider."""
        access = self._accesses.get(provider.name)
        # A record that was registered again replaces the old one.
        if access is None or access.provider is not provider:
            access = self._accesses[provider.name] = Access(
                provider,
                self.transport,
                api_key=self._keys.get(provider.name),
                base_url=self._base_urls.get(provider.name),
                environment=self._environment,
                system=os.environ,
            )
        return access

    def key_error(self, name: str) -> AuthenticationError | None:
        """Returns the error for an upstream provider's missing key, or None."""
        try:
            self.access(providers.get(name)).check_key()
        except AuthenticationError as error:
            return error
        return None

    def check_unused(self, used: set[str]) -> None:
        """Refuses keys and base URLs for providers that nobody can ask for: most often a slip of
        the pen.

        Raises:
            SettingsError: there is one.
        """
        for what, values in (("key", self._keys), ("base URL", self._base_urls)):
            for name in values.keys() - used:
                matches = get_close_matches(name, used, n=1)
                if matches:
                    hint = f"did you mean {matches[0]}?"
                else:
                    hint = f"the models' providers are {', '.join(sorted(used))}"
                raise SettingsError(
                    f"there is a {what} for {name}, and no model of the gateway is there; {hint}"
                )


def _resolve_names(what: str, values: Mapping[str, T]) -> dict[str, T]:
    """Returns the values by the providers' own names, where aliases or other spellings were given.
    `what`: the argument's name."""
    expect(what, values, Mapping, hint=f'give them by their providers: {what}={{"openai": …}}')
    named: dict[str, T] = {}
    for name, value in values.items():
        try:
            own_name = providers.get(name).name
        except SettingsError:
            # The name of a record that is not registered.
            own_name = name
        named[own_name] = value
    return named


class Listings:
    """The lists of providers, by provider."""

    def __init__(self, upstreams: Upstreams, clock: Callable[[], float] = time.monotonic) -> None:
        """Creates the listings. `clock` returns seconds."""
        self._upstreams, self._clock = upstreams, clock
        self._lists: dict[str, tuple[float, Sequence[ModelInfo]]] = {}

    async def list_models(self, patterns: Sequence[Pattern]) -> list[ModelInfo]:
        """Returns what clients may ask for by these patterns, as far as it is known."""
        listed = {pattern.provider: providers.get(pattern.provider) for pattern in patterns}
        async with anyio.create_task_group() as group:
            for provider in listed.values():
                group.start_soon(self._refresh_model_list, provider)
        return [
            info
            for pattern in patterns
            for info in self._match_models(pattern, listed[pattern.provider])
        ]

    def _match_models(self, pattern: Pattern, provider: Provider) -> Iterator[ModelInfo]:
        for info in self._lists[provider.name][1]:
            if (name := pattern.name(info.name)) is not None:
                profile = REGISTRY.find(provider, info.name)
                yield ModelInfo(name, provider.name, info.kinds, info.display_name, profile=profile)

    async def _refresh_model_list(self, provider: Provider) -> None:
        """Asks a provider for its list of models if the kept list is too old."""
        until, before = self._lists.get(provider.name, (0.0, None))
        if before is not None and self._clock() < until:
            return
        defaults = (provider.chat_model, "chat"), (provider.embeddings_model, "embeddings")
        usual = [ModelInfo(name, provider.name, (kind,)) for name, kind in defaults if name]
        # Others who ask meanwhile get the list of before, and no second request is sent.
        self._lists[provider.name] = (
            self._clock() + _RETRY_SECONDS,
            before or usual,
        )
        try:
            with anyio.fail_after(_WAIT_SECONDS):
                models = await list_models(self._upstreams.access(provider))
        except (DragomanError, TimeoutError) as error:
            _LOG.warning("%s does not list its models (%s)", provider.name, type(error).__name__)
            return
        self._lists[provider.name] = (self._clock() + _FRESH_SECONDS, models[:_MOST_LISTED])
