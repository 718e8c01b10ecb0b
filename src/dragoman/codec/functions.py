"""Tools as most APIs have them: `{"type": "function", "function": {"name", "description",
"parameters"}}` ⇄ `ToolSpec`."""

from __future__ import annotations

from dragoman.codec.json_values import if_object, if_text, merge_wire_fields, read_extra_fields
from dragoman.codec.native import WireNative
from dragoman.json_bytes import Json, JsonMap
from dragoman.request import ToolSpec

__all__ = [
    "dump_function",
    "dump_tool",
    "load_function",
    "load_tool",
    "read_function_name",
    "collect_own_fields",
]

_ABSENT = "absent"
"""Wire form: the field was not there at all."""
_NO_ARGUMENTS: Json = {"type": "object", "properties": {}}


def read_function_name(entry: JsonMap) -> str:
    """The name in the `function` of a tool or call; empty where it has none."""
    return if_text(if_object(entry.get("function")).get("name"))


def collect_own_fields(outer: JsonMap, inner: JsonMap) -> Json:
    """What a tool or call has beside the neutral fields: `outer` ones of its own, `inner` ones of
    its `function`."""
    return {**outer, **({"function": inner} if inner else {})}


def load_tool(own: WireNative, tool: JsonMap) -> ToolSpec:
    """A tool that is a function, with or without its type."""
    form = {} if "type" in tool else {"type": _ABSENT}
    return load_function(
        own, if_object(tool.get("function")), read_extra_fields(tool, "type", "function"), form
    )


def load_function(
    own: WireNative,
    function: JsonMap,
    beside: JsonMap = {},
    form: JsonMap = {},
) -> ToolSpec:
    """A function → the tool. `beside`: further fields of the object that holds it; `form`: of that
    object."""
    description, parameters = (
        if_text(function.get("description")),
        if_object(function.get("parameters")),
    )
    left = read_extra_fields(
        function,
        "name",
        *(("description",) if description else ()),
        *(("parameters",) if parameters else ()),
    )
    form = form if "parameters" in function else {**form, "parameters": _ABSENT}
    name = if_text(function.get("name"))
    return ToolSpec(name, description, parameters, own.note(collect_own_fields(beside, left), form))


def dump_tool(own: WireNative, tool: ToolSpec, name: str) -> Json:
    """The inverse of `load_tool`, under that name."""
    kind = {} if "type" in own.form(tool.native) else {"type": "function"}
    return merge_wire_fields(
        {**kind, "function": dump_function(own, tool, name)},
        read_extra_fields(own.fields(tool.native), "function"),
    )


def dump_function(own: WireNative, tool: ToolSpec, name: str) -> Json:
    """The inverse of `load_function`, under that name."""
    fields = if_object(own.fields(tool.native).get("function"))
    function: Json = {"name": name}
    if tool.description:
        function["description"] = tool.description
    if tool.input_schema:
        function["parameters"] = tool.input_schema
    elif "parameters" not in fields and own.form(tool.native).get("parameters") != _ABSENT:
        function["parameters"] = _NO_ARGUMENTS
    return merge_wire_fields(function, fields)
