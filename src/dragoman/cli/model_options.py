"""`-o NAME VALUE`: settings of the model by their neutral names, and fields of its provider's API."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import NamedTuple

import msgspec
import typer

from dragoman.cli.prompt import replace_invalid_text
from dragoman.errors import SettingsError
from dragoman.json_bytes import Json, JsonMap
from dragoman.request import Settings

__all__ = ["ModelOptions", "Scalar", "parse_option", "sort_options"]

Scalar = str | int | float | bool
"""The value of an option in a template."""

_BOUNDS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "temperature": (0, 2),
        "max_tokens": (1, float("inf")),
        "top_p": (0, 1),
        "top_k": (1, float("inf")),
        "presence_penalty": (-2, 2),
        "frequency_penalty": (-2, 2),
    }
)
"""Setting → least and most."""
_NAMES = Settings.__struct_fields__
_HINT = "-o"


class ModelOptions(NamedTuple):
    """The options of a prompt."""

    settings: Settings
    """Those with a neutral name."""
    fields: JsonMap
    """Fields of the provider's API."""


def parse_option(value: str) -> Scalar:
    """Returns the value of an option as a template stores it: a number, `true` or `false` as such,
    and anything else as text."""
    try:
        return msgspec.json.decode(value, type=bool | int | float)
    except (ValueError, UnicodeError):
        return replace_invalid_text(value)


def sort_options(options: Mapping[str, Scalar], settings: Settings) -> ModelOptions:
    """Returns settings with the options that have a neutral name added, and all others as fields of
    the provider's API. Text that is JSON counts as that.

    Raises:
        BadParameter: a value does not fit, or a name is nearly that of a setting.
    """
    fields: Json = {}
    for name, value in options.items():
        if name in _NAMES:
            settings = _change_setting(settings, name, value)
        elif matches := get_close_matches(name, _NAMES, n=1, cutoff=0.85):
            raise typer.BadParameter(
                f"there is no option {name!r}, did you mean {matches[0]!r}? There are "
                f"{', '.join(_NAMES)}, and the fields of the provider's API",
                param_hint=_HINT,
            )
        else:
            fields[name] = _decode_text(value)
    return ModelOptions(settings, fields)


def _change_setting(settings: Settings, name: str, value: Scalar) -> Settings:
    """Returns settings with one of them set.

    Raises:
        BadParameter: the value does not fit.
    """
    # A number there is a count of tokens or a name, never JSON.
    decoded = value if name in ("reasoning", "tool_choice") else _decode_text(value)
    if name == "reasoning" and str(value).isdecimal():
        decoded = int(value)
    if name == "stop" and isinstance(decoded, str):
        decoded = [decoded]
    field_type = next(
        field.type for field in msgspec.structs.fields(Settings) if field.name == name
    )
    try:
        decoded = msgspec.convert(decoded, field_type)
        settings = msgspec.structs.replace(settings, **{name: decoded})
    except (msgspec.ValidationError, SettingsError) as error:
        raise typer.BadParameter(f"{name} {value!r}: {error}", param_hint=_HINT) from error
    least, most = _BOUNDS.get(name, (float("-inf"), float("inf")))
    if isinstance(decoded, (int, float)) and not least <= decoded <= most:
        limits = f"at least {least:g}" if most == float("inf") else f"from {least:g} to {most:g}"
        raise typer.BadParameter(f"{name} must be {limits}, not {value}", param_hint=_HINT)
    return settings


def _decode_text(value: Scalar) -> object:
    """Returns the value that a text of JSON stands for, and any other value as it is."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except (ValueError, UnicodeError):
        return value
