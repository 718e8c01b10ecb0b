"""What a request says of tools: `tools` and `tool_choice` ↔ ToolSpec, ServerTool and Settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from dragoman.codec.ids import NAMES
from dragoman.errors import HistoryError
from dragoman.request import ServerTool, Settings, ToolSpec
from dragoman.wires.anthropic.quirks import OWN, Quirks

__all__ = ["dump_choice", "dump_tool", "load_choice", "load_tool"]

_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_SENT_CHOICES = {neutral: kind for kind, neutral in _CHOICES.items()}
_NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}
_VERSIONED = re.compile(r"(.+)_\d{8}")


def load_tool(tool: Any) -> ToolSpec | ServerTool:
    """An entry of `tools`. One with a type other than `custom` is the provider's own.

    Raises:
        HistoryError: it is no tool.
    """
    if not isinstance(tool, dict):
        raise HistoryError(f"a tool must be an object, not {tool!r}")
    tool = cast("dict[str, Any]", tool)
    kind, name = tool.get("type"), tool.get("name")
    if kind not in (None, "custom"):
        options = {key: value for key, value in tool.items() if key not in ("type", "name", "cache_control")}
        own = {key: tool[key] for key in ("type", "cache_control") if key in tool}
        if isinstance(name, str):
            return ServerTool(name, options, OWN.note(own))
        return ServerTool(str(kind), options, OWN.note(own, form={"name": "absent"}))
    if not isinstance(name, str):
        raise HistoryError("a tool must have a name")
    description, schema = tool.get("description"), tool.get("input_schema")
    known = {"name"}
    if isinstance(description, str) and description:
        known.add("description")
    if isinstance(schema, dict) and schema:
        known.add("input_schema")
    rest = {key: value for key, value in tool.items() if key not in known}
    return ToolSpec(
        name,
        cast("str", description) if "description" in known else "",
        cast("dict[str, Any]", schema) if "input_schema" in known else {},
        OWN.note(rest, form={} if NAMES.fits(name) else {"id_or_name": "as is"}),
    )


def dump_tool(tool: ToolSpec | ServerTool, names: Mapping[str, str], quirks: Quirks) -> dict[str, Any]:
    """A tool → an entry of `tools`. The schema of the arguments is passed on unchanged."""
    if isinstance(tool, ServerTool):
        versioned = _VERSIONED.fullmatch(tool.name)
        kind = quirks.server_tools.get(tool.name, tool.name)
        block = {"type": kind, **tool.options, **OWN.fields(tool.native)}
        if OWN.form(tool.native).get("name") != "absent":
            block["name"] = versioned[1] if versioned and "type" not in OWN.fields(tool.native) else tool.name
        return block
    block = {**OWN.fields(tool.native), "name": names.get(tool.name, tool.name)}
    if tool.description:
        block["description"] = tool.description
    if tool.input_schema:
        block["input_schema"] = tool.input_schema
    else:
        block.setdefault("input_schema", _NO_ARGUMENTS)
    return block


def load_choice(choice: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """`tool_choice` → the settings that say it, and its spelling; `None` where no settings say it."""
    match choice:
        case {"type": "tool", "name": str(name)} if name not in _SENT_CHOICES:
            chosen, known = name, ["type", "name"]
        case {"type": str(kind)} if kind in _CHOICES:
            chosen, known = _CHOICES[kind], ["type"]
        case _:
            return None
    choice = cast("dict[str, Any]", choice)
    settings: dict[str, Any] = {"tool_choice": chosen}
    if isinstance(alone := choice.get("disable_parallel_tool_use"), bool):
        settings["parallel_tool_calls"] = not alone
        known.append("disable_parallel_tool_use")
    rest = {key: value for key, value in choice.items() if key not in known}
    return settings, {"tool_choice": rest} if rest else {}


def dump_choice(
    settings: Settings, names: Mapping[str, str], spelled: Mapping[str, Any], *, tools: bool
) -> dict[str, Any] | None:
    """The settings → `tool_choice`; `auto` where there are tools and the settings say nothing."""
    chosen, parallel, rest = settings.tool_choice, settings.parallel_tool_calls, spelled.get("tool_choice", {})
    if chosen is None and (not tools or (parallel is None and rest == "absent")):
        return None
    chosen = chosen or "auto"
    choice: dict[str, Any] = {} if rest == "absent" else {**rest}
    if chosen in _SENT_CHOICES:
        choice["type"] = _SENT_CHOICES[chosen]
    else:
        choice |= {"type": "tool", "name": names.get(chosen, chosen)}
    if parallel is not None:
        choice["disable_parallel_tool_use"] = not parallel
    return choice
