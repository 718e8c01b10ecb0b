"""A JSON Schema → the part of it that a provider's structured output takes. A pure function.

The result is looser than the schema, or as strict, and never asks for what the schema forbids.
Constraints that a provider does not know are told to the model in the description; the answer is
validated against the whole schema anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import if_list, if_object, read_extra_fields
from dragoman.json_bytes import Json, JsonMap

__all__ = ["JsonDialect", "fit_schema"]

Schema = JsonMap

# The second is the name of older drafts.
_DEFINITIONS = ("$defs", "definitions")
_READ = frozenset(
    {
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
    }
)
_SILENT = frozenset(
    {
        "$schema",
        "$id",
        "$comment",
        "default",
        "examples",
        "example",
        "discriminator",
        "deprecated",
        "title",
    }
)
"""Keywords that narrow nothing: where they are not kept, nothing is said of them."""
_UNTOLD = _READ | _SILENT | {*_DEFINITIONS, "description"}
"""Keywords that the description never tells: they have a place of their own, or narrow nothing."""


class JsonDialect(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider takes."""

    keywords: frozenset[str]
    """Keywords that stay as they are, beside the structure (types, properties, items, unions,
    references)."""
    only: Mapping[str, frozenset[Any]] = {}
    """Keywords of which only these values stay."""
    closed: bool = False
    """Objects must be closed, so that free keys cannot be said."""
    free: bool = True
    """Knows `additionalProperties`."""
    recursive: bool = True
    """Knows schemas that hold themselves."""
    cut_recursion: bool = False
    """Takes recursion in properties that are not required only."""
    some_required: bool = False
    """Every object must require some property."""
    const: bool = True
    """Knows `const`; else it is an `enum` of one."""
    lists: bool = True
    """Takes several types in a list; else they are a union."""


class _NoFormError(Exception):
    """The dialect cannot say the schema."""


def fit_schema(schema: Schema, dialect: JsonDialect) -> Json | None:
    """Returns the schema in the dialect, or None if the dialect cannot express it."""
    definitions = {
        f"#/{key}/{name}": definition
        for key in _DEFINITIONS
        for name, definition in if_object(schema.get(key)).items()
    }
    fitting = _Fitting(dialect, {"#": schema, **definitions})
    try:
        out = fitting.schema(*fitting.root())
        for key in _DEFINITIONS:
            if isinstance(schema.get(key), Mapping):
                out[key] = {
                    name: fitting.schema(definition, f"#/{key}/{name}")
                    for name, definition in schema[key].items()
                }
    except _NoFormError:
        return None
    return out


class _Fitting:
    """One schema on its way into a dialect."""

    def __init__(self, dialect: JsonDialect, definitions: JsonMap) -> None:
        """Creates the writer of one JSON Schema in a provider's dialect. `definitions`: its
        `$defs`, by name."""
        self._dialect = dialect
        self._definitions = definitions
        self._reach = {
            name: _find_references(definition) for name, definition in definitions.items()
        }

    def root(self) -> tuple[Any, str]:
        """Returns the schema of the whole, and the definition that it is in: pydantic writes a
        recursive model as a reference."""
        name, seen = "#", set[str]()
        while "$ref" in (schema := if_object(self._definitions.get(name))) and name not in seen:
            seen.add(name)
            name = str(schema["$ref"])
        if name in seen or name not in self._definitions:
            raise _NoFormError
        return schema, name

    def schema(self, schema: Any, within: str) -> Json:
        """Returns in the dialect the form of a schema inside the definition `within`."""
        # `true`: anything.
        if not isinstance(schema, Mapping):
            schema = {}
        schema = self._flatten_unions(cast("Schema", schema))
        if "$ref" in schema:
            return self._fit_reference(schema, within)
        if isinstance(schema.get("anyOf"), list):
            return {
                "anyOf": [self.schema(choice, within) for choice in schema["anyOf"]],
                **self._fit_annotations(schema),
            }
        type_names = if_list(schema.get("type"))
        if len(type_names) > 1 and not self._dialect.lists:
            return {
                "anyOf": [
                    self.schema(_select_type(schema, type_name), within) for type_name in type_names
                ]
            }
        return self._plain_schema(schema, within)

    def _plain_schema(self, schema: Schema, within: str) -> Json:
        """Returns in the dialect the form of a schema that is neither a reference nor a union."""
        out: Json = {}
        if "type" in schema:
            out["type"] = schema["type"]
        out |= self._fit_annotations(schema)
        type_names = [*if_list(schema.get("type")), schema.get("type")]
        if "object" in type_names or "properties" in schema:
            out |= self._fit_object_schema(schema, within)
        if "items" in schema:
            out["items"] = self.schema(schema["items"], within)
        # Only where the dialect keeps it; its schemas must be of the dialect too.
        if "prefixItems" in out:
            out["prefixItems"] = [
                self.schema(choice, within) for choice in if_list(out["prefixItems"])
            ]
        # "Anything" would be an open object too, which a closed dialect cannot say.
        if not out and self._dialect.closed:
            raise _NoFormError
        return out

    def _fit_reference(self, schema: Schema, within: str) -> Json:
        """Returns in the dialect the form of a reference, which takes nothing beside it."""
        if str(schema["$ref"]) not in self._reach or (
            not self._dialect.recursive and self._is_recursive(schema, within)
        ):
            raise _NoFormError
        reference = {"$ref": schema["$ref"]}
        beside = self._fit_annotations(schema)
        if beside:
            return {"anyOf": [reference], **beside}
        return reference

    def _fit_object_schema(self, schema: Schema, within: str) -> Json:
        """Returns the schema of an object as the dialect takes it: properties, required keys,
        closed or open."""
        properties = if_object(schema.get("properties"))
        free, dialect = schema.get("additionalProperties", not properties), self._dialect
        if dialect.closed and not _can_close(free, properties):
            raise _NoFormError
        out: Json = {}
        if properties:
            out["properties"] = {
                str(name): self.schema(property_schema, within)
                for name, property_schema in properties.items()
            }
            if required := self._fit_required(schema, properties, within):
                out["required"] = required
        if dialect.closed:
            out["additionalProperties"] = False
        elif dialect.free and "additionalProperties" in schema:
            if isinstance(free, bool):
                out["additionalProperties"] = free
            else:
                out["additionalProperties"] = self.schema(free, within)
        return out

    def _fit_required(self, schema: Schema, properties: JsonMap, within: str) -> list[str]:
        """Returns the names of the properties that the dialect can require."""
        required = list(dict.fromkeys(map(str, if_list(schema.get("required")))))
        if self._dialect.cut_recursion:
            required = [
                name for name in required if not self._is_recursive(properties.get(name), within)
            ]
        if not required and self._dialect.some_required:
            return list(map(str, properties))
        return required

    def _takes_keyword(self, key: str, value: Any) -> bool:
        """True if the dialect takes a keyword with this value."""
        dialect = self._dialect
        if key not in dialect.keywords:
            return False
        # A list, since a value may be one that has no hash.
        return key not in dialect.only or value in list(dialect.only[key])

    def _fit_annotations(self, schema: Schema) -> Json:
        """Returns annotations and constraints: those that the dialect knows, and the others as
        words in the description."""
        dialect = self._dialect
        out: Json = {}
        descriptions: list[str] = []
        for key, value in schema.items():
            if key == "const" and not dialect.const:
                out["enum"] = [value]
            elif self._takes_keyword(key, value):
                out[key] = value
            elif key not in _UNTOLD:
                descriptions.append(f"{key}: {json_bytes.encode(value).decode()}")
        if descriptions:
            if schema.get("description"):
                descriptions.insert(0, str(schema["description"]))
            out["description"] = "\n".join(descriptions)
        return out

    def _flatten_unions(self, schema: Schema) -> Schema:
        """Returns the schema for the dialect with `oneOf` written as `anyOf`, and an `allOf` merged
        into one schema."""
        if isinstance(every := schema.get("allOf"), list):
            schema = self._merge_all(cast("list[Any]", every), read_extra_fields(schema, "allOf"))
        if "oneOf" in schema and "anyOf" not in schema:
            schema = {**read_extra_fields(schema, "oneOf"), "anyOf": schema["oneOf"]}
        return schema

    def _merge_all(self, every: list[Any], beside: Schema) -> Json:
        """Returns the schemas of an `allOf`, and what stands beside it, merged into one schema for
        the dialect."""
        schemas = [if_object(schema) for schema in every]
        # A reference alone can stay one; several schemas can only be merged by their fields.
        if len(schemas) > 1:
            schemas = [self._resolve_reference(schema) for schema in schemas]
        merged: Json = {}
        # What stands beside the `allOf` comes last and wins, such as a field's own description.
        for schema in (*schemas, beside):
            merged = {**merged, **schema, **_merge_properties(merged, schema)}
        return merged

    def _resolve_reference(self, schema: Schema) -> Schema:
        """Returns for the dialect the definition that a schema refers to, or the schema itself."""
        if "$ref" not in schema:
            return schema
        definition = if_object(self._definitions.get(str(schema["$ref"])))
        if not definition or "$ref" in definition or "allOf" in definition:
            raise _NoFormError
        return definition

    def _is_recursive(self, schema: Any, within: str) -> bool:
        """True if a schema to fit to the dialect leads back to the definition that it is in."""
        # A search without recursion: definitions may refer to each other in circles.
        waiting, seen = list(_find_references(schema)), set[str]()
        while waiting:
            if (name := waiting.pop()) == within:
                return True
            if name not in seen:
                seen.add(name)
                waiting += self._reach.get(name, ())
        return False


def _can_close(free: Any, properties: JsonMap) -> bool:
    """True if an object may lose its free keys: they have no schema, and it has other properties.
    `free`: its `additionalProperties`."""
    return free in (False, True) and not (free and not properties)


def _merge_properties(first: Schema, second: Schema) -> Json:
    """Returns the properties of two schemas that hold at once, for a dialect without `allOf`."""
    properties = {**if_object(first.get("properties")), **if_object(second.get("properties"))}
    required = [*if_list(first.get("required")), *if_list(second.get("required"))]
    merged: Json = {}
    if properties:
        merged["properties"] = properties
    if required:
        merged["required"] = required
    return merged


def _select_type(schema: Schema, type_name: Any) -> Json:
    """Returns for the dialect a schema of several types, narrowed to one of them."""
    narrowed = {**schema, "type": type_name}
    # Nothing else narrows null.
    if type_name == "null":
        narrowed = {"type": type_name}
    elif isinstance(values := schema.get("enum"), list):
        narrowed["enum"] = [value for value in cast("list[Any]", values) if value is not None]
    return narrowed


def _find_references(schema: Any) -> set[str]:
    """Returns the names of definitions that a schema in the dialect refers to."""
    if isinstance(schema, Mapping):
        schema = cast("Schema", schema)
        if isinstance(schema.get("$ref"), str):
            names = {schema["$ref"]}
        else:
            names = set[str]()
        return names.union(*map(_find_references, schema.values()))
    if isinstance(schema, list):
        return set[str]().union(*map(_find_references, cast("list[Any]", schema)))
    return set()
