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
            root = _resolve_reference(name, definitions)
        strict = _make_strict(root, definitions)
        if strict.get("type") != "object":
            return None
        for key, schemas in definitions.items():
            strict[key] = {
                name: _make_strict(definition, definitions) for name, definition in schemas.items()
            }
    except _NotStrictError:
        return None
    return strict


def _make_strict(schema: Any, definitions: JsonMap) -> Json:
    """Returns a schema as OpenAI's strict mode takes it. Raises `_NotStrictError` if it cannot."""
    if not isinstance(schema, Mapping) or not schema.keys().isdisjoint(_CHANGING):
        raise _NotStrictError
    schema = _flatten_unions(cast("JsonMap", schema))
    out = {key: schema[key] for key in _KEPT if key in schema}
    if "$ref" in schema:
        _resolve_reference(str(schema["$ref"]), definitions)
        reference = {"$ref": schema["$ref"]}
        # Strict mode refuses keywords beside a reference: they go around it, on a union of one.
        if out:
            return {"anyOf": [reference], **out}
        return reference
    if "anyOf" in schema:
        return {"anyOf": _list_choices(schema["anyOf"], definitions), **out}
    type_name = _infer_types(schema)
    if type_name == "object":
        return {"type": type_name, **out, **_close_object(schema, definitions)}
    if type_name == "array":
        return {"type": type_name, **out, "items": _make_strict(schema.get("items"), definitions)}
    return {"type": type_name, **out}


def _list_choices(choices: Any, definitions: JsonMap) -> list[Json]:
    """Returns the strict form of each schema in a union of a schema."""
    if not isinstance(choices, list):
        raise _NotStrictError
    return [_make_strict(choice, definitions) for choice in cast("list[Any]", choices)]


def _close_object(schema: JsonMap, definitions: JsonMap) -> Json:
    """Returns the strict schema of an object with its properties only, all of them required."""
    properties = schema.get("properties")
    # Without properties it is a mapping with free keys: closed, it could hold nothing.
    if not isinstance(properties, Mapping) or (
        not properties and schema.get("additionalProperties") is not False
    ):
        raise _NotStrictError
    strict = {
        str(name): _make_strict(property_schema, definitions)
        for name, property_schema in cast("JsonMap", properties).items()
    }
    return {"properties": strict, "required": list(strict), "additionalProperties": False}


def _flatten_unions(schema: JsonMap) -> JsonMap:
    """Returns the strict schema with `oneOf` written as `anyOf`, and an `allOf` of one merged.
    Other unions that hold at once are not strict."""
    while isinstance(every := schema.get("allOf"), list):
        if len(cast("list[Any]", every)) != 1:
            raise _NotStrictError
        inner, beside = if_object(every[0]), read_extra_fields(schema, "allOf")
        # Two constraints by one keyword hold at once; merged, one of them would be lost.
        if any(
            inner.get(key, value) != value for key, value in beside.items() if key not in _WORDS
        ):
            raise _NotStrictError
        schema = {**inner, **beside}
    if "oneOf" in schema and "anyOf" not in schema:
        schema = {**read_extra_fields(schema, "oneOf"), "anyOf": schema["oneOf"]}
    # They would hold at once, such as properties beside a union, which strict mode cannot say.
    if len(_STRUCTURE & schema.keys()) > 1:
        raise _NotStrictError
    return schema


def _infer_types(schema: JsonMap) -> Any:
    """Returns the type or types, inferred from the values if the strict schema has none. `["x",
    "null"]` is `x`."""
    type_value: Any = schema.get("type")
    if type_value is None:
        type_value = _infer_type(schema)
    if isinstance(type_value, list):
        type_value = _drop_null(cast("list[Any]", type_value))
    if isinstance(type_value, str):
        return type_value
    type_names: list[Any] = if_list(type_value)
    if not type_names or not all(isinstance(type_name, str) for type_name in type_names):
        raise _NotStrictError
    # A strict object or array has fields of its own, for which a list of types has no room.
    if _NESTING & set(type_names):
        raise _NotStrictError
    return type_names


def _infer_type(schema: JsonMap) -> str | list[str | None] | None:
    """Returns the type that the properties or the values of a strict schema imply; None if they
    imply none."""
    if "properties" in schema:
        return "object"
    if "enum" in schema:
        values: list[object] = if_list(schema["enum"])
    elif "const" in schema:
        values = [schema["const"]]
    else:
        return None
    return list(dict.fromkeys(_JSON_TYPES.get(type(value)) for value in values))


def _drop_null(type_names: list[Any]) -> Any:
    """Returns for a strict schema the only type beside `null`, or all types if there are more or
    none."""
    others = [type_name for type_name in type_names if type_name != "null"] or type_names
    if len(others) == 1:
        return others[0]
    return type_names


def _resolve_reference(name: str, definitions: JsonMap) -> JsonMap:
    """Returns the definition that a reference in a strict schema names."""
    for key, schemas in definitions.items():
        if isinstance(
            definition := schemas.get(name.removeprefix(f"#/{key}/")), Mapping
        ) and name.startswith(f"#/{key}/"):
            return cast("JsonMap", definition)
    raise _NotStrictError
