"""A model that does whatever it is asked for: it calls every tool, and fills the schema. To see
that all of an agent runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import if_list, if_object
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Content
from dragoman.orchestration.iteration import RETURN_RESULT
from dragoman.request import ModelRequest, ToolSpec
from dragoman.testing.scripted_answer import call

__all__ = ["make_value", "call_every_tool"]

_DEEP = 8
_STRINGS: Mapping[str, str] = {
    "date-time": "2026-01-31T12:00:00Z",
    "date": "2026-01-31",
    "time": "12:00:00Z",
    "duration": "PT1M",
    "email": "ada@example.org",
    "uri": "https://example.org/",
    "uuid": "6f1c1c0e-8c1d-4f6e-9d0a-3b6f0c2a7e51",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
}
"""Format of a string → one of that format."""


def call_every_tool(request: ModelRequest) -> Sequence[Content | str]:
    """Returns an answer to any request: calls of all tools at once, with arguments that fit their
    schemas; after their results a value that fits the schema of the output, or a text.
    `ScriptedModel(call_every_tool)` is a model that gives nothing else."""
    schemas = {tool.name: tool.input_schema for tool in request.tools if isinstance(tool, ToolSpec)}
    answered = bool(request.messages and request.messages[-1].tool_results)
    result = schemas.pop(RETURN_RESULT, None) if request.output_schema is None else None
    if schemas and not answered:
        return [call(name, **if_object(make_value(schema))) for name, schema in schemas.items()]
    if result is not None:
        return [call(RETURN_RESULT, **if_object(make_value(result)))]
    if request.output_schema is not None:
        return [msgspec.json.encode(make_value(request.output_schema)).decode()]
    return ["Done."]


def make_value(schema: Any, root: Any = None, depth: int = 0) -> Any:
    """Returns a value that fits a JSON Schema, always the same: of an object what is required, of a
    choice the first. Patterns of strings are not followed, and a schema that holds itself ends in
    `None`."""
    root = schema if root is None else root
    rule = if_object(schema)
    if depth > _DEEP:
        return None
    for keyword in ("const", "default"):
        if keyword in rule:
            return rule[keyword]
    if examples := if_list(rule.get("enum")) or if_list(rule.get("examples")):
        return examples[0]
    if isinstance(reference := rule.get("$ref"), str):
        return make_value(_resolve_reference(root, reference), root, depth + 1)
    if choices := if_list(rule.get("anyOf")) or if_list(rule.get("oneOf")):
        return make_value(choices[0], root, depth + 1)
    rule = _merge_all(rule, root)
    types = rule.get("type", "object" if "properties" in rule else "string")
    type_name = if_list(types)[0] if isinstance(types, list) else types
    return _MAKERS.get(type_name, _make_text)(rule, root, depth)


def _merge_all(rule: JsonMap, root: Any) -> JsonMap:
    """Returns a schema with the fields of those that all must hold (`allOf`)."""
    merged: Json = {}
    for part in if_list(rule.get("allOf")):
        fields = if_object(part)
        merged |= (
            if_object(_resolve_reference(root, fields["$ref"])) if "$ref" in fields else fields
        )
    return {**merged, **rule}


def _make_object(rule: JsonMap, root: Any, depth: int) -> Json:
    fields = if_object(rule.get("properties"))
    required = if_list(rule.get("required"))
    return {name: make_value(fields.get(name, True), root, depth + 1) for name in required}


def _make_array(rule: JsonMap, root: Any, depth: int) -> list[Any]:
    heads = [make_value(item, root, depth + 1) for item in if_list(rule.get("prefixItems"))]
    # One item shows most; deep within a schema that holds itself none ends it sooner.
    least = 0 if heads or depth > 2 else 1
    missing = rule.get("minItems", least) - len(heads)
    return heads + [make_value(rule.get("items", True), root, depth + 1) for _ in range(missing)]


def _make_text(rule: JsonMap, root: Any, depth: int) -> str:  # noqa: ARG001 - as all makers
    text = _STRINGS.get(rule.get("format", ""), "text")
    return text.ljust(rule.get("minLength", 0), "x")[: rule.get("maxLength")]


_MAKERS: Mapping[Any, Callable[[JsonMap, Any, int], Any]] = {
    "object": _make_object,
    "array": _make_array,
    "integer": lambda rule, _root, _depth: _make_number(rule, 1),
    "number": lambda rule, _root, _depth: _make_number(rule, 0.001),
    "boolean": lambda _rule, _root, _depth: True,
    "null": lambda _rule, _root, _depth: None,
}
"""Type of a schema → what makes a value of it; all others are texts."""


def _make_number(rule: JsonMap, edge: float) -> Any:
    """Returns 1, or the least that the bounds allow. `edge`: how far it keeps from a bound that is
    excluded."""
    step = rule.get("multipleOf", 1)
    lowest = max(
        [
            rule[name] + by
            for name, by in (("minimum", 0), ("exclusiveMinimum", edge))
            if name in rule
        ],
        default=step,
    )
    if "multipleOf" in rule:
        lowest = -(-lowest // step) * step
    return min(
        [
            lowest,
            *(
                rule[name] - by
                for name, by in (("maximum", 0), ("exclusiveMaximum", edge))
                if name in rule
            ),
        ]
    )


def _resolve_reference(root: Any, reference: str) -> Any:
    """Returns what a reference within the schema leads to, or `True`, which takes anything, if that
    is nothing."""
    value: Any = root
    for step in reference.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        value = cast("JsonMap", value).get(name, True) if isinstance(value, Mapping) else True
    return value
