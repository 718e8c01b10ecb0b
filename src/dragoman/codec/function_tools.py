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
    """Returns the name in the `function` of a tool or call; empty where it has none."""
    return if_text(if_object(entry.get("function")).get("name"))


def collect_own_fields(outer: JsonMap, inner: JsonMap) -> Json:
    """Returns the fields of a function tool or its call that have no neutral name: `outer` fields
    of its own, `inner` ones of its `function`."""
    if inner:
        return {**outer, "function": inner}
    return {**outer}


def load_tool(wire_native: WireNative, tool: JsonMap) -> ToolSpec:
    """Reads a function tool, with or without its type."""
    form = {} if "type" in tool else {"type": _ABSENT}
    return load_function(
        wire_native,
        if_object(tool.get("function")),
        read_extra_fields(tool, "type", "function"),
        form,
    )


def load_function(
    wire_native: WireNative,
    function: JsonMap,
    beside: JsonMap = {},
    form: JsonMap = {},
) -> ToolSpec:
    """Reads the `function` of a tool. `beside`: further fields of the object that holds it; `form`:
    the wire form of that object."""
    description, parameters = (
        if_text(function.get("description")),
        if_object(function.get("parameters")),
    )
    # Empty ones are not written by a dump, so they stay among the wire's own fields.
    read_names = ["name"]
    if description:
        read_names.append("description")
    if parameters:
        read_names.append("parameters")
    function_fields = read_extra_fields(function, *read_names)
    if "parameters" not in function:
        form = {**form, "parameters": _ABSENT}
    name = if_text(function.get("name"))
    return ToolSpec(
        name,
        description,
        parameters,
        wire_native.note(collect_own_fields(beside, function_fields), form),
    )


def dump_tool(wire_native: WireNative, tool: ToolSpec, name: str) -> Json:
    """Writes a function tool under that name. Reverses `load_tool`."""
    if "type" in wire_native.form(tool.native):
        type_field = {}
    else:
        type_field = {"type": "function"}
    return merge_wire_fields(
        {**type_field, "function": dump_function(wire_native, tool, name)},
        read_extra_fields(wire_native.fields(tool.native), "function"),
    )


def dump_function(wire_native: WireNative, tool: ToolSpec, name: str) -> Json:
    """Writes the `function` of a tool under that name. Reverses `load_function`."""
    fields = if_object(wire_native.fields(tool.native).get("function"))
    function: Json = {"name": name}
    if tool.description:
        function["description"] = tool.description
    if tool.input_schema:
        function["parameters"] = tool.input_schema
    elif "parameters" not in fields and wire_native.form(tool.native).get("parameters") != _ABSENT:
        function["parameters"] = _NO_ARGUMENTS
    return merge_wire_fields(function, fields)
