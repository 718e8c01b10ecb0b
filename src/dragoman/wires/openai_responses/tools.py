"""Tools of a request ↔ `ToolSpec` (functions) and `ServerTool` (all others: what the provider runs, custom tools, …)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dragoman.codec.ids import NAMES
from dragoman.codec.json_values import rest
from dragoman.errors import HistoryError
from dragoman.request import ServerTool, ToolSpec
from dragoman.wires.openai_responses.quirks import OWN, Quirks

__all__ = ["dump_tool", "load_tool"]

_NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}


def load_tool(tool: Any) -> ToolSpec | ServerTool:
    """An entry of `tools`.

    Raises:
        HistoryError: it is no tool.
    """
    if not isinstance(tool, dict):
        raise HistoryError(f"a tool must be an object, not {tool!r}")
    tool = cast("dict[str, Any]", tool)
    name, description, parameters = tool.get("name"), tool.get("description"), tool.get("parameters")
    if tool.get("type") != "function" or not isinstance(name, str):
        return ServerTool(str(tool.get("type")), rest(tool, "type"))
    known = ["type", "name"]
    if isinstance(description, str) and description:
        known.append("description")
    if isinstance(parameters, dict) and parameters:
        known.append("parameters")
    how = {} if NAMES.fits(name) else {"name": "as is"}
    how |= {key: "absent" for key in ("strict", "parameters") if key not in tool}
    return ToolSpec(
        name,
        cast("str", description) if "description" in known else "",
        cast("dict[str, Any]", parameters) if "parameters" in known else {},
        OWN.note(rest(tool, *known, *(["strict"] if tool.get("strict") is False else [])), form=how),
    )


def dump_tool(tool: ToolSpec | ServerTool, names: Mapping[str, str], quirks: Quirks) -> dict[str, Any]:
    """A tool → an entry of `tools`. A function is not strict unless it says so: the API takes silence for strict, and
    then refuses or changes schemas that are not."""
    if isinstance(tool, ServerTool):
        options = dict(tool.options)
        type_ = quirks.server_tools.get(tool.name, tool.name)
        if type_ == "code_interpreter":
            options.setdefault("container", {"type": "auto"})
        return {"type": type_, **options}
    own, how = OWN.fields(tool.native), OWN.form(tool.native)
    entry = {"type": "function", **own, "name": names.get(tool.name, tool.name)}
    if tool.description:
        entry["description"] = tool.description
    if tool.input_schema:
        entry["parameters"] = tool.input_schema
    elif "parameters" not in how:
        entry.setdefault("parameters", _NO_ARGUMENTS)
    if "strict" not in how:
        entry.setdefault("strict", False)
    return entry
