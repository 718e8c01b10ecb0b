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
from dragoman.codec.json_values import if_list, if_object
from dragoman.json_bytes import Json, JsonMap

__all__ = ["JsonDialect", "fit_schema"]

Schema = JsonMap

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
        self._dialect = dialect
        self._definitions = definitions
        self._reach = {name: _references(definition) for name, definition in definitions.items()}

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
        """Returns the form of a schema inside the definition `within`."""
        # `true`: anything.
        if not isinstance(schema, Mapping):
            schema = {}
        schema = self._flat(cast("Schema", schema))
        if "$ref" in schema:
            return self._reference(schema, within)
        if isinstance(schema.get("anyOf"), list):
            return {
                "anyOf": [self.schema(one, within) for one in schema["anyOf"]],
                **self._beside(schema),
            }
        kinds = if_list(schema.get("type"))
        if len(kinds) > 1 and not self._dialect.lists:
            return {"anyOf": [self.schema(_of(schema, type_name), within) for type_name in kinds]}
        if "type" in schema:
            out = {"type": schema["type"], **self._beside(schema)}
        else:
            out = self._beside(schema)
        if "object" in (*kinds, schema.get("type")) or "properties" in schema:
            out |= self._object(schema, within)
        if "items" in schema:
            out["items"] = self.schema(schema["items"], within)
        if "prefixItems" in out:
            out["prefixItems"] = [
                self.schema(choice, within) for choice in if_list(out["prefixItems"])
            ]
        if not out and self._dialect.closed:
            raise _NoFormError
        return out

    def _reference(self, schema: Schema, within: str) -> Json:
        """Returns the form of a reference, which takes nothing beside it."""
        if str(schema["$ref"]) not in self._reach or (
            not self._dialect.recursive and self._returns(schema, within)
        ):
            raise _NoFormError
        reference = {"$ref": schema["$ref"]}
        beside = self._beside(schema)
        if beside:
            return {"anyOf": [reference], **beside}
        return reference

    def _object(self, schema: Schema, within: str) -> Json:
        properties = if_object(schema.get("properties"))
        free, dialect = schema.get("additionalProperties", not properties), self._dialect
        if dialect.closed and free not in (False, True):
            raise _NoFormError
        if dialect.closed and free and not properties:
            raise _NoFormError
        out: Json = {}
        if properties:
            out["properties"] = {
                str(name): self.schema(property_schema, within)
                for name, property_schema in properties.items()
            }
        required = list(dict.fromkeys(map(str, if_list(schema.get("required")))))
        if dialect.cut_recursion:
            required = [
                name for name in required if not self._returns(properties.get(name), within)
            ]
        if properties and (required or dialect.some_required):
            out["required"] = required or list(out["properties"])
        if dialect.closed:
            out["additionalProperties"] = False
        elif dialect.free and "additionalProperties" in schema:
            if isinstance(free, bool):
                out["additionalProperties"] = free
            else:
                out["additionalProperties"] = self.schema(free, within)
        return out

    def _beside(self, schema: Schema) -> Json:
        """Returns annotations and constraints: those that the dialect knows, and the others as
        words in the description."""
        dialect = self._dialect
        out: Json = {}
        descriptions: list[str] = []
        for key, value in schema.items():
            if key == "const" and not dialect.const:
                out["enum"] = [value]
            elif key in dialect.keywords and (
                key not in dialect.only or value in list(dialect.only[key])
            ):
                out[key] = value
            elif (
                key not in _READ
                and key not in _SILENT
                and key not in _DEFINITIONS
                and key != "description"
            ):
                descriptions.append(f"{key}: {json_bytes.encode(value).decode()}")
        if descriptions:
            if schema.get("description"):
                before = [str(schema["description"])]
            else:
                before = []
            out["description"] = "\n".join([*before, *descriptions])
        return out

    def _flat(self, schema: Schema) -> Schema:
        """Returns the schema with `oneOf` written as `anyOf`, and an `allOf` merged into one
        schema."""
        if isinstance(every := schema.get("allOf"), list):
            ones = [if_object(one) for one in cast("list[Any]", every)]
            if len(ones) > 1:
                ones = [self._resolve(one) for one in ones]
            flat: Json = {}
            for part_schema in (
                *ones,
                {key: value for key, value in schema.items() if key != "allOf"},
            ):
                flat = {**flat, **part_schema, **_merge_properties(flat, part_schema)}
            schema = flat
        if "oneOf" in schema and "anyOf" not in schema:
            schema = {
                **{key: value for key, value in schema.items() if key != "oneOf"},
                "anyOf": schema["oneOf"],
            }
        return schema

    def _resolve(self, schema: Schema) -> Schema:
        """Returns the definition that a schema refers to, or the schema itself."""
        if "$ref" not in schema:
            return schema
        definition = if_object(self._definitions.get(str(schema["$ref"])))
        if not definition or "$ref" in definition or "allOf" in definition:
            raise _NoFormError
        return definition

    def _returns(self, schema: Any, within: str) -> bool:
        """True if a schema leads back to the definition that it is in."""
        waiting, seen = list(_references(schema)), set[str]()
        while waiting:
            if (name := waiting.pop()) == within:
                return True
            if name not in seen:
                seen.add(name)
                waiting += self._reach.get(name, ())
        return False


def _merge_properties(first: Schema, second: Schema) -> Json:
    """Returns the properties of two schemas that hold at once."""
    properties = {**if_object(first.get("properties")), **if_object(second.get("properties"))}
    required = [*if_list(first.get("required")), *if_list(second.get("required"))]
    return {
        **({"properties": properties} if properties else {}),
        **({"required": required} if required else {}),
    }


def _of(schema: Schema, type_name: Any) -> Json:
    """Returns a schema of several types, narrowed to one of them."""
    narrowed = {**schema, "type": type_name}
    if type_name == "null":
        narrowed = {"type": type_name}
    elif isinstance(values := schema.get("enum"), list):
        narrowed["enum"] = [value for value in cast("list[Any]", values) if value is not None]
    return narrowed


def _references(schema: Any) -> set[str]:
    """Returns the names that a schema refers to."""
    if isinstance(schema, Mapping):
        schema = cast("Schema", schema)
        if isinstance(schema.get("$ref"), str):
            names = {schema["$ref"]}
        else:
            names = set[str]()
        return names.union(*map(_references, schema.values()))
    if isinstance(schema, list):
        return set[str]().union(*map(_references, cast("list[Any]", schema)))
    return set()
