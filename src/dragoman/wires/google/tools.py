"""What a request says of tools: `tools` and `toolConfig` ↔ ToolSpec, ServerTool and Settings.tool_choice."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from dragoman.codec.ids import NAMES
from dragoman.codec.json_values import if_object
from dragoman.errors import HistoryError
from dragoman.request import ServerTool, ToolSpec
from dragoman.wires.google.keys import camelled, snaked, snakes
from dragoman.wires.google.quirks import OWN, Quirks
from dragoman.wires.google.schema import TYPES, lift, lower

__all__ = ["dump_choice", "dump_schema", "dump_tools", "load_choice", "load_schema", "load_tools"]

_FUNCTIONS = "functionDeclarations"
_CHOICES = {"AUTO": "auto", "ANY": "required", "NONE": "none"}
_NUMBERED = dict(enumerate(_CHOICES, 1))
"""Modes as clients of gRPC's JSON write them."""
_SENT_CHOICES = {neutral: mode for mode, neutral in _CHOICES.items()}

_Tool = ToolSpec | ServerTool


def load_tools(entries: Sequence[Any]) -> list[_Tool]:
    """`tools`, each of which holds functions, tools of the provider's, or both → one list.

    Raises:
        HistoryError: there is something else in it.
    """
    tools: list[_Tool] = []
    for entry in entries:
        if not isinstance(entry, dict):
            raise HistoryError(f"an entry of tools must be an object, not {entry!r}")
        snake: set[str] = set()
        block = camelled(cast("dict[str, Any]", entry), snake)
        functions = block.get(_FUNCTIONS)
        if not isinstance(functions, list):
            functions = []
        found: list[_Tool] = [_load_function(each) for each in cast("list[Any]", functions)]
        own = {
            key: value
            for key, value in block.items()
            if not isinstance(value, dict) and (key != _FUNCTIONS or not functions)
        }
        found += [
            ServerTool(key, cast("dict[str, Any]", value)) for key, value in block.items() if isinstance(value, dict)
        ]
        if not found:
            found.append(ServerTool("", {}, OWN.note(own)))
            own = {}
        again = any(isinstance(tool, ToolSpec) for tool in tools)
        how = _entry_spelling(found, again, own, snake)
        tools += [
            msgspec.structs.replace(one, native=OWN.with_form(one.native, **told)) if told else one
            for one, told in zip(found, how, strict=True)
        ]
    return tools


def dump_tools(tools: Sequence[_Tool], names: Mapping[str, str], quirks: Quirks) -> list[dict[str, Any]]:
    """The inverse of `load_tools`: all functions in one entry, each tool of the provider's in its own."""
    entries: list[dict[str, Any]] = []
    how: list[Sequence[str]] = []
    functions: list[dict[str, Any]] | None = None
    for tool in tools:
        told = OWN.form(tool.native)
        place = told.get("place")
        if not entries or (
            place != "together" if isinstance(tool, ServerTool) else place == "apart" or functions is None
        ):
            entries.append(dict(if_object(told.get("entry"))))
            how.append(snakes(told, "snake_entry"))
            if isinstance(tool, ToolSpec):
                functions = entries[-1][_FUNCTIONS] = []
        entry = entries[-1]
        if isinstance(tool, ToolSpec):
            cast("list[Any]", functions).append(_dump_function(tool, names, quirks))
        elif not tool.name:
            entry |= OWN.fields(tool.native)
        else:
            entry[_server_name(tool.name, quirks)] = dict(tool.options)
    return [snaked(entry, snake) for entry, snake in zip(entries, how, strict=True)]


def load_choice(config: Any) -> tuple[str, dict[str, Any]] | None:
    """`functionCallingConfig` → the choice, and its spelling; `None` where no setting says it (it stays an option)."""
    if not isinstance(config, dict):
        return None
    snake: set[str] = set()
    config = camelled(cast("dict[str, Any]", config), snake)
    given, allowed = config.get("mode"), config.get("allowedFunctionNames")
    if (mode := _mode(given)) is None or set(config) - {"mode", "allowedFunctionNames"}:
        return None
    choice = _CHOICES.get(mode)
    told: dict[str, Any] = {
        **({"mode": given} if mode != given else {}),
        **({"snake": sorted(snake)} if snake else {}),
    }
    if choice is None or "allowedFunctionNames" not in config:
        return None if choice is None else (choice, told)
    match allowed:
        case [str(name)] if choice == "required" and name not in _SENT_CHOICES:
            return name, told
        case _:
            return None


def dump_choice(choice: str, names: Mapping[str, str], told: Mapping[str, Any]) -> dict[str, Any]:
    """The choice → `functionCallingConfig`."""
    mode = _SENT_CHOICES.get(choice, "ANY")
    if _mode(told.get("mode")) == mode:
        mode = told["mode"]
    if choice in _SENT_CHOICES:
        return {"mode": mode}
    return snaked({"mode": mode, "allowedFunctionNames": [names.get(choice, choice)]}, snakes(told))


def _mode(mode: Any) -> str | None:
    """A mode by its name or its number → its name."""
    return mode.upper() if isinstance(mode, str) else _NUMBERED.get(mode) if type(mode) is int else None


def load_schema(schema: Any) -> tuple[dict[str, Any], str]:
    """A schema of the older subset → JSON Schema, and how it was spelled: how types were, or that it is kept as it is."""
    lifted = lift(schema)
    for how in TYPES:
        if lower(lifted, types=how) == schema:
            return lifted, how
    return schema, "raw"


def dump_schema(schema: Mapping[str, Any], how: str) -> Mapping[str, Any]:
    """The inverse of `load_schema`."""
    return lower(schema, types=how) if how in TYPES else schema


def _load_function(block: Any) -> ToolSpec:
    if not isinstance(block, dict):
        raise HistoryError(f"a function must be an object, not {block!r}")
    snake: set[str] = set()
    block = camelled(cast("dict[str, Any]", block), snake)
    name, description = block.get("name"), block.get("description")
    if not isinstance(name, str):
        raise HistoryError("a function must have a name")
    known = {"name"} | ({"description"} if isinstance(description, str) and description else set[str]())
    told: dict[str, Any] = {} if NAMES.fits(name) else {"name": "as is"}
    if snake:
        told["snake"] = sorted(snake)
    schema: dict[str, Any] = {}
    if isinstance(given := block.get("parametersJsonSchema"), dict) and given:
        schema = cast("dict[str, Any]", given)
        known.add("parametersJsonSchema")
    elif isinstance(given := block.get("parameters"), dict) and given:
        schema, told["parameters"] = load_schema(given)
        known.add("parameters")
    else:
        told["parameters"] = "absent"
    rest = {key: value for key, value in block.items() if key not in known}
    return ToolSpec(name, cast("str", description) if "description" in known else "", schema, OWN.note(rest, form=told))


def _dump_function(tool: ToolSpec, names: Mapping[str, str], quirks: Quirks) -> dict[str, Any]:
    block = {**OWN.fields(tool.native), "name": names.get(tool.name, tool.name)}
    if tool.description:
        block["description"] = tool.description
    told = OWN.form(tool.native)
    how = told.get("parameters", "" if quirks.json_schema else "upper")
    if tool.input_schema and how in ("", "absent"):
        block["parametersJsonSchema"] = tool.input_schema
    elif tool.input_schema:
        block["parameters"] = dump_schema(tool.input_schema, how)
    return snaked(block, snakes(told))


def _entry_spelling(
    found: Sequence[_Tool], again: bool, own: Mapping[str, Any], snake: set[str]
) -> list[dict[str, Any]]:
    """For each tool of an entry what is unusual about its place."""
    how: list[dict[str, Any]] = [{} for _ in found]
    if own:
        how[0]["entry"] = dict(own)
    if snake:
        how[0]["snake_entry"] = sorted(snake)
    if again and isinstance(found[0], ToolSpec):
        how[0]["place"] = "apart"
    for told, tool in zip(how[1:], found[1:], strict=True):
        if isinstance(tool, ServerTool):
            told["place"] = "together"
    return how


def _server_name(name: str, quirks: Quirks) -> str:
    known = quirks.server_tools.get(name, name)
    return re.sub("_([a-z])", lambda letter: letter[1].upper(), known)
