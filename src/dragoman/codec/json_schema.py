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
    """The strict form of a schema; `None` where it has none."""
    definitions = {
        key: schema[key] for key in ("$defs", "definitions") if isinstance(schema.get(key), Mapping)
    }
    try:
        root = schema
        seen: set[str] = set()
        while (
            "$ref" in root
        ):  # strict mode wants an object at the root, pydantic writes a recursive model as a reference
            if (name := str(root["$ref"])) in seen:
                return None
            seen.add(name)
            root = _resolved(name, definitions)
        strict = _strict(root, definitions)
        if strict.get("type") != "object":
            return None
        for key, schemas in definitions.items():
            strict[key] = {name: _strict(one, definitions) for name, one in schemas.items()}
    except _NotStrictError:
        return None
    return strict


def _strict(schema: Any, definitions: JsonMap) -> Json:
    if not isinstance(schema, Mapping) or any(key in schema for key in _CHANGING):
        raise _NotStrictError
    schema = _flat(cast("JsonMap", schema))
    kept = {key: schema[key] for key in _KEPT if key in schema}
    if "$ref" in schema:
        _resolved(str(schema["$ref"]), definitions)
        reference = {"$ref": schema["$ref"]}
        return (
            {"anyOf": [reference], **kept} if kept else reference
        )  # a reference takes nothing beside it
    if "anyOf" in schema:
        if not isinstance(schema["anyOf"], list):
            raise _NotStrictError
        return {
            "anyOf": [_strict(one, definitions) for one in cast("list[Any]", schema["anyOf"])],
            **kept,
        }
    kind = _type(schema)
    if kind == "object":
        return {"type": kind, **kept, **_closed(schema, definitions)}
    if kind == "array":
        return {"type": kind, **kept, "items": _strict(schema.get("items"), definitions)}
    return {"type": kind, **kept}


def _closed(schema: JsonMap, definitions: JsonMap) -> Json:
    """An object with its properties only, all of them required."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or (
        not properties and schema.get("additionalProperties") is not False
    ):
        raise _NotStrictError
    strict = {
        str(name): _strict(one, definitions) for name, one in cast("JsonMap", properties).items()
    }
    return {"properties": strict, "required": list(strict), "additionalProperties": False}


def _flat(schema: JsonMap) -> JsonMap:
    """`oneOf` as `anyOf`, and an `allOf` of one as that one. What would have to hold at once
    otherwise is not strict."""
    while isinstance(every := schema.get("allOf"), list):
        if len(cast("list[Any]", every)) != 1:
            raise _NotStrictError
        one, beside = if_object(every[0]), read_extra_fields(schema, "allOf")
        if any(one.get(key, value) != value for key, value in beside.items() if key not in _WORDS):
            raise _NotStrictError
        schema = {**one, **beside}
    if "oneOf" in schema and "anyOf" not in schema:
        schema = {**read_extra_fields(schema, "oneOf"), "anyOf": schema["oneOf"]}
    if len(_STRUCTURE & schema.keys()) > 1:
        raise _NotStrictError
    return schema


def _type(schema: JsonMap) -> Any:
    """The type, or the types; told by the values where the schema does not say. `["x", "null"]` is
    `x`."""
    kind: Any = schema.get("type")
    if kind is None and "properties" in schema:
        return "object"
    if kind is None and ("enum" in schema or "const" in schema):
        values: list[object] = if_list(schema["enum"]) if "enum" in schema else [schema["const"]]
        kind = list(dict.fromkeys(_JSON_TYPES.get(type(value)) for value in values))
    if isinstance(kind, list):
        kinds = [one for one in cast("list[Any]", kind) if one != "null"] or cast("list[Any]", kind)
        kind = kinds[0] if len(kinds) == 1 else cast("Any", kind)
    kinds = cast("list[Any]", kind) if isinstance(kind, list) else [kind]
    if (
        not kinds
        or not all(isinstance(each, str) for each in kinds)
        or (isinstance(kind, list) and _NESTING & set(kinds))
    ):
        raise _NotStrictError
    return cast("Any", kind)


def _resolved(name: str, definitions: JsonMap) -> JsonMap:
    """What a reference points to: a definition of this schema."""
    for key, schemas in definitions.items():
        if isinstance(
            found := schemas.get(name.removeprefix(f"#/{key}/")), Mapping
        ) and name.startswith(f"#/{key}/"):
            return cast("JsonMap", found)
    raise _NotStrictError
