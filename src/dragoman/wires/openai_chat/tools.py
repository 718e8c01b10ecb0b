"""Tools of a request ⇄ `ToolSpec` (functions) and `ServerTool` (what the provider runs, and custom tools)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.codec.json_values import if_object, if_text, merged, rest
from dragoman.request import ServerTool, ToolSpec
from dragoman.wires.openai_chat.quirks import OWN

__all__ = ["dump_function", "dump_tool", "is_function", "is_tool", "load_function", "load_tool"]

_NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}


def is_tool(tool: Mapping[str, Any]) -> bool:
    """Whether it can be read as one of `tools`."""
    return if_text(tool.get("type")) != "" or ("type" not in tool and is_function(if_object(tool.get("function"))))


def is_function(function: Mapping[str, Any]) -> bool:
    """Whether it can be read as a function."""
    return if_text(function.get("name")) != ""


def load_tool(tool: Mapping[str, Any]) -> ToolSpec | ServerTool:
    """One of `tools`."""
    function = if_object(tool.get("function"))
    if not is_function(function) or tool.get("type", "function") != "function":
        return ServerTool(tool["type"], rest(tool, "type"))
    return load_function(function, rest(tool, "type", "function"), {} if "type" in tool else {"type": "absent"})


def load_function(
    function: Mapping[str, Any], around: Mapping[str, Any] = {}, spelled: Mapping[str, Any] = {}
) -> ToolSpec:
    """A function → the tool. `around`: further fields of the object that holds it; `spelled`: how that one was spelled."""
    description, parameters = if_text(function.get("description")), if_object(function.get("parameters"))
    own = rest(function, "name", *(("description",) if description else ()), *(("parameters",) if parameters else ()))
    spelled = dict(spelled) if "parameters" in function else {**spelled, "parameters": "absent"}
    fields = {**around, **({"function": own} if own else {})}
    return ToolSpec(if_text(function.get("name")), description, parameters, OWN.note(fields, spelled))


def dump_tool(tool: ToolSpec | ServerTool, name: Callable[[str], str]) -> dict[str, Any]:
    """A tool → one of `tools`. `name`: its name → the one that it is sent under."""
    if isinstance(tool, ServerTool):
        return {"type": tool.name, **tool.options}
    around = {"type": "function", "function": dump_function(tool, name)}
    if "type" in OWN.form(tool.native):
        del around["type"]
    return merged(around, rest(OWN.fields(tool.native), "function"))


def dump_function(tool: ToolSpec, name: Callable[[str], str]) -> dict[str, Any]:
    """A tool → the function that it is."""
    own = OWN.fields(tool.native).get("function", {})
    function: dict[str, Any] = {"name": name(tool.name)}
    if tool.description:
        function["description"] = tool.description
    if tool.input_schema:
        function["parameters"] = tool.input_schema
    elif "parameters" not in own and OWN.form(tool.native).get("parameters") != "absent":
        function["parameters"] = _NO_ARGUMENTS
    return merged(function, own)
