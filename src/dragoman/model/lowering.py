"""JSON Schema → the part of it that constrained decoding is sure to take, so that a request is not refused for it.

What is left out is looser, never tighter: the tool itself still checks its arguments by the whole schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

__all__ = ["arguments_schema", "lower"]

_KEPT = frozenset({
    "type", "const", "enum", "required", "additionalProperties", "minItems", "maxItems", "minLength", "maxLength",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "pattern", "format",
})  # fmt: skip
_MANY = ("anyOf", "oneOf", "allOf", "prefixItems")


def arguments_schema(schema: Mapping[str, Any], most: int) -> dict[str, Any]:
    """A tool's input schema → the schema of a list of one to `most` argument objects, with nothing but what it names."""
    definitions: dict[str, Any] = {}
    item = lower(schema, definitions)
    if item.get("type", "object") == "object" and not any(
        name in item for name in (*_MANY, "$ref")
    ):
        item = {
            "additionalProperties": False,
            **item,
            "type": "object",
            "properties": item.get("properties", {}),
        }
    whole: dict[str, Any] = {"type": "array", "minItems": 1, "maxItems": most, "items": item}
    return {**whole, "$defs": definitions} if definitions else whole


def lower(schema: Mapping[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """A schema → one that may stand anywhere. What it refers to within itself goes into `definitions`, the `$defs` of the whole.

    `true`, `false` and references to elsewhere become `{}`, which takes any value.
    """
    names: dict[str, str] = {}

    def walk(part: Any) -> dict[str, Any]:
        if not isinstance(part, Mapping):
            return {}
        node = cast("Mapping[str, Any]", part)
        if isinstance(reference := node.get("$ref"), str):
            return refer(reference)
        lowered: dict[str, Any] = {key: value for key, value in node.items() if key in _KEPT}
        for key in _MANY:
            if isinstance(choices := node.get(key), list):
                lowered[key] = [walk(each) for each in cast("list[Any]", choices)]
        for key in ("items", "additionalProperties"):
            if isinstance(node.get(key), Mapping):
                lowered[key] = walk(node[key])
        if isinstance(properties := node.get("properties"), Mapping):
            lowered["properties"] = {
                name: walk(each)
                for name, each in cast("Mapping[str, Any]", properties).items()
                if each is not False
            }
        return lowered

    def refer(reference: str) -> dict[str, Any]:
        if reference not in names:
            target = _find(schema, reference)
            if target is None:
                return {}
            names[reference] = f"d{len(definitions)}"
            definitions[names[reference]] = {}  # taken before it is walked: it may refer to itself
            definitions[names[reference]].update(walk(target))
        return {"$ref": f"#/$defs/{names[reference]}"}

    return walk(schema)


def _find(schema: Mapping[str, Any], reference: str) -> Any:
    """What a reference within the schema (`#`, `#/$defs/Name`) points to; `None`: nothing."""
    root, *path = reference.split("/")
    found: Any = schema if root == "#" else None
    for step in path:
        key = step.replace("~1", "/").replace("~0", "~")
        found = cast("Mapping[str, Any]", found).get(key) if isinstance(found, Mapping) else None
    return found
