"""Finds providers by name or alias: built-in ones, registered ones, and those of plug-ins.

A registry maps each name to a function that loads its record, so that importing dragoman imports
no provider. `get` tries names before aliases, because aliases stand in the records and finding
one loads them all. Entry points are read only if no built-in or registered provider matches.
`find` serves lookups of prices and the like by the name in a stored message; unlike `get` it also
knows records that were passed to an agent without being registered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

from dragoman.errors import SettingsError
from dragoman.providers.provider import Provider

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["BUILT_IN", "ENTRY_POINTS", "REGISTRY", "Registry"]

ENTRY_POINTS = "dragoman.providers"
"""Group of the entry points by which a distribution brings providers: name of the provider → its
record."""

_NAMES = (
    "local",
    "openai",
    "openai-responses",
    "anthropic",
    "vertex-anthropic",
    "bedrock-anthropic",
    "azure-anthropic",
    "google",
    "google-interactions",
    "vertex",
    "azure",
    "azure-responses",
    "mistral",
    "openrouter",
    "together",
    "groq",
    "deepseek",
    "xai",
    "ollama",
    "cohere",
    "bedrock",
    "cerebras",
    "fireworks",
    "perplexity",
    "sambanova",
    "huggingface",
    "bedrock-mantle",
    "bedrock-openai",
    "bedrock-responses",
    "llamacpp",
    "lmstudio",
    "vllm",
    "sglang",
    "openai-compatible",
    "a2a",
    "ag-ui",
)
BUILT_IN: Mapping[str, str] = MappingProxyType(
    {name: f"dragoman.providers.{name.replace('-', '_')}" for name in _NAMES}
)
"""Name of a provider → the module whose `PROVIDER` is its record, imported when first looked up."""

_Loader = Callable[[], Provider]


def _list_entry_points() -> Iterable[EntryPoint]:
    """Returns for the registry the installed entry points of provider plug-ins."""
    # slow to import, and needed for names that are not built in only
    from importlib.metadata import entry_points

    return entry_points(group=ENTRY_POINTS)


class Registry:
    """Providers by name and alias, case-insensitive. Records are loaded when they are looked up.

    Plug-ins are looked for when nothing else has the name; a broken one harms only who asks for it.
    """

    def __init__(
        self,
        built_in: Mapping[str, str] = BUILT_IN,
        plug_ins: Callable[[], Iterable[EntryPoint]] = _list_entry_points,
    ) -> None:
        """Creates the registry of providers: those built in, then those of plug-ins, by name."""
        self._own: dict[str, _Loader] = {
            name: partial(_import_record, module) for name, module in built_in.items()
        }
        self._find_plug_ins = plug_ins
        self._plug_ins: dict[str, _Loader] | None = None
        self._unregistered: dict[str, Provider] = {}

    def register(self, provider: Provider, *, replace: bool = False) -> None:
        """Registers a provider; with `replace` also in the place of one of the same name.

        Raises:
            SettingsError: a name is taken.
        """
        for other in [load() for load in self._own.values()]:
            if (other.name != provider.name or not replace) and (
                taken := _all_names(other) & _all_names(provider)
            ):
                raise SettingsError(
                    f'provider "{provider.name}" cannot be registered: {", ".join(sorted(taken))} is taken by '
                    f"{other.display_name}; choose another name, or pass replace=True to replace a provider of the same name"
                )
        self._own[provider.name] = lambda: provider

    def remember(self, provider: Provider) -> None:
        """Lets `find` return a record that an agent was given without registering it. A registered
        one of the same name wins; `get` never returns it."""
        self._unregistered[provider.name] = provider

    def get(self, name: str) -> Provider:
        """Returns the registered provider with that name or alias.

        Raises:
            SettingsError: there is none, or its plug-in is broken.
        """
        lower_name = name.lower()
        for loaders in self._list_provider_loaders():
            if load := loaders.get(lower_name):
                return load()
            # Aliases stand in the records, so that all have to be loaded: last.
            for provider in map(_try_load, loaders.values()):
                if isinstance(provider, Provider) and lower_name in provider.aliases:
                    return provider
        raise self._unknown_error(name)

    def find(self, name: str) -> Provider | None:
        """Returns the registered provider's record of exactly this name, no alias; `None`: there is
        none, or its plug-in is broken.

        What is known of a provider beyond its own requests (prices, token rates, its name in
        telemetry) is looked up by this, since answers and stored messages hold the name alone.
        """
        for loaders in self._list_provider_loaders():
            if load := loaders.get(name):
                record = _try_load(load)
                return record if isinstance(record, Provider) else None
        return self._unregistered.get(name)

    def providers(self) -> list[Provider]:
        """Returns all providers that can be loaded, each once."""
        return [record for record in self._load_all() if isinstance(record, Provider)]

    def broken(self) -> list[SettingsError]:
        """Returns the errors of plug-ins that cannot be loaded."""
        return [record for record in self._load_all() if isinstance(record, SettingsError)]

    def _list_provider_loaders(self) -> Iterator[Mapping[str, _Loader]]:
        """Yields the loaders of registered providers, then those of plug-ins, which are looked up
        only if needed."""
        yield self._own
        if self._plug_ins is None:
            self._plug_ins = {
                entry.name.lower(): partial(_load_plug_in, entry) for entry in self._find_plug_ins()
            }
        yield self._plug_ins

    def _load_all(self) -> list[Provider | SettingsError]:
        registered, plug_ins = self._list_provider_loaders()
        return [_try_load(load) for load in {**plug_ins, **registered}.values()]

    def _unknown_error(self, name: str) -> SettingsError:
        """Returns the error for a provider name that the registry does not know, with a
        suggestion."""
        from difflib import get_close_matches

        providers = self.providers()
        provider_names = sorted(provider.name for provider in providers)
        family = _name_family(name)
        # A model's name without its provider, such as `gpt-4o`.
        models = [
            f"{provider.name}:{name}"
            for provider in providers
            if family and family == _name_family(provider.chat_model)
        ]
        names = [alias for provider in providers for alias in sorted(_all_names(provider))]
        suggestions = models or get_close_matches(name.lower(), names, n=1)
        message = f'no provider is named "{name}"; there are '
        if suggestions:
            message = f'no provider is named "{name}"; did you mean "{suggestions[0]}"? There are '
        return SettingsError(
            message
            + ", ".join(provider_names)
            + "".join(f"; {error.message}" for error in self.broken())
        )


def _name_family(model: str | None) -> str | None:
    """Returns the first word of a model's name, by which the registry suggests a provider, since
    models of one maker share it: `gpt` of `gpt-4o`."""
    match = re.match(r"[a-z]{3,}(?![a-z/])", (model or "").lower())
    return match and match[0]


def _try_load(load: _Loader) -> Provider | SettingsError:
    """Loads a provider's record for the registry, or returns the error."""
    try:
        return load()
    except SettingsError as error:
        return error


@cache
def _import_record(module: str) -> Provider:
    return import_module(module).PROVIDER


def _load_plug_in(entry: EntryPoint) -> Provider:
    """Returns the provider's record of a plug-in's entry point.

    Raises:
        SettingsError: it cannot be imported or is no record; the message names the distribution.
    """
    where = f'plug-in "{entry.name}" of the distribution {entry.dist.name if entry.dist else "?"} ({entry.value})'
    try:
        provider = entry.load()
    # A module may run anything when it is imported, and even exit.
    except (
        Exception,
        SystemExit,
    ) as error:
        raise SettingsError(
            f"{where} cannot be loaded: {type(error).__name__}: {error}; update or uninstall that distribution"
        ) from error
    if not isinstance(provider, Provider):
        raise SettingsError(f"{where} must be a dragoman Provider, not {type(provider).__name__}")
    if provider.name != entry.name.lower():
        raise SettingsError(
            f'{where} has a provider of another name, "{provider.name}"; the two must be the same'
        )
    return provider


def _all_names(provider: Provider) -> set[str]:
    return {provider.name, *provider.aliases}


REGISTRY = Registry()
"""The process's own registry, which `dragoman.providers.get` and `register` use. The one value that
is shared on purpose: entry points belong to the process too. Who wants another passes a `Registry`,
or a `Provider` where a name is taken."""
