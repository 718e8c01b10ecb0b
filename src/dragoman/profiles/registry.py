"""Finds the profile of a model, from all that is known of it.

Who knows more about a model goes before who knows less, field by field: the user (`register`,
`load`), an error that the provider answered with (`learn`), the provider's list of its models
(`note_listed`), the provider's record, dragoman's table. What nobody tells stays unknown.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic

from dragoman import providers
from dragoman.errors import SettingsError
from dragoman.model_profile import EMPTY, ModelProfile
from dragoman.profiles.profile_table import BASE, ProfileTable, load_shipped
from dragoman.providers import Provider
from dragoman.providers.model_string import parse_model_string

__all__ = ["REGISTRY", "VARIABLE", "ProfileRegistry"]

VARIABLE = "DRAGOMAN_PROFILES"
"""Environment variable that names the user's own files, separated as in `PATH`."""
_VENDORS = {
    "deepseek-ai": "deepseek",
    "mistralai": "mistral",
    "qwen": "alibaba",
    "x-ai": "xai",
    "z-ai": "zai",
    "zai-org": "zai",
}
"""What routers call a vendor → its name in the table, where they differ."""
_LESSON_SECONDS = 24 * 3600
_RELAYED = ("input", "output", "window", "inputs")
"""Fields that hold at a router too: everything else is decided by the host that it chooses."""
_CACHED = 1024
"""Profiles that are kept ready at most."""


class ProfileRegistry:
    """The profiles of this process. `clock`: seconds that only grow."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        """Creates a registry of model profiles without the user's profiles and lessons. `clock`:
        seconds, for the lessons' age."""
        self._clock = clock
        self._registered: dict[tuple[str, str], ModelProfile] = {}
        self._tables: list[ProfileTable] | None = None
        self._listed: dict[tuple[str, str], ModelProfile] = {}
        self._learned: dict[tuple[str, str, str], tuple[float, ModelProfile]] = {}
        self._ready: dict[tuple[int, str, str], tuple[Provider, ModelProfile]] = {}

    def get(self, model: str, *, wire: str | None = None) -> ModelProfile:
        """Returns the profile of a model (what is known of it), by its model string
        (`"anthropic:claude-opus-5-5"`).

        Args:
            model: the provider alone means its default model.
            wire: name of the wire that it is asked by; `None`: its provider's.

        Raises:
            SettingsError: no provider has that name, or a file of profiles cannot be read.
        """
        provider, name = _split_model_string(model)
        return self.find(provider, name, wire=wire)

    def find(
        self,
        provider: Provider,
        model: str,
        *,
        wire: str | None = None,
        endpoint: str | None = None,
    ) -> ModelProfile:
        """Returns the profile (what is known) of a provider's model.

        Args:
            provider: its record.
            model: the provider's name of it.
            wire: as in `get`.
            endpoint: its base URL, for what was learned there; `None`: nothing was.

        Raises:
            SettingsError: a file of profiles cannot be read.
        """
        wire = wire or provider.wire
        lesson = self._find_lesson(endpoint, wire, model) if self._learned and endpoint else None
        if lesson is not None:
            return self._build_profile(provider, model, wire, lesson)
        # The record itself may differ under one name, such as in tests and after `replace=True`.
        key = (id(provider), model, wire)
        ready = self._ready.get(key)
        if ready is None or ready[0] is not provider:
            if len(self._ready) >= _CACHED:
                self._ready.clear()
            ready = self._ready[key] = (provider, self._build_profile(provider, model, wire, None))
        return ready[1]

    def find_sources(self, model: str) -> Mapping[str, str]:
        """Returns where each fact that dragoman's own table has of a model comes from: name of the
        field → its source.

        Args:
            model: its model string.

        Raises:
            SettingsError: no provider has that name.
        """
        provider, name = _split_model_string(model)
        family = _find_vendor(provider, name)
        profile = load_shipped(sources=True).find(family, name) if family else None
        return {} if profile is None else profile.for_wire(provider.wire).sources or {}

    def register(
        self, model: str, profile: ModelProfile | None = None, *, like: str | None = None
    ) -> None:
        """Registers a profile: says what a model accepts, such as one behind a name of the user's
        own: `register("azure:my-deployment", like="openai:gpt-5.4")`. It goes before all else that
        is known of the model.

        Args:
            model: its model string.
            profile: its known fields go before those of `like`.
            like: the model string of one that accepts the same.

        Raises:
            SettingsError: neither `profile` nor `like` is given, a provider is unknown, or nothing
                is known of `like`.
        """
        if profile is None and like is None:
            raise SettingsError(
                f'profiles.register("{model}"): pass a profile, or like="PROVIDER:MODEL"'
            )
        provider, name = _split_model_string(model)
        known = profile or EMPTY
        if like is not None:
            known = known.over(self._find_like(like))
        self._registered[provider.name, name] = known
        self._ready.clear()

    def load(self, path: str | Path) -> None:
        """Reads into the registry a file of profiles, which go before all that is known but for
        those of `register` and of files that are read later. See `dragoman.profiles.profile_table`
        for its form; its tables are named by providers.

        Raises:
            SettingsError: it cannot be read; names the line and the key.
        """
        table = self._read_profile_file(Path(path))
        self._user_tables().insert(0, table)
        self._ready.clear()

    def note_listed(self, provider: str, model: str, profile: ModelProfile) -> None:
        """Keeps in the profile registry what a provider's list says of one of its models.
        `provider`: its name."""
        if self._listed.get((provider, model)) != profile:
            self._listed[provider, model] = profile
            self._ready.clear()

    @property
    def has_lessons(self) -> bool:
        """Returns whether a provider's error taught anything about a model that may still hold."""
        return bool(self._learned)

    def learn(self, endpoint: str, wire: str, model: str, profile: ModelProfile) -> None:
        """Keeps in the profile registry for 24 hours what an error told of a model at an endpoint.
        Names of refused settings are added to those that are known.

        Args:
            endpoint: the base URL, as `Access.endpoint` shows it.
            wire: name of the wire.
            model: the provider's name of the model.
            profile: the fields that the error tells.
        """
        known = self._find_lesson(endpoint, wire, model)
        profile = profile if known is None else known.changed_by(profile)
        self._learned[endpoint, wire, model] = (self._clock() + _LESSON_SECONDS, profile)

    def forget(self) -> None:
        """Forgets all profiles that were registered, read, listed or learned."""
        self._registered.clear()
        self._listed.clear()
        self._learned.clear()
        self._ready.clear()
        self._tables = None

    def _build_profile(
        self, provider: Provider, model: str, wire: str, lesson: ModelProfile | None
    ) -> ModelProfile:
        """Builds for the registry the profile of a model on one wire, merged from all sources, the
        weakest source first."""
        shipped = _find_shipped(provider, model).for_wire(wire)
        known = (
            shipped if provider.profile is None else provider.profile.for_wire(wire).over(shipped)
        )
        listed = self._listed.get((provider.name, model))
        if listed is not None:
            known = listed.for_wire(wire).over(known)
        if lesson is not None:
            known = known.changed_by(lesson)
        for table in reversed(self._user_tables()):
            for vendor in dict.fromkeys((_find_vendor(provider, model) or "", provider.name)):
                if (profile := table.find(vendor, model)) is not None:
                    known = profile.for_wire(wire).over(known)
        registered = self._registered.get((provider.name, model))
        return known if registered is None else registered.for_wire(wire).over(known)

    def _find_lesson(self, endpoint: str, wire: str, model: str) -> ModelProfile | None:
        """Returns from the registry the profile that a provider's error taught about a model, or
        None if it has expired."""
        key = (endpoint, wire, model)
        if key not in self._learned:
            return None
        until, profile = self._learned[key]
        if self._clock() < until:
            return profile
        del self._learned[key]
        return None

    def _find_like(self, like: str) -> ModelProfile:
        """Returns from the registry the profile of the model that another is `like`, with what
        differs by wire."""
        provider, name = _split_model_string(like)
        family = _find_vendor(provider, name) or ""
        profile = self._registered.get((provider.name, name), EMPTY)
        for table in (*(self._tables or ()), load_shipped()):
            # what is true of the API alone says nothing of the model
            for vendor in (provider.name, family):
                if table.find_entry(vendor, name) not in (None, BASE):
                    profile = profile.over(table.find(vendor, name) or EMPTY)
        if profile == EMPTY:
            raise SettingsError(
                f'like="{like}": nothing is known of this model; name one of those in '
                "`dragoman models -v`, or pass a profile"
            )
        return profile

    def _user_tables(self) -> list[ProfileTable]:
        """Returns the registry's profile tables that the user registered or loaded, the strongest
        first."""
        if self._tables is None:
            self._tables = []
            for path in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
                self._tables.insert(0, self._read_profile_file(Path(path)))
        return self._tables

    def _read_profile_file(self, path: Path) -> ProfileTable:
        """Reads and checks a file of profiles. Raises `SettingsError` if it cannot be read."""
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise SettingsError(f"the profiles {path} cannot be read: {reason}") from None
        table = ProfileTable(text, str(path), get=self._find_like)
        table.check()
        return table


def _split_model_string(model: str) -> tuple[Provider, str]:
    """Returns the provider and the model name in the model string that a profile is wanted for."""
    string = parse_model_string(model)
    provider = providers.get(string.provider)
    return provider, string.chat or provider.chat_model or ""


def _find_vendor(provider: Provider, model: str) -> str | None:
    """Returns the vendor under which the profile registry finds a provider's models in the table,
    or None."""
    family = provider.family
    if callable(family):
        return family(model)
    if family is None and provider.relays:
        vendor = model.lower().partition("/")[0]
        return _VENDORS.get(vendor, vendor)
    return family or provider.name


def _find_shipped(provider: Provider, model: str) -> ModelProfile:
    """Returns for the profile registry that of a provider's model in the table that dragoman
    ships."""
    family = _find_vendor(provider, model)
    profile = load_shipped().find(family, model) if family else None
    if profile is None:
        return EMPTY
    if not provider.relays:
        return profile
    return ModelProfile(**{name: getattr(profile, name) for name in _RELAYED})


REGISTRY = ProfileRegistry()
"""The profiles that agents and models use."""
