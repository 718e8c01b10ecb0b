"""Tools of a request ⇄ `ToolSpec`. The API has functions only; what else a request held is kept as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.json_values import if_object, if_text, merged, rest
from dragoman.loss import Loss
from dragoman.request import ServerTool, ToolSpec
from dragoman.wires.ollama.quirks import OWN

__all__ = ["dump_tool", "is_tool", "load_tool"]

_NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}


def is_tool(tool: Any) -> bool:
    """Whether it can be read as one of `tools`."""
    fields = if_object(tool)
    return if_text(fields.get("type", "function")) not in ("function", "") or _name(fields) != ""


def load_tool(tool: Mapping[str, Any]) -> ToolSpec | ServerTool:
    """One of `tools`."""
    if tool.get("type", "function") != "function":
        return ServerTool(
            if_text(tool["type"]), native=OWN.note(rest(tool, "type")) or OWN.note({}, form={"type": "own"})
        )
    function = if_object(tool.get("function"))
    description, parameters = if_text(function.get("description")), if_object(function.get("parameters"))
    read = ("name", *(("description",) if description else ()), *(("parameters",) if parameters else ()))
    inner = rest(function, *read)
    spelled = {} if "parameters" in function else {"parameters": "absent"}
    if "type" not in tool:
        spelled["type"] = "absent"
    own = {**rest(tool, "type", "function"), **({"function": inner} if inner else {})}
    return ToolSpec(_name(tool), description, parameters, OWN.note(own, form=spelled))


def dump_tool(tool: ToolSpec | ServerTool, losses: list[Loss]) -> dict[str, Any] | None:
    """The inverse; `None` for a tool that no server of this API would run."""
    spelled, own = OWN.form(tool.native), OWN.fields(tool.native)
    if isinstance(tool, ServerTool):
        if own or spelled:
            return {"type": tool.name, **own}
        losses.append(Loss(None, None, tool.name, "the API runs no tools of its own"))
        return None
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    if tool.input_schema:
        function["parameters"] = tool.input_schema
    elif spelled.get("parameters") != "absent" and "parameters" not in if_object(own.get("function")):
        function["parameters"] = _NO_ARGUMENTS
    around: dict[str, Any] = {} if spelled.get("type") == "absent" else {"type": "function"}
    return merged({**around, "function": function}, own)


def _name(tool: Mapping[str, Any]) -> str:
    return if_text(if_object(tool.get("function")).get("name"))
