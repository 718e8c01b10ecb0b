"""JSON Schema ↔ the subset of OpenAPI 3.0 that the API's older fields take (`parameters`,
`responseSchema`).

`lift` reads that subset as JSON Schema. `lower` writes it: `$ref` is put in its place (a recursion
ends in an object of any kind), `null` becomes `nullable`, `const` an `enum`, `oneOf` an `anyOf`,
`allOf` is merged, and what the subset has no word for is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

from dragoman.codec.json_values import if_list, if_object
from dragoman.json_bytes import Json, JsonMap

__all__ = ["dump_older", "lift", "load_older", "lower"]

_NAMES = ("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL")
_TYPES: Mapping[str, Mapping[str, str | int]] = {
    "upper": {name.lower(): name for name in _NAMES},
    "lower": {name.lower(): name.lower() for name in _NAMES},
    "number": {name.lower(): number for number, name in enumerate(_NAMES, 1)},
}
"""How types may be written → JSON Schema's type → the API's: `STRING` as its own enum has it,
`string`, or `1`, as clients of gRPC's JSON write enums."""
_LIFTED: Mapping[Any, str] = {
    **{name: kind for kind, name in _TYPES["upper"].items()},
    **{number: kind for kind, number in _TYPES["number"].items()},
}
_KEPT = (
    "default", "description", "enum", "example", "format", "maxItems", "maxLength", "maxProperties", "maximum", "minItems",
    "minLength", "minProperties", "minimum", "pattern", "propertyOrdering", "property_ordering", "required", "title",
)  # fmt: skip
_STRING_FORMATS = ("date-time", "enum")
_MOST_REFERENCES = 1000
"""Definitions that are put in place of references at most; beyond, as for a recursion, an object of
any kind. Definitions that name each other twice would else grow without bound."""
_MAPS, _LISTS, _SINGLE = ("properties",), ("anyOf",), ("items",)

Schema = JsonMap


def lift(schema: Schema) -> Json:
    """Converts a schema in Gemini's subset of OpenAPI to JSON Schema."""
    out = _convert_inner_schemas(schema, _lift_inner)
    nullable = out.pop("nullable", False)
    type_name = out.get("type")
    if isinstance(type_name, (str, int)) and type_name in _LIFTED and type_name is not True:
        out["type"] = type_name = _LIFTED[type_name]
    if nullable is True and isinstance(type_name, str):
        out["type"] = [type_name, "null"]
        if isinstance(out.get("enum"), list):
            out["enum"] = [*out["enum"], None]
    elif nullable is True and isinstance(out.get("anyOf"), list):
        out["anyOf"] = [*out["anyOf"], {"type": "null"}]
    elif "nullable" in schema:
        out["nullable"] = nullable
    return out


def lower(schema: Schema, *, types: str = "upper") -> Json:
    """Converts a JSON Schema to Gemini's subset of OpenAPI. `types`: how types are written,
    `upper`, `lower` or `number`."""
    definitions = {
        f"#/{key}/{name}": definition
        for key in ("$defs", "definitions")
        for name, definition in if_object(schema.get(key)).items()
    }
    return _Lowering({"#": schema, **definitions}, _TYPES[types]).schema(schema, ())


def load_older(schema: Schema) -> tuple[Json, str]:
    """Converts a Gemini schema of the older subset to JSON Schema, and its form: how types were
    written, or that it is kept as it is."""
    lifted = lift(schema)
    for types in _TYPES:
        if lower(lifted, types=types) == schema:
            return lifted, types
    return dict(schema), "raw"


def dump_older(schema: Schema, form: str) -> Schema:
    """Returns a lifted schema in the form that it had. Reverses `load_older`."""
    return lower(schema, types=form) if form in _TYPES else schema


def _lift_inner(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        return lift(cast("Schema", schema))
    return schema


class _Lowering:
    """One schema on its way into the subset."""

    def __init__(self, definitions: JsonMap, types: Mapping[str, str | int]) -> None:
        self._definitions = definitions
        self._allowed_types = types
        self._left = _MOST_REFERENCES

    def schema(self, schema: Any, within: tuple[str, ...]) -> Json:
        """Returns a Gemini schema that stands within the definitions of these names."""

        def deeper(inner: Any) -> Json:
            return self.schema(inner, within)

        # `true`: anything.
        if not isinstance(schema, Mapping):
            return {}
        schema = cast("Schema", schema)
        if isinstance(name := schema.get("$ref"), str):
            beside = {
                key: value
                for key, value in schema.items()
                if key not in ("$ref", "$defs", "definitions")
            }
            self._left -= 1
            if name in within or name not in self._definitions or self._left < 0:
                return {
                    "type": self._allowed_types["object"],
                    **_convert_inner_schemas(beside, deeper, _KEPT),
                }
            return self.schema({**if_object(self._definitions[name]), **beside}, (*within, name))
        if "allOf" in schema:
            schema = _all_of(schema, self._definitions)
        out = _convert_inner_schemas(schema, deeper, _KEPT)
        types, nullable = _allowed_types(schema)
        choices = [
            if_object(choice) for key in ("anyOf", "oneOf") for choice in if_list(schema.get(key))
        ]
        if len(types) > 1:
            choices += [{"type": type_name} for type_name in types]
        if non_null := [one for one in choices if one.get("type") != "null"]:
            nullable = nullable or len(non_null) < len(choices)
            if len(non_null) == 1 and nullable:
                out = {**deeper(non_null[0]), **out}
            else:
                out["anyOf"] = [deeper(one) for one in non_null]
        if types == ["string"] and out.get("format") not in _STRING_FORMATS:
            out.pop("format", None)
        if len(types) == 1:
            out["type"] = self._allowed_types.get(types[0], types[0])
        if "const" in schema:
            out["enum"] = [schema["const"]]
        if isinstance(out.get("enum"), list):
            nullable = nullable or None in out["enum"]
            out["enum"] = [value for value in out["enum"] if value is not None]
            _name_values(out, self._allowed_types["string"])
        if nullable:
            out["nullable"] = True
        elif isinstance(schema.get("nullable"), bool):
            out["nullable"] = schema["nullable"]
        return out


def _join_names(names: list[Any], more: list[Any]) -> list[Any]:
    """Returns names and then those of `more` that are not among them."""
    return [*names, *(name for name in more if name not in names)]


def _all_of(schema: Schema, definitions: JsonMap) -> Json:
    """Returns a Gemini schema with its `allOf` put in: objects' properties and lists of what is
    required are joined."""
    out = {key: value for key, value in schema.items() if key != "allOf"}
    for part in map(if_object, if_list(schema["allOf"])):
        for key, value in if_object(definitions.get(str(part.get("$ref")), part)).items():
            if key in ("properties", "$defs") and key in out:
                out[key] = {**if_object(out[key]), **if_object(value)}
            elif key == "required" and key in out:
                out[key] = _join_names(if_list(out[key]), if_list(value))
            else:
                out.setdefault(key, value)
    return out


def _name_values(out: Json, text: str | int) -> None:
    """Moves an enum that holds other values than strings to the schema's description: Gemini's
    subset has none."""
    if not all(isinstance(value, str) for value in out["enum"]):
        values = f"One of: {', '.join(map(str, out.pop('enum')))}"
        if out.get("description"):
            out["description"] = f"{out['description']} {values}"
        else:
            out["description"] = values
    elif "type" not in out:
        out["type"] = text


def _allowed_types(schema: Schema) -> tuple[list[str], bool]:
    """Returns the types that a schema for Gemini allows, and whether null is."""
    type_value = schema.get("type")
    kinds = [
        type_name
        for type_name in ([type_value] if isinstance(type_value, str) else if_list(type_value))
        if isinstance(type_name, str)
    ]
    some = [each for each in kinds if each != "null"]
    if not some and "properties" in schema:
        some = ["object"]
    return some, len(some) < len(kinds)


def _convert_inner_schemas(
    schema: Schema, deeper: Any, keys: Collection[str] | None = None
) -> Json:
    """Returns the Gemini schema with `deeper` done to those inside it; of its other keys only
    `keys`, where those are given."""
    out: Json = {}
    for key, value in schema.items():
        if key in _MAPS and isinstance(value, Mapping):
            out[key] = {name: deeper(inner) for name, inner in cast("Schema", value).items()}
        elif key in _SINGLE and isinstance(value, Mapping):
            out[key] = deeper(value)
        elif key in _LISTS and keys is None and isinstance(value, list):
            out[key] = [deeper(one) for one in cast("list[Any]", value)]
        elif keys is None or key in keys:
            out[key] = value
    return out
