"""The table of profiles: a TOML file, and how the entry of a model is found in it.

A file has a table for each vendor, and in it one for each entry: `[openai.gpt-5-4]`. An entry has
the fields of `ModelProfile`, and

- `names`: beginnings of the names of its models (without it: the entry's own name)
- `like`: another entry of the vendor, or a model string, whose fields it starts from
- `unset`: fields of that one which are unknown here; `on.WIRE.FIELD` is one of those that differ by API

The entry `base` holds what is true of the vendor's API. Every other entry starts from it, and a
model without an entry of its own has it alone. Entries are read when a model asks for them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import cast

import msgspec

from dragoman.errors import SettingsError
from dragoman.json_bytes import Json
from dragoman.model_profile import ModelProfile

__all__ = ["BASE", "ProfileTable", "load_shipped"]

BASE = "base"
"""Name of the entry that holds what is true of a vendor's API."""
_KEYS = ("names", "like", "unset")
"""Keys of an entry that are no fields of a profile."""
_SOURCES_LINE = re.compile(r"^sources = .*$", re.MULTILINE)
_REGION = re.compile(r"(?:us-gov|us|eu|apac|ap|jp|au|ca|global)\.(?=[a-z])")
_VENDOR = re.compile(r"(?:anthropic|openai|google|meta|mistral|cohere|deepseek|qwen|zai|xai)\.")
_BOUNDARY = "-@:_"
_NEWER = re.compile(r"[-@:_]\d{1,2}(?=$|[-@:_])(?!-\d{4}(?:$|[-@:_]))")
"""A version number behind a name: one or two digits. `-2025-08-07`, `-0709` and `-08-2025` are
dates."""
_MOVING = re.compile(r"(?:^|[-@:_])(?:latest|auto|default)(?:$|[-@:_])")
"""Names that mean another model from time to time."""


class ProfileTable:
    """The entries of one TOML file.

    Args:
        text: the file's content.
        name: the file's name, for errors.
        get: finds the profile of a model string, for `like`; `None`: `like` names entries only.

    Raises:
        SettingsError: the text is no TOML, or a table is missing.
    """

    def __init__(
        self, text: str, name: str, *, get: Callable[[str], ModelProfile] | None = None
    ) -> None:
        """Reads the table of model profiles from the text of a file."""
        self._text, self._name, self._get = text, name, get
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise SettingsError(f"{name} is no TOML: {error}") from None
        self.legend: dict[str, str] = content.get("legend", {})
        """Name of a source → what it is."""
        self._vendors: dict[str, dict[str, Json]] = {}
        for vendor, entries in content.items():
            # `schema`, `as_of` and the legend of the sources
            if not isinstance(entries, dict) or vendor == "legend":
                continue
            for key, entry in cast("Json", entries).items():
                if not isinstance(entry, dict):
                    raise self._profile_error(
                        vendor, key, f"it must be a table; write [{vendor}.NAME]"
                    )
            self._vendors[vendor] = cast("dict[str, Json]", entries)
        self._beginnings = {vendor: self._list_prefixes(vendor) for vendor in self._vendors}
        self._profiles: dict[tuple[str, str], ModelProfile] = {}

    def find(self, vendor: str, model: str) -> ModelProfile | None:
        """Returns from the table the profile of a vendor's model; `None`: the table knows nothing
        of it.

        Raises:
            SettingsError: the model's entry cannot be read; names the line and the key.
        """
        key = self.find_entry(vendor, model)
        return None if key is None else self.profile(vendor, key)

    def find_entry(self, vendor: str, model: str) -> str | None:
        """Returns the name of the profile table's entry for a vendor's model: of the longest
        beginning of its name; `base` for newer versions and for names that have no entry; `None`:
        there is not even that."""
        beginnings = self._beginnings.get(vendor)
        if beginnings is None:
            return None
        names = _plain_names(model)
        for name in names:
            if (key := _find_longest(beginnings, name)) is not None:
                return key
        base = self._vendors[vendor].get(BASE, {})
        known = [_dashed(beginning) for beginning in base.get("names", ())]
        return BASE if any(name.startswith(tuple(known)) for name in names) else None

    def entries(self) -> Iterator[tuple[str, str]]:
        """Yields vendor and name of every entry of the profile table, in the file's order."""
        for vendor, entries in self._vendors.items():
            for key in entries:
                yield vendor, key

    def names(self, vendor: str, key: str) -> tuple[str, ...]:
        """Returns the beginnings of the names of an entry's models."""
        return tuple(self._vendors[vendor][key].get("names", (key,)))

    def profile(self, vendor: str, key: str) -> ModelProfile:
        """Returns the profile of one entry of the table, over its vendor's `base`.

        Raises:
            SettingsError: it cannot be read; names the line and the key.
        """
        profile = self._profiles.get((vendor, key))
        if profile is None:
            cells = self._resolve_entry(vendor, key, ())
            base = self._vendors[vendor].get(BASE, {}) if key != BASE else {}
            profile = self._convert_cells(
                vendor, key, _merge_cells(_cells(base, f"{vendor}.base"), cells)
            )
            self._profiles[vendor, key] = profile
        return profile

    def check(self) -> None:
        """Reads every entry of the profile table. Raises `SettingsError` for an invalid one.

        Raises:
            SettingsError: one cannot be read; names the line and the key.
        """
        for vendor, key in self.entries():
            self.profile(vendor, key)

    def _list_prefixes(self, vendor: str) -> list[tuple[str, str]]:
        """Returns the prefixes of model names and the key of the profile that is for them, the
        longest first. `vendor`: whose profiles."""
        pairs: list[tuple[str, str]] = []
        for key, entry in self._vendors[vendor].items():
            names = entry.get("names", [key])
            if not isinstance(names, list):
                raise self._profile_error(vendor, key, "names must be a list of texts", "names")
            if key != BASE:
                pairs += [(_dashed(str(name)), key) for name in cast("list[object]", names)]
        return sorted(pairs, key=lambda pair: len(pair[0]), reverse=True)

    def _resolve_entry(self, vendor: str, key: str, path: tuple[str, ...]) -> Json:
        """Returns the cells of a profile entry, merged over those of the entry that it is
        `like`."""
        entry = self._vendors[vendor][key]
        cells = _cells(entry, f"{vendor}.{key}")
        like = entry.get("like")
        if like is None:
            return cells
        if key in path:
            raise self._profile_error(vendor, key, "it is like itself", "like")
        if like in self._vendors[vendor]:
            parent = self._resolve_entry(vendor, like, (*path, key))
        elif self._get is not None and ":" in str(like):
            parent = _to_cells(self._get(str(like)))
        else:
            raise self._profile_error(
                vendor, key, f'there is no entry "{like}" of {vendor}', "like"
            )
        for field in entry.get("unset", ()):
            parent = _without_cell(parent, field.split("."))
        return _merge_cells(parent, cells)

    def _convert_cells(self, vendor: str, key: str, cells: Json) -> ModelProfile:
        """Converts the table's cells of an entry to a `ModelProfile`. An error names the line and
        the field."""
        try:
            return msgspec.convert(cells, ModelProfile)
        except msgspec.ValidationError as error:
            message = str(error)
            match = re.search(r"`\$\.(?:on\[\.\.\.\]\.)?(\w+)|field `(\w+)`", message)
            field = (match[1] or match[2]) if match else None
            raise self._profile_error(vendor, key, message, field) from None

    def _profile_error(
        self, vendor: str, key: str, what: str, field: str | None = None
    ) -> SettingsError:
        """Returns a `SettingsError` that names the line of a field in the profile file, or of its
        entry."""
        lines = self._text.split("\n")
        header = re.compile(rf'\["?{re.escape(vendor)}"?(\."?{re.escape(key)}"?[.\]]|\])')
        start = next((number for number, line in enumerate(lines, 1) if header.match(line)), 1)
        number, where = start, f"{vendor}.{key}"
        if field is not None:
            where = f"{where}.{field}"
            for offset, line in enumerate(lines[start:], start + 1):
                if line.startswith("[") and not header.match(line):
                    break
                if re.match(rf'\s*(?:on\.\S+\.)?"?{re.escape(field)}"?\s*[=.]', line):
                    number = offset
                    break
        return SettingsError(f"{self._name}, line {number}, {where}: {what}")


@cache
def load_shipped(*, sources: bool = False) -> ProfileTable:
    """Returns dragoman's own table of model profiles. Without `sources`, which nobody but a reader
    needs, it loads in two thirds of the time."""
    text = files("dragoman.profiles").joinpath("models.toml").read_text("utf-8")
    return ProfileTable(text if sources else _SOURCES_LINE.sub("", text), "models.toml")


def _dashed(name: str) -> str:
    return name.lower().replace(".", "-")


def _plain_names(model: str) -> tuple[str, ...]:
    """Returns the names under which the profile table may list a model: its name as it is, and
    without a prefix (`models/`, a vendor, a region, `ft:`)."""
    whole = model.lower().removeprefix("models/")
    name = whole.rpartition("/")[2].removeprefix("ft:")
    name = _VENDOR.sub("", _REGION.sub("", name, count=1), count=1)
    return tuple(dict.fromkeys((_dashed(whole), _dashed(name))))


def _find_longest(beginnings: list[tuple[str, str]], name: str) -> str | None:
    """Returns the profile table's entry whose prefix is the longest that matches a model name up to
    a boundary."""
    moving = _MOVING.search(name)
    for beginning, key in beginnings:
        if name == beginning:
            return key
        if moving or not name.startswith(beginning) or name[len(beginning)] not in _BOUNDARY:
            continue
        # A newer version may be as different as it likes: the entry says nothing of it.
        return None if _NEWER.match(name, len(beginning)) else key
    return None


def _cells(entry: Json, where: str) -> Json:
    """Returns the profile fields of an entry as cells. A field without a source gets the entry's
    `all`. A source that is not told is the entry's `all`."""
    cells = {key: value for key, value in entry.items() if key not in _KEYS}
    if (sources := cells.get("sources")) is not None:
        usual = sources.get("all", "")
        names = [name for name in cells if name not in ("sources", "on")]
        specials = cast("dict[str, Json]", cells.get("on", {}))
        names += [f"on.{wire}.{name}" for wire, special in specials.items() for name in special]
        cells["sources"] = {name: f"{sources.get(name, usual)} ({where})" for name in names}
    return cells


def _merge_cells(parent: Json, cells: Json) -> Json:
    """Merges the cells of a profile entry over those of its parent. `on` is merged by wire and
    field."""
    merged = {**parent, **cells}
    if "on" in parent and "on" in cells:
        on = cast("dict[str, Json]", parent["on"])
        specials = cast("dict[str, Json]", cells["on"])
        merged["on"] = on | {wire: {**on.get(wire, {}), **specials[wire]} for wire in specials}
    if "sources" in parent:
        merged["sources"] = {**parent["sources"], **cells.get("sources", {})}
    return merged


def _without_cell(cells: Json, path: list[str]) -> Json:
    """Returns the cells of a profile entry without the cell at a path."""
    first, *further = path
    if not further:
        return {key: value for key, value in cells.items() if key != first}
    inner = cells.get(first)
    if not isinstance(inner, dict):
        return cells
    return {**cells, first: _without_cell(cast("Json", inner), further)}


def _to_cells(profile: ModelProfile) -> Json:
    return cast("Json", msgspec.to_builtins(profile, builtin_types=()))
