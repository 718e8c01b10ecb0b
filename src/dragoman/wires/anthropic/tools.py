"""Tools, the choice of one, calls and results ↔ `ToolSpec`, `ServerTool`, settings and parts.

A call or result that the agent's own tool made has neutral fields, and any provider can read it.
One that the provider ran itself goes back only to its origin: `dump_own` writes it, or records a
loss. Calls must be in messages of the model and results in messages of the user; others are lost.
What a block has beyond its neutral fields stays in `native`, and odd spellings are noted as its
form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Any, Literal, cast

from dragoman import json_bytes
from dragoman.codec.fit_ids import TOOL_NAMES
from dragoman.codec.json_values import if_object, if_text, read_extra_fields, text_or_json
from dragoman.codec.outgoing_conversation import Outgoing
from dragoman.codec.server_tools import ServerTools
from dragoman.codec.signature_check import name_part_type
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Lost
from dragoman.message import Content, Native, Role, ToolCallPart, ToolResultPart
from dragoman.request import ServerTool, Settings, ToolSpec
from dragoman.wires.anthropic.quirks import NAME, OWN, Quirks
from dragoman.wires.anthropic.tools_mcp import MCP_OPTIONS, TOOLSET

__all__ = [
    "CALLS",
    "SERVER_TOOLS",
    "dump_call",
    "dump_own",
    "dump_result",
    "dump_tool_choice",
    "dump_tools",
    "load_call",
    "load_result",
    "load_tool_choice",
    "load_tools",
    "own_fields",
]

CALLS: Mapping[str, Literal["agent", "provider"]] = {
    "tool_use": "agent",
    "server_tool_use": "provider",
    "mcp_tool_use": "provider",
}
"""Types of the blocks that are calls → who runs the tool."""
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_SENT_CHOICES = {neutral: kind for kind, neutral in _CHOICES.items()}
_USES = {option: option for option in ("allowed_domains", "blocked_domains", "max_uses")}
SERVER_TOOLS = ServerTools(
    names={
        **{name: name for name in ("web_search", "web_fetch", "code_execution", "memory")},
        **dict.fromkeys(("computer", "computer_toolset_20260801"), "computer_use"),
        **dict.fromkeys(("tool_search_tool_bm25", "tool_search_tool_regex"), "tool_search"),
        "mcp": "mcp",
    },
    options={
        "web_search": {**_USES, "user_location": "user_location"},
        "web_fetch": {**_USES, "max_tokens": "max_content_tokens"},
        "computer_use": {
            "display_width": "display_width_px",
            "display_height": "display_height_px",
        },
        "mcp": MCP_OPTIONS,
    },
    usual={"mcp": {"approval": "never"}},
)
"""The tools that Anthropic runs, and those whose calls it defines."""
_NO_ARGUMENTS: Json = {"type": "object", "properties": {}}
_VERSIONED = re.compile(r"(.+)_\d{8}")
_MISPLACED = "the API takes calls from the model and results from the user alone"


def load_tools(body: Json, form: Json) -> tuple[ToolSpec | ServerTool, ...]:
    """Takes Anthropic's `tools` out of `body`; what is not of the usual form goes to `form`.

    Raises:
        HistoryError: an entry is no tool.
    """
    if not isinstance(body.get("tools"), list):
        return ()
    tools = tuple([_load_tool(tool) for tool in cast("list[Any]", body.pop("tools"))])
    if not tools:
        form["tools"] = "explicit"
    elif "tool_choice" not in body:
        form["tool_choice"] = "absent"
    return tools


def dump_tools(tools: Iterable[ToolSpec | ServerTool], out: Outgoing[Quirks]) -> list[Json]:
    """Converts tools to Anthropic's field `tools`. The schema of the arguments is passed on
    unchanged."""
    return [
        _dump_function(tool, out)
        if isinstance(tool, ToolSpec)
        else _dump_server_tool(tool, out.quirks)
        for tool in tools
    ]


def load_tool_choice(body: Json, form: Json) -> Json:
    """Takes Anthropic's `tool_choice` out of `body` and returns the settings. What they have no
    room for goes to `form`."""
    match body.get("tool_choice"):
        case {"type": "tool", "name": str(name)} if name not in _SENT_CHOICES:
            chosen, read_names = name, ["type", "name"]
        case {"type": str(kind)} if kind in _CHOICES:
            chosen, read_names = _CHOICES[kind], ["type"]
        case _:
            return {}
    choice = if_object(body.pop("tool_choice"))
    settings: Json = {"tool_choice": chosen}
    if isinstance(alone := choice.get("disable_parallel_tool_use"), bool):
        settings["parallel_tool_calls"] = not alone
        read_names.append("disable_parallel_tool_use")
    if fields := read_extra_fields(choice, *read_names):
        form["tool_choice"] = fields
    return settings


def dump_tool_choice(
    settings: Settings, form: JsonMap, out: Outgoing[Quirks], *, tools: bool
) -> Json | None:
    """Converts the settings to Anthropic's `tool_choice`; `auto` where there are tools and no
    setting."""
    chosen, parallel, fields = (
        settings.tool_choice,
        settings.parallel_tool_calls,
        form.get("tool_choice", {}),
    )
    if chosen is None and (not tools or (parallel is None and fields == "absent")):
        return None
    chosen = chosen or "auto"
    choice: Json = {} if fields == "absent" else {**fields}
    if chosen in _SENT_CHOICES:
        choice["type"] = _SENT_CHOICES[chosen]
    else:
        choice |= {"type": "tool", "name": out.name(chosen)}
    if parallel is not None:
        choice["disable_parallel_tool_use"] = not parallel
    return choice


def load_call(block: JsonMap) -> ToolCallPart | None:
    """Returns an Anthropic block that is a tool call; `None` where it is not of the documented
    shape."""
    id_, name, arguments = block.get("id"), block.get("name"), block.get("input")
    if not isinstance(id_, str) or not isinstance(name, str):
        return None
    who = CALLS[block["type"]]
    block_fields = read_extra_fields(block, "id", "name", *(() if who == "provider" else ("type",)))
    if isinstance(arguments, dict):
        native = OWN.note(read_extra_fields(block_fields, "input"))
        return ToolCallPart(id_, name, cast("Json", arguments), run_by=who, native=native)
    if who == "provider":
        return None
    return ToolCallPart(
        id_,
        name,
        raw=json_bytes.encode(arguments).decode(),
        state="invalid",
        native=OWN.note(block_fields),
    )


def dump_call(call: ToolCallPart, out: Outgoing[Quirks], position: int, index: int) -> Json | None:
    """Returns a tool call as Anthropic's block `tool_use`."""
    if call.run_by == "provider":
        fields = {"id": call.id, "name": call.name, "input": call.arguments}
        return dump_own(
            call, fields, out, position, index, f"a call of {call.name}, which the provider ran"
        )
    if out.messages[position].role is not Role.MODEL:
        out.lose(position, index, Lost.tool_call, _MISPLACED)
        return None
    ids = {"id": out.id(position, index, call), "name": out.name(call.name)}
    if call.state == "complete" and not call.native:
        return {"type": "tool_use", **ids, "input": call.arguments}
    block = {"type": "tool_use", **own_fields(call, out, position), **ids}
    if call.state == "complete" or "input" not in block:
        # `{}` for what is cut or invalid.
        block["input"] = call.arguments
        out.lose_unfinished(position, index, call, call.arguments)
    return block


def load_result(
    block: JsonMap, names: Mapping[str, str], parts: tuple[Content, ...] = ()
) -> ToolResultPart | None:
    """Converts an Anthropic block that is a result; `None` where it is not of the documented shape.
    `names`: id of each call so far to its tool; `parts`: its content, where that is text and
    media."""
    id_ = block.get("tool_use_id")
    if not isinstance(id_, str):
        return None
    is_error = block.get("is_error") is True
    read_names = ("tool_use_id", *(("is_error",) if is_error else ()))
    content = block.get("content")
    if block["type"] != "tool_result":
        if "content" not in block:
            return None
        native = OWN.note(read_extra_fields(block, *read_names, "content"))
        return ToolResultPart(id_, names.get(id_, ""), content, is_error, "provider", native)
    if not isinstance(content, (str, list, NoneType)):
        return None
    if "content" not in block:
        content_form = "absent"
    elif isinstance(content, list) and not parts:
        content_form = "blocks"
    else:
        content_form = ""
    is_null = "content" in block and content is None
    block_fields = read_extra_fields(block, "type", *read_names, *(() if is_null else ("content",)))
    native = OWN.note(block_fields, form={"content": content_form} if content_form else {})
    return ToolResultPart(id_, names.get(id_, ""), parts or content, is_error, native=native)


def dump_result(
    part: ToolResultPart, out: Outgoing[Quirks], position: int, index: int
) -> Json | None:
    """Converts a tool result to its Anthropic block. Where it is parts, the caller fills in
    `content`."""
    error = {"is_error": True} if part.is_error else {}
    if part.run_by == "provider":
        fields = {"tool_use_id": part.id, "content": part.result, **error}
        return dump_own(
            part, fields, out, position, index, f"a result of {part.name}, which the provider ran"
        )
    if out.messages[position].role is not Role.USER:
        out.lose(position, index, Lost.tool_result, _MISPLACED)
        return None
    id_ = out.id(position, index, part)
    if not (part.native or part.is_content):
        content = text_or_json(part.result)
        return {"type": "tool_result", "tool_use_id": id_, "content": content, **error}
    block = {"type": "tool_result", **own_fields(part, out, position), "tool_use_id": id_}
    content_form = OWN.form(part.native).get("content")
    if content_form == "blocks" and isinstance(cast("object", part.result), list):
        block["content"] = part.result
    elif (
        part.is_content
        or part.result is not None
        or (content_form != "absent" and "content" not in block)
    ):
        if part.is_content:
            block["content"] = ()
        else:
            block["content"] = text_or_json(part.result)
    return {**block, **error}


def dump_own(
    piece: Content,
    fields: JsonMap,
    out: Outgoing[Quirks],
    position: int,
    index: int,
    which: str,
) -> Json | None:
    """Returns the Anthropic block of a tool call or result that goes back to its own origin and to
    nobody else. `fields`: its neutral ones; `which`: what is lost otherwise."""
    why = out.unreadable[position] or (
        None if NAME in (piece.native or ()) else "it is another provider's"
    )
    if why is not None:
        out.lose(position, index, name_part_type(piece), why, which)
        return None
    return {**OWN.fields(piece.native), **fields}


def own_fields(piece: Content, out: Outgoing[Quirks], position: int) -> Json:
    """Returns the Anthropic fields of a tool call or result; towards an origin that does not read
    them, cache marks alone."""
    wire_fields = OWN.fields(piece.native)
    if not wire_fields or out.unreadable[position] is None:
        return wire_fields
    return {key: wire_fields[key] for key in ("cache_control",) if key in wire_fields}


def _load_tool(tool: Any) -> ToolSpec | ServerTool:
    """Reads an element of Anthropic's `tools` as a tool. One with a type other than `custom` is a
    server tool."""
    if not isinstance(tool, dict):
        raise HistoryError(f"a tool must be an object, not {tool!r:.200}").at(field="tools")
    tool = cast("Json", tool)
    tool_type, name = tool.get("type"), tool.get("name")
    if tool_type not in (None, "custom"):
        native: Native = OWN.note(
            {key: tool[key] for key in ("type", "cache_control") if key in tool}
        )
        options = read_extra_fields(tool, "type", "name", "cache_control")
        if isinstance(name, str):
            return ServerTool(name, options, native)
        return ServerTool(str(tool_type), options, OWN.with_form(native, name="absent"))
    if not isinstance(name, str):
        raise HistoryError("a tool must have a name").at(field="tools")
    description, schema = if_text(tool.get("description")), if_object(tool.get("input_schema"))
    read = (
        "name",
        *(("description",) if description else ()),
        *(("input_schema",) if schema else ()),
    )
    form = {} if TOOL_NAMES.fits(name) else {"id_or_name": "as is"}
    return ToolSpec(name, description, schema, OWN.note(read_extra_fields(tool, *read), form=form))


def _dump_function(tool: ToolSpec, out: Outgoing[Quirks]) -> Json:
    """Returns Anthropic's entry for a function tool."""
    block = {**OWN.fields(tool.native), "name": out.name(tool.name)}
    if tool.description:
        block["description"] = tool.description
    if tool.input_schema:
        block["input_schema"] = tool.input_schema
    else:
        block.setdefault("input_schema", _NO_ARGUMENTS)
    return block


def _dump_server_tool(tool: ServerTool, quirks: Quirks) -> Json:
    """Returns Anthropic's entry for a tool that the provider runs, with the version that the model
    takes."""
    wire_fields = OWN.fields(tool.native)
    versions = dict(quirks.server_tools)
    if quirks.profile is not None:
        versions |= quirks.profile.server or {}
    block = {"type": versions.get(tool.name, tool.name), **tool.options, **wire_fields}
    is_named = "type" in wire_fields or block["type"] != TOOLSET
    if is_named and OWN.form(tool.native).get("name") != "absent":
        versioned = _VERSIONED.fullmatch(versions.get(tool.name, tool.name))
        if versioned and "type" not in wire_fields:
            block["name"] = versioned[1]
        else:
            block["name"] = tool.name
    return block
