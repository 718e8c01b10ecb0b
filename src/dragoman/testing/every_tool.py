"""`call_every_tool`: an answer function for `ScriptedModel` that calls all tools and fills the
output schema, to exercise a whole agent."""

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
"""An example of each string format of JSON Schema."""


def call_every_tool(request: ModelRequest) -> Sequence[Content | str]:
    """Returns an answer to any request. It calls all tools at once, with arguments that match their
    schemas. After their results it gives a value that matches the output schema, or a text.

    `Agent(ScriptedModel(call_every_tool), tools=…)` runs all tools of an agent once.
    """
    schemas = {tool.name: tool.input_schema for tool in request.tools if isinstance(tool, ToolSpec)}
    answered = bool(request.messages and request.messages[-1].tool_results)
    result = None
    if request.output_schema is None:
        result = schemas.pop(RETURN_RESULT, None)
    if schemas and not answered:
        return [call(name, **if_object(make_value(schema))) for name, schema in schemas.items()]
    if result is not None:
        return [call(RETURN_RESULT, **if_object(make_value(result)))]
    if request.output_schema is not None:
        return [msgspec.json.encode(make_value(request.output_schema)).decode()]
    return ["Done."]


def make_value(schema: Any, root: Any = None, depth: int = 0) -> Any:
    """Returns a value for a tool's argument that matches a JSON Schema, always the same one.
    Objects have only their required properties, and the first of several choices is taken. Patterns
    of strings are ignored. A recursive schema ends in `None`."""
    if root is None:
        root = schema
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
    default_type = "object" if "properties" in rule else "string"
    types = rule.get("type", default_type)
    if isinstance(types, list):
        types = if_list(types)[0]
    return _MAKERS.get(types, _make_text)(rule, root, depth)


def _merge_all(rule: JsonMap, root: Any) -> JsonMap:
    """Returns the schema of a tool's argument merged with the schemas of its `allOf`."""
    merged: Json = {}
    for part in if_list(rule.get("allOf")):
        fields = if_object(part)
        if "$ref" in fields:
            fields = if_object(_resolve_reference(root, fields["$ref"]))
        merged |= fields
    return {**merged, **rule}


def _make_object(rule: JsonMap, root: Any, depth: int) -> Json:
    """Returns as a tool's argument an object with the required properties."""
    fields = if_object(rule.get("properties"))
    required = if_list(rule.get("required"))
    return {name: make_value(fields.get(name, True), root, depth + 1) for name in required}


def _make_array(rule: JsonMap, root: Any, depth: int) -> list[Any]:
    """Returns as a tool's argument an array with as few items as the schema allows, but one if it
    may have any."""
    heads = [make_value(item, root, depth + 1) for item in if_list(rule.get("prefixItems"))]
    # One item shows most; deep within a schema that holds itself none ends it sooner.
    least = 0 if heads or depth > 2 else 1
    missing = rule.get("minItems", least) - len(heads)
    return heads + [make_value(rule.get("items", True), root, depth + 1) for _ in range(missing)]


def _make_text(rule: JsonMap, root: Any, depth: int) -> str:  # noqa: ARG001 - as all makers
    """Returns a text with the format and length of the schema."""
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
"""Type of a schema → function that makes its value; texts for all other types."""


def _make_number(rule: JsonMap, edge: float) -> Any:
    """Returns as a tool's argument 1, or the lowest number that the bounds allow. `edge`: distance
    from an excluded bound."""
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
        # Rounds up: floor division of the negated number.
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
    """Returns the schema of a tool's argument at a `$ref` within `root`, or `True`, which accepts
    anything, if it leads nowhere."""
    value: Any = root
    for step in reference.removeprefix("#").split("/")[1:]:
        # The escapes of JSON Pointer (RFC 6901), in this order.
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(value, Mapping):
            return True
        value = cast("JsonMap", value).get(name, True)
    return value
