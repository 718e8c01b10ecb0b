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

    kept: frozenset[str]
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
    """The schema in that dialect; `None` where it has no form in it."""
    definitions = {
        f"#/{key}/{name}": each
        for key in _DEFINITIONS
        for name, each in if_object(schema.get(key)).items()
    }
    fitting = _Fitting(dialect, {"#": schema, **definitions})
    try:
        out = fitting.schema(*fitting.root())
        for key in _DEFINITIONS:
            if isinstance(schema.get(key), Mapping):
                out[key] = {
                    name: fitting.schema(one, f"#/{key}/{name}")
                    for name, one in schema[key].items()
                }
    except _NoFormError:
        return None
    return out


class _Fitting:
    """One schema on its way into a dialect."""

    def __init__(self, dialect: JsonDialect, definitions: JsonMap) -> None:
        self._dialect = dialect
        self._definitions = definitions
        self._reach = {name: _references(each) for name, each in definitions.items()}

    def root(self) -> tuple[Any, str]:
        """The schema of the whole, and the definition that it stands in: pydantic writes a
        recursive model as a reference."""
        name, seen = "#", set[str]()
        while "$ref" in (schema := if_object(self._definitions.get(name))) and name not in seen:
            seen.add(name)
            name = str(schema["$ref"])
        if name in seen or name not in self._definitions:
            raise _NoFormError
        return schema, name

    def schema(self, schema: Any, within: str) -> Json:
        """A schema that stands within the definition of that name."""
        if not isinstance(schema, Mapping):  # `true`: anything
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
            return {"anyOf": [self.schema(_of(schema, kind), within) for kind in kinds]}
        out = (
            {"type": schema["type"], **self._beside(schema)}
            if "type" in schema
            else self._beside(schema)
        )
        if "object" in (*kinds, schema.get("type")) or "properties" in schema:
            out |= self._object(schema, within)
        if "items" in schema:
            out["items"] = self.schema(schema["items"], within)
        if "prefixItems" in out:
            out["prefixItems"] = [self.schema(one, within) for one in if_list(out["prefixItems"])]
        if not out and self._dialect.closed:
            raise _NoFormError
        return out

    def _reference(self, schema: Schema, within: str) -> Json:
        """A reference takes nothing beside it."""
        if str(schema["$ref"]) not in self._reach or (
            not self._dialect.recursive and self._returns(schema, within)
        ):
            raise _NoFormError
        reference = {"$ref": schema["$ref"]}
        beside = self._beside(schema)
        return {"anyOf": [reference], **beside} if beside else reference

    def _object(self, schema: Schema, within: str) -> Json:
        properties = if_object(schema.get("properties"))
        free, known = schema.get("additionalProperties", not properties), self._dialect
        if known.closed and free not in (False, True):
            raise _NoFormError
        if known.closed and free and not properties:
            raise _NoFormError
        out: Json = {}
        if properties:
            out["properties"] = {
                str(name): self.schema(one, within) for name, one in properties.items()
            }
        required = list(dict.fromkeys(map(str, if_list(schema.get("required")))))
        if known.cut_recursion:
            required = [
                name for name in required if not self._returns(properties.get(name), within)
            ]
        if properties and (required or known.some_required):
            out["required"] = required or list(out["properties"])
        if known.closed:
            out["additionalProperties"] = False
        elif known.free and "additionalProperties" in schema:
            out["additionalProperties"] = (
                free if isinstance(free, bool) else self.schema(free, within)
            )
        return out

    def _beside(self, schema: Schema) -> Json:
        """Annotations and constraints: those that the dialect knows, and the others in words."""
        known = self._dialect
        out: Json = {}
        words: list[str] = []
        for key, value in schema.items():
            if key == "const" and not known.const:
                out["enum"] = [value]
            elif key in known.kept and (key not in known.only or value in list(known.only[key])):
                out[key] = value
            elif (
                key not in _READ
                and key not in _SILENT
                and key not in _DEFINITIONS
                and key != "description"
            ):
                words.append(f"{key}: {json_bytes.encode(value).decode()}")
        if words:
            before = [str(schema["description"])] if schema.get("description") else []
            out["description"] = "\n".join([*before, *words])
        return out

    def _flat(self, schema: Schema) -> Schema:
        """`oneOf` as `anyOf`, and an `allOf` as one schema."""
        if isinstance(every := schema.get("allOf"), list):
            ones = [if_object(one) for one in cast("list[Any]", every)]
            if len(ones) > 1:
                ones = [self._referred(one) for one in ones]
            flat: Json = {}
            for one in (*ones, {key: value for key, value in schema.items() if key != "allOf"}):
                flat = {**flat, **one, **_joined(flat, one)}
            schema = flat
        if "oneOf" in schema and "anyOf" not in schema:
            schema = {
                **{key: value for key, value in schema.items() if key != "oneOf"},
                "anyOf": schema["oneOf"],
            }
        return schema

    def _referred(self, schema: Schema) -> Schema:
        """What a schema refers to, where it is a reference."""
        if "$ref" not in schema:
            return schema
        found = if_object(self._definitions.get(str(schema["$ref"])))
        if not found or "$ref" in found or "allOf" in found:
            raise _NoFormError
        return found

    def _returns(self, schema: Any, within: str) -> bool:
        """Whether what stands in a schema leads back to the definition that it stands within."""
        waiting, seen = list(_references(schema)), set[str]()
        while waiting:
            if (name := waiting.pop()) == within:
                return True
            if name not in seen:
                seen.add(name)
                waiting += self._reach.get(name, ())
        return False


def _joined(one: Schema, other: Schema) -> Json:
    """The properties of two schemas that are to hold at once."""
    properties = {**if_object(one.get("properties")), **if_object(other.get("properties"))}
    required = [*if_list(one.get("required")), *if_list(other.get("required"))]
    return {
        **({"properties": properties} if properties else {}),
        **({"required": required} if required else {}),
    }


def _of(schema: Schema, kind: Any) -> Json:
    """A schema of several types, as far as it says something of one of them."""
    one = {**schema, "type": kind}
    if kind == "null":
        one = {"type": kind}
    elif isinstance(values := schema.get("enum"), list):
        one["enum"] = [value for value in cast("list[Any]", values) if value is not None]
    return one


def _references(schema: Any) -> set[str]:
    """The names that a schema refers to."""
    if isinstance(schema, Mapping):
        schema = cast("Schema", schema)
        found = {schema["$ref"]} if isinstance(schema.get("$ref"), str) else set[str]()
        return found.union(*map(_references, schema.values()))
    return (
        set[str]().union(*map(_references, cast("list[Any]", schema)))
        if isinstance(schema, list)
        else set()
    )
