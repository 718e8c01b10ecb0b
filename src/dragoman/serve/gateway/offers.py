"""Which models a gateway offers: names that clients may ask for, and patterns of them, → models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from dragoman import providers
from dragoman.arguments import expect
from dragoman.errors import SettingsError
from dragoman.model.fallbacks import Fallback, ModelChoice, split_choice
from dragoman.model.resolve_model import parse_model_string, resolve_model
from dragoman.providers import Provider
from dragoman.serve.http.callers import match_star

__all__ = ["OfferedModels", "Offers", "Pattern", "match_name", "providers_of", "read_offers"]

OfferedModels: TypeAlias = Mapping[str, ModelChoice] | Sequence[str]
"""The name that a client asks for → a model. With a `*` in both, what stands in its place is the
same on both sides; with one in the name alone, all names that fit get that model. Or a list: model
strings, also with a `*`, which clients ask for as they are."""

_FIXED_HOST = re.compile(r"https?://[^/*@?#]+/[^?#]*\*")
# characters of a model's name
_LONGEST_NAME = 200


class Pattern(msgspec.Struct, frozen=True):
    """Names with something in the place of `*`."""

    before: str
    """What a client's name begins with."""
    after: str
    """What it ends with."""
    model: str
    """The model string, with the `*`."""

    @property
    def provider(self) -> str:
        """Returns the name or alias of the provider in the pattern's model string."""
        return self.model.partition(":")[0]

    def string(self, name: str) -> str | None:
        """Returns the model string that an offered pattern gives a client's name, or None if the
        name is not of this pattern, or gives no plain model string."""
        part = match_name(name, f"{self.before}*{self.after}")
        if part is None:
            return None
        string = self.model.replace("*", part)
        if string.isprintable() and _is_plain(string):
            return string
        return None

    def name(self, model: str) -> str | None:
        """Returns the offered name by which a client gets this model of the provider, or None."""
        part = match_star(model, self.model.partition(":")[2])
        if part is None:
            name = ""
        else:
            name = f"{self.before}{part}{self.after}"
        if name and self.string(name) is not None:
            return name
        return None


class Offers(msgspec.Struct, frozen=True):
    """All that a gateway offers. A name that several fit gets the first of them, in this order."""

    names: Mapping[str, ModelChoice]
    """A client's name → a model."""
    patterns: Sequence[Pattern]
    """Names and model strings with a `*`."""
    catch_alls: Mapping[str, ModelChoice]
    """Names with a `*` → the one model that all of them get."""


def match_name(name: str, pattern: str) -> str | None:
    """Returns what a client's name for an offer has in the place of the `*`, or None if it does not
    fit or is too long."""
    if len(name) > _LONGEST_NAME:
        return None
    return match_star(name, pattern)


def read_offers(offered: OfferedModels) -> Offers:
    """Returns what is offered by name, by pattern, and as a catch-all.

    Raises:
        SettingsError: a name or a model is empty or malformed, or no provider has that name.
    """
    if isinstance(offered, Mapping):
        choices: Mapping[str, ModelChoice] = offered
    else:
        choices = _name_models(offered)
    if not choices:
        raise SettingsError("a gateway needs a model: there is no model in it")
    names: dict[str, ModelChoice] = {}
    catch_alls: dict[str, ModelChoice] = {}
    patterns: list[Pattern] = []
    for name, choice in choices.items():
        expect("a model's name", name, str)
        if not name.strip() or len(name) > _LONGEST_NAME:
            raise SettingsError(
                f"a gateway's model needs a name of 1 to {_LONGEST_NAME} characters, not {name!r:.100}"
            )
        _check_choice(name, choice)
        if isinstance(choice, str) and "*" in choice:
            patterns.append(_make_pattern(name, choice))
            continue
        if name.count("*") > 1:
            raise SettingsError(
                f'the name "{name}" has a * too many: one stands for any characters'
            )
        first, layer = split_choice(choice)
        for model in [first, *(() if layer is None else layer.models)]:
            _check_model(name, model)
        (catch_alls if "*" in name else names)[name] = choice
    return Offers(names, patterns, catch_alls)


def _make_pattern(name: str, choice: str) -> Pattern:
    """Returns the offered pattern of a model string with a `*`.

    Raises:
        SettingsError: its name has none, or its provider is not known.
    """
    if name.count("*") != 1 or choice.count("*") != 1:
        raise SettingsError(
            f'the model "{name}": "{choice}" has a *; write one there and one in the name, as in "gpt-*" = "openai:gpt-*"'
        )
    provider, colon, model = choice.partition(":")
    if not colon or "*" in provider or "*" not in model:
        raise SettingsError(
            f'"{choice}" must name its provider before the *, such as "openai:gpt-*"'
        )
    # The model's name is a URL there, so a free `*` would let clients choose the host.
    if providers.get(provider).by_url and not _FIXED_HOST.match(model):
        raise SettingsError(
            f'"{choice}" would send a client\'s requests to any host that it names; write the host before the *, such as '
            f'"{provider}:https://agents.example.org/*"'
        )
    before, _, after = name.partition("*")
    return Pattern(before, after, choice)


def providers_of(offered: Iterable[ModelChoice | Pattern]) -> set[str]:
    """Returns the names of all providers behind these offers (models and patterns)."""
    names: set[str] = set()
    for choice in offered:
        if isinstance(choice, Pattern):
            names.add(providers.get(choice.provider).name)
            continue
        first, layer = split_choice(choice)
        names |= {
            resolve_model(model)[1].name
            for model in [first, *(() if layer is None else layer.models)]
        }
    return names


def _name_models(strings: Iterable[str]) -> dict[str, ModelChoice]:
    """Returns a list of offered model strings as a mapping under their own names. Raises
    `SettingsError` for other values."""
    if isinstance(strings, str) or not hasattr(strings, "__iter__"):
        raise SettingsError(
            f"models={strings!r:.100} must be a list of model strings, or names with their models"
        )
    for string in strings:
        expect("models", string, str, hint="a list holds model strings; give others a name")
    return {string: string for string in strings}


def _check_choice(name: str, choice: object) -> None:
    """Raises `SettingsError` if a model that a gateway offers is no model string, provider,
    fallback or list."""
    if not isinstance(choice, str | Provider | Fallback | Sequence) or not choice:
        raise SettingsError(
            f'the model "{name}" must be a model string such as "openai:gpt-4o", or a list of them'
        )


def _check_model(name: str, model: str | Provider) -> None:
    """Raises `SettingsError` if a model string that a gateway offers names no known provider."""
    if isinstance(model, str):
        try:
            providers.get(parse_model_string(model).provider)
        except SettingsError as error:
            raise SettingsError(f'the model "{name}": {error.message}') from error


def _is_plain(string: str) -> bool:
    """True if an offered model string has the one form `provider:model`, so that nothing in a name
    changes what it means."""
    try:
        parsed = parse_model_string(string)
    except SettingsError:
        return False
    return parsed.chat is not None and parsed.embeddings is None and str(parsed) == string
