"""Tools of a request ⇄ `ToolSpec` (functions) and `ServerTool` (what the provider runs)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.codec.json_values import if_object, if_text, merged, rest
from dragoman.request import ServerTool, ToolSpec
from dragoman.wires.mistral.calls import spelled_name
from dragoman.wires.mistral.quirks import OWN

__all__ = ["dump_tool", "is_tool", "load_tool"]

_NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}


def is_tool(tool: Mapping[str, Any]) -> bool:
    """Whether it can be read as one of `tools`."""
    return if_text(tool.get("type")) != "" or ("type" not in tool and _is_function(tool))


def load_tool(tool: Mapping[str, Any]) -> ToolSpec | ServerTool:
    """One of `tools`."""
    if not _is_function(tool):
        return ServerTool(tool["type"], rest(tool, "type"))
    function = if_object(tool.get("function"))
    name, description = if_text(function["name"]), if_text(function.get("description"))
    parameters = if_object(function.get("parameters"))
    own = rest(function, "name", *(("description",) if description else ()), *(("parameters",) if parameters else ()))
    spelled = {
        **({} if "type" in tool else {"type": "absent"}),
        **({} if "parameters" in function else {"parameters": "absent"}),
        **spelled_name(name),
    }
    fields = {**rest(tool, "type", "function"), **({"function": own} if own else {})}
    return ToolSpec(name, description, parameters, OWN.note(fields, spelled))


def dump_tool(tool: ToolSpec | ServerTool, name: Callable[[str], str]) -> dict[str, Any]:
    """A tool → one of `tools`. `name`: its name → the one that it is sent under."""
    if isinstance(tool, ServerTool):
        return {"type": tool.name, **tool.options}
    own, spelled = OWN.fields(tool.native), OWN.form(tool.native)
    function: dict[str, Any] = {"name": name(tool.name)}
    if tool.description:
        function["description"] = tool.description
    if tool.input_schema:
        function["parameters"] = tool.input_schema
    elif "parameters" not in own.get("function", {}) and "parameters" not in spelled:
        function["parameters"] = _NO_ARGUMENTS
    around = {"function": function} if "type" in spelled else {"type": "function", "function": function}
    return merged(around, own)


def _is_function(tool: Mapping[str, Any]) -> bool:
    return tool.get("type", "function") == "function" and if_text(if_object(tool.get("function")).get("name")) != ""
