"""A JSON Schema → the subset of it that OpenAI's strict mode takes. A pure function.

Whatever satisfies the result satisfies the schema as it was, annotations and formats aside: objects
are closed, every property is required, `["x", "null"]` becomes `x`. A property that may be null as
one of `anyOf` (as pydantic writes `Optional`) stays so. A schema whose meaning this would change,
such as a mapping with free keys, is not strict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dragoman.codec.json_values import if_list, if_object, read_extra_fields
from dragoman.json_bytes import Json, JsonMap

__all__ = ["strict_schema"]

_KEPT = (
    "title",
    "description",
    "enum",
    "const",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
)
"""Keywords that stay as they are. Others that only narrow or annotate (`format`, `default`,
`minLength`, …) are dropped: the answer is validated against the whole schema anyway."""
_CHANGING = (
    "not",
    "if",
    "patternProperties",
    "dependentRequired",
    "dependentSchemas",
    "prefixItems",
    "contains",
    "propertyNames",
    "unevaluatedProperties",
)
"""Keywords that strict mode does not know and that cannot be left out."""
_STRUCTURE = {"$ref", "anyOf", "oneOf", "properties", "items"}
"""Keywords of which a strict schema has one."""
_WORDS = ("title", "description", "default", "examples")
"""Keywords that narrow nothing: the outer one counts."""
_NESTING = {"object", "array"}
_JSON_TYPES: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


class _NotStrictError(Exception):
    """The schema says what strict mode cannot."""


def strict_schema(schema: JsonMap) -> Json | None:
    """Returns the strict form of a schema, or None if it has none."""
    definitions = {
        key: schema[key] for key in ("$defs", "definitions") if isinstance(schema.get(key), Mapping)
    }
    try:
        root = schema
        seen: set[str] = set()
        # Strict mode wants an object at the root, pydantic writes a recursive model as a reference.
        while "$ref" in root:
            if (name := str(root["$ref"])) in seen:
                return None
            seen.add(name)
            root = _resolve(name, definitions)
        strict = _strict(root, definitions)
        if strict.get("type") != "object":
            return None
        for key, schemas in definitions.items():
            strict[key] = {
                name: _strict(definition, definitions) for name, definition in schemas.items()
            }
    except _NotStrictError:
        return None
    return strict


def _strict(schema: Any, definitions: JsonMap) -> Json:
    if not isinstance(schema, Mapping) or any(key in schema for key in _CHANGING):
        raise _NotStrictError
    schema = _flat(cast("JsonMap", schema))
    out = {key: schema[key] for key in _KEPT if key in schema}
    if "$ref" in schema:
        _resolve(str(schema["$ref"]), definitions)
        reference = {"$ref": schema["$ref"]}
        # A reference takes nothing beside it.
        return {"anyOf": [reference], **out} if out else reference
    if "anyOf" in schema:
        if not isinstance(schema["anyOf"], list):
            raise _NotStrictError
        return {
            "anyOf": [
                _strict(choice, definitions) for choice in cast("list[Any]", schema["anyOf"])
            ],
            **out,
        }
    type_name = _type(schema)
    if type_name == "object":
        return {"type": type_name, **out, **_close_object(schema, definitions)}
    if type_name == "array":
        return {"type": type_name, **out, "items": _strict(schema.get("items"), definitions)}
    return {"type": type_name, **out}


def _close_object(schema: JsonMap, definitions: JsonMap) -> Json:
    """Returns an object with its properties only, all of them required."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or (
        not properties and schema.get("additionalProperties") is not False
    ):
        raise _NotStrictError
    strict = {
        str(name): _strict(property_schema, definitions)
        for name, property_schema in cast("JsonMap", properties).items()
    }
    return {"properties": strict, "required": list(strict), "additionalProperties": False}


def _flat(schema: JsonMap) -> JsonMap:
    """Returns the schema with `oneOf` written as `anyOf`, and an `allOf` of one merged. Other
    unions that hold at once are not strict."""
    while isinstance(every := schema.get("allOf"), list):
        if len(cast("list[Any]", every)) != 1:
            raise _NotStrictError
        inner, beside = if_object(every[0]), read_extra_fields(schema, "allOf")
        if any(
            inner.get(key, value) != value for key, value in beside.items() if key not in _WORDS
        ):
            raise _NotStrictError
        schema = {**inner, **beside}
    if "oneOf" in schema and "anyOf" not in schema:
        schema = {**read_extra_fields(schema, "oneOf"), "anyOf": schema["oneOf"]}
    if len(_STRUCTURE & schema.keys()) > 1:
        raise _NotStrictError
    return schema


def _type(schema: JsonMap) -> Any:
    """Returns the type or types, inferred from the values if the schema has none. `["x", "null"]`
    is `x`."""
    type_value: Any = schema.get("type")
    if type_value is None and "properties" in schema:
        return "object"
    if type_value is None and ("enum" in schema or "const" in schema):
        if "enum" in schema:
            values: list[object] = if_list(schema["enum"])
        else:
            values = [schema["const"]]
        type_value = list(dict.fromkeys(_JSON_TYPES.get(type(value)) for value in values))
    if isinstance(type_value, list):
        kinds = [
            type_name for type_name in cast("list[Any]", type_value) if type_name != "null"
        ] or cast("list[Any]", type_value)
        if len(kinds) == 1:
            type_value = kinds[0]
        else:
            type_value = cast("Any", type_value)
    if isinstance(type_value, list):
        kinds = cast("list[Any]", type_value)
    else:
        kinds = [type_value]
    if (
        not kinds
        or not all(isinstance(type_name, str) for type_name in kinds)
        or (isinstance(type_value, list) and _NESTING & set(kinds))
    ):
        raise _NotStrictError
    return cast("Any", type_value)


def _resolve(name: str, definitions: JsonMap) -> JsonMap:
    """Returns the definition that a reference names."""
    for key, schemas in definitions.items():
        if isinstance(
            definition := schemas.get(name.removeprefix(f"#/{key}/")), Mapping
        ) and name.startswith(f"#/{key}/"):
            return cast("JsonMap", definition)
    raise _NotStrictError
