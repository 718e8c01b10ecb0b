"""Schemas of an OpenAPI document → JSON Schema, with what they refer to as `$defs`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from dragoman.codec.json_values import if_list, if_object
from dragoman.errors import SettingsError
from dragoman.openapi.document import LISTS, MAPS, ONE, Document, pointer

__all__ = ["Schemas"]

_FOR_PEOPLE = frozenset(
    {"deprecated", "discriminator", "example", "examples", "externalDocs", "xml"}
)
_LIMITS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}


class Schemas:
    """Schemas of one operation. Each that is referred to becomes one of `definitions`, also where it refers to itself."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._names: dict[str, str] = {}
        self.definitions: dict[str, Any] = {}
        """By name: what `$ref` refers to."""

    def convert(self, schema: Any, place: str) -> Any:
        """A schema as JSON Schema.

        Raises:
            SettingsError: it refers to something that is not in the document.
        """
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping):
            raise SettingsError(f"the document has no schema at {place!r}, but {schema!r:.80}")
        given = cast("Mapping[str, Any]", schema)
        made: dict[str, Any] = {}
        for key, value in given.items():
            below = pointer(place, key)
            if key == "$ref" and isinstance(value, str):
                made[key] = self._reference(value)
            elif key in ONE and isinstance(value, Mapping):
                made[key] = self.convert(value, below)
            elif key in LISTS and isinstance(value, list):
                made[key] = [
                    self.convert(each, pointer(below, at))
                    for at, each in enumerate(cast("list[Any]", value))
                ]
            elif key in MAPS and isinstance(value, Mapping):
                made[key] = {
                    name: self.convert(each, pointer(below, name))
                    for name, each in cast("Mapping[str, Any]", value).items()
                }
            elif key not in _FOR_PEOPLE and not key.startswith("x-"):
                made[key] = value
        _leave_out_read_only(given, made)
        return _as_json_schema(made) if self._document.is_3_0 else made

    def _reference(self, to: str) -> str:
        if to not in self._names:
            target = self._document.at(to)
            base = re.sub(r"[^A-Za-z0-9_.-]", "_", to.rpartition("/")[2]) or "root"
            taken, number, name = set(self._names.values()), 1, base
            while name in taken:
                number += 1
                name = f"{base}_{number}"
            self._names[to] = name
            self.definitions[name] = self.convert(target, to)
        return f"#/$defs/{self._names[to]}"


def _leave_out_read_only(given: Mapping[str, Any], made: dict[str, Any]) -> None:
    """What a server alone sets is no argument."""
    properties = if_object(given.get("properties"))
    hidden = [name for name, each in properties.items() if if_object(each).get("readOnly") is True]
    if hidden:
        made["properties"] = {
            name: each for name, each in made["properties"].items() if name not in hidden
        }
        made["required"] = [name for name in if_list(made.get("required")) if name not in hidden]


def _as_json_schema(made: dict[str, Any]) -> dict[str, Any]:
    """A schema of OpenAPI 3.0 as JSON Schema."""
    for exclusive, limit in _LIMITS.items():
        if isinstance(flag := made.get(exclusive), bool):
            del made[exclusive]
            if flag and limit in made:
                made[exclusive] = made.pop(limit)
    if made.pop("nullable", False) is not True:
        return made
    if isinstance(kind := made.get("type"), str):
        made["type"] = [kind, "null"]
        if "enum" in made and None not in made["enum"]:
            made["enum"] = [*made["enum"], None]
        return made
    return {"anyOf": [made, {"type": "null"}]}
