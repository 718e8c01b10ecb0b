"""Tools of a request ⇄ `ToolSpec`. The API has functions only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.json_values import if_object, if_text, merged, rest
from dragoman.request import ToolSpec
from dragoman.wires.cohere.quirks import OWN

__all__ = ["dump_tool", "is_tool", "load_tool"]

_NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}


def is_tool(tool: Any) -> bool:
    """Whether it can be read as one of `tools`; those of the API's version 1 cannot."""
    fields = if_object(tool)
    return fields.get("type") == "function" and if_text(if_object(fields.get("function")).get("name")) != ""


def load_tool(tool: Mapping[str, Any]) -> ToolSpec:
    """One of `tools`."""
    function = if_object(tool.get("function"))
    description, parameters = if_text(function.get("description")), if_object(function.get("parameters"))
    read = ("name", *(("description",) if description else ()), *(("parameters",) if parameters else ()))
    inner = rest(function, *read)
    spelled = {} if "parameters" in function else {"parameters": "absent"}
    own = {**rest(tool, "type", "function"), **({"function": inner} if inner else {})}
    return ToolSpec(if_text(function["name"]), description, parameters, OWN.note(own, form=spelled))


def dump_tool(tool: ToolSpec, name: str) -> dict[str, Any]:
    """The inverse, under that name."""
    own = OWN.fields(tool.native)
    function: dict[str, Any] = {"name": name}
    if tool.description:
        function["description"] = tool.description
    if tool.input_schema:
        function["parameters"] = tool.input_schema
    elif OWN.form(tool.native).get("parameters") != "absent" and "parameters" not in if_object(own.get("function")):
        function["parameters"] = _NO_ARGUMENTS
    return merged({"type": "function", "function": function}, own)
