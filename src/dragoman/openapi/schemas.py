"""Schemas of an OpenAPI document → JSON Schema, with what they refer to as `$defs`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from dragoman.codec.json_values import if_list, if_object
from dragoman.errors import SettingsError
from dragoman.json_bytes import Json, JsonMap
from dragoman.openapi.document import (
    SCHEMA_KEYS,
    SCHEMA_LIST_KEYS,
    SCHEMA_MAP_KEYS,
    Document,
    pointer,
)

__all__ = ["Schemas"]

_ANNOTATIONS = frozenset(
    {"deprecated", "discriminator", "example", "examples", "externalDocs", "xml"}
)
_LIMITS = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}


class Schemas:
    """Schemas of one operation. Each that is referred to becomes one of `definitions`, also where
    it refers to itself."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._names: dict[str, str] = {}
        self.definitions: Json = {}
        """By name: what `$ref` refers to."""

    def convert(self, schema: Any, where: str) -> Any:
        """Converts a schema of the OpenAPI document to JSON Schema.

        Raises:
            SettingsError: it refers to something that is not in the document.
        """
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping):
            raise SettingsError(f"the document has no schema at {where!r}, but {schema!r:.80}")
        source = cast("JsonMap", schema)
        converted: Json = {}
        for key, value in source.items():
            below = pointer(where, key)
            if key == "$ref" and isinstance(value, str):
                converted[key] = self._convert_reference(value)
            elif key in SCHEMA_KEYS and isinstance(value, Mapping):
                converted[key] = self.convert(value, below)
            elif key in SCHEMA_LIST_KEYS and isinstance(value, list):
                converted[key] = [
                    self.convert(item, pointer(below, index))
                    for index, item in enumerate(cast("list[Any]", value))
                ]
            elif key in SCHEMA_MAP_KEYS and isinstance(value, Mapping):
                converted[key] = {
                    name: self.convert(item, pointer(below, name))
                    for name, item in cast("JsonMap", value).items()
                }
            elif key not in _ANNOTATIONS and not key.startswith("x-"):
                converted[key] = value
        _remove_read_only(source, converted)
        if self._document.is_3_0:
            return _as_json_schema(converted)
        return converted

    def _convert_reference(self, to: str) -> str:
        """Converts the schema behind a reference, once. Returns the reference to it in `$defs`."""
        # Named before it is converted: a schema may refer to itself.
        if to not in self._names:
            target = self._document.resolve(to)
            base = re.sub(r"[^A-Za-z0-9_.-]", "_", to.rpartition("/")[2]) or "root"
            taken, number, name = set(self._names.values()), 1, base
            while name in taken:
                number += 1
                name = f"{base}_{number}"
            self._names[to] = name
            self.definitions[name] = self.convert(target, to)
        return f"#/$defs/{self._names[to]}"


def _remove_read_only(source: JsonMap, converted: Json) -> None:
    """Removes read-only properties, which only the server sets, from a schema."""
    properties = if_object(source.get("properties"))
    hidden = [
        name
        for name, property_schema in properties.items()
        if if_object(property_schema).get("readOnly") is True
    ]
    if hidden:
        converted["properties"] = {
            name: property_schema
            for name, property_schema in converted["properties"].items()
            if name not in hidden
        }
        converted["required"] = [
            name for name in if_list(converted.get("required")) if name not in hidden
        ]


def _as_json_schema(schema: Json) -> Json:
    """Converts a schema of OpenAPI 3.0 to JSON Schema."""
    for exclusive, limit in _LIMITS.items():
        if isinstance(flag := schema.get(exclusive), bool):
            del schema[exclusive]
            if flag and limit in schema:
                schema[exclusive] = schema.pop(limit)
    if schema.pop("nullable", False) is not True:
        return schema
    if isinstance(type_name := schema.get("type"), str):
        schema["type"] = [type_name, "null"]
        if "enum" in schema and None not in schema["enum"]:
            schema["enum"] = [*schema["enum"], None]
        return schema
    return {"anyOf": [schema, {"type": "null"}]}
