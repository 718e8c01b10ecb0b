"""Reads and writes tools, the choice of one, calls and results. A mark for the cache that follows a
tool is a field of that tool here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dragoman.codec.json_values import (
    if_list,
    if_object,
    if_objects,
    if_text,
    merge_wire_fields,
    read_extra_fields,
    text_or_json,
)
from dragoman.codec.media import describe_as_text, media_label
from dragoman.codec.outgoing_conversation import Outgoing
from dragoman.codec.server_tools import ServerTools
from dragoman.codec.signature_check import name_part_type
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Lost
from dragoman.message import Content, DataPart, FilePart, ProviderPart, ToolCallPart, ToolResultPart
from dragoman.request import ServerTool, ToolSpec
from dragoman.wires.bedrock_converse.content import Unsent, dump_block, load_content
from dragoman.wires.bedrock_converse.quirks import OWN, Quirks

__all__ = [
    "CALL",
    "MARK",
    "RESULT",
    "SERVER_TOOLS",
    "declare_tool",
    "dump_call",
    "dump_result",
    "dump_tool_choice",
    "dump_tools",
    "load_call",
    "load_result",
    "load_tool_choice",
    "load_tools",
]

CALL, RESULT, MARK = "toolUse", "toolResult", "cachePoint"
_CHOICES = {"auto": "auto", "any": "required"}
_SENT_CHOICES = {neutral: choice for choice, neutral in _CHOICES.items()}
SERVER_TOOLS = ServerTools(
    names={name: common for common, name in Quirks().server_tools.items()},
    models="nova-2",
)
"""The tools that Amazon runs for its own models. None takes options."""
_NO_ARGUMENTS: Json = {"type": "object", "properties": {}}
_RAW = "blocks"


def load_tools(entries: Iterable[Any]) -> tuple[ToolSpec | ServerTool, ...]:
    """Reads the `tools` of a Converse `toolConfig`.

    Raises:
        HistoryError: one of them is no tool.
    """
    tools: list[ToolSpec | ServerTool] = []
    fields: Json = {}
    for entry in [*entries][::-1]:
        if MARK in if_object(entry):
            fields = {MARK: entry[MARK]}
        else:
            tools.append(_load_tool(if_object(entry), fields))
            fields = {}
    return tuple(tools[::-1])


def dump_tools(tools: Iterable[ToolSpec | ServerTool], out: Outgoing[Quirks]) -> list[Json]:
    """Writes the `tools` of a Converse `toolConfig`, under the names that are sent."""
    entries: list[Json] = []
    for tool in tools:
        fields = OWN.fields(tool.native)
        mark = fields.pop(MARK, None)
        if isinstance(tool, ServerTool):
            name = out.quirks.server_tools.get(tool.name, tool.name)
            entries.append({"systemTool": {"name": name, **tool.options, **fields}})
        else:
            entries.append(declare_tool(out.name(tool.name), tool, fields))
        if mark is not None:
            entries.append({MARK: mark})
    return entries


def declare_tool(name: str, tool: ToolSpec | None = None, fields: JsonMap = {}) -> Json:
    """Returns the entry of a function in a Converse `toolConfig`. Without `tool` only its name is
    known. `fields`: those that no neutral field holds."""
    declared: Json = {"name": name}
    if tool is not None and tool.description:
        declared["description"] = tool.description
    schema = tool.input_schema if tool is not None else None
    declared["inputSchema"] = {"json": schema or _NO_ARGUMENTS}
    return {"toolSpec": merge_wire_fields(declared, fields)}


def load_tool_choice(config: Json) -> Json:
    """Takes `toolChoice` out of a Converse `toolConfig`. Returns the setting, or nothing if no
    setting expresses it."""
    written = if_object(config.get("toolChoice"))
    block_type = next(iter(written), "")
    named = if_object(written.get(block_type))
    if block_type in _CHOICES and not named:
        choice = _CHOICES[block_type]
    elif (
        block_type == "tool"
        and named.keys() == {"name"}
        and if_text(named["name"]) not in ("", *_SENT_CHOICES)
    ):
        choice = str(named["name"])
    else:
        return {}
    del config["toolChoice"]
    return {"tool_choice": choice}


def dump_tool_choice(choice: str | None, out: Outgoing[Quirks]) -> Json:
    """Returns the choice of a tool as the field `toolChoice` of a Converse `toolConfig`. The API
    has no choice of none."""
    if choice is None:
        return {}
    if choice == "none":
        out.lose(None, None, Lost.setting, "the API has no such choice", "tool_choice")
        return {}
    if choice in _SENT_CHOICES:
        return {"toolChoice": {_SENT_CHOICES[choice]: {}}}
    return {"toolChoice": {"tool": {"name": out.name(choice)}}}


def load_call(block: JsonMap) -> ToolCallPart | None:
    """Returns a Converse block `toolUse` as a part; None if it is of an unknown shape."""
    fields = if_object(block.get(CALL))
    call_id, name, arguments = fields.get("toolUseId"), fields.get("name"), fields.get("input")
    if not (isinstance(call_id, str) and isinstance(name, str) and isinstance(arguments, dict)):
        return None
    native = OWN.note(read_extra_fields(fields, "toolUseId", "name", "input"))
    run_by = "provider" if "type" in fields else "agent"
    return ToolCallPart(call_id, name, if_object(arguments), run_by=run_by, native=native)


def dump_call(call: ToolCallPart, call_id: str, name: str) -> Json:
    """Returns a call as a Converse block `toolUse`, with this id and name."""
    arguments = call.arguments if call.state == "complete" else {}
    fields: Json = {"toolUseId": call_id, "name": name, "input": arguments}
    return {CALL: merge_wire_fields(fields, OWN.fields(call.native))}


def load_result(block: JsonMap, names: Mapping[str, str]) -> ToolResultPart | None:
    """Returns a Converse block `toolResult` as a part; None if it is of an unknown shape. `names`:
    id of each call so far → its tool."""
    fields = if_object(block.get(RESULT))
    call_id, content = fields.get("toolUseId"), fields.get("content")
    if not isinstance(call_id, str) or (content and not if_objects(content)):
        return None
    is_error = fields.get("status") == "error"
    read = ["toolUseId", "content", *(["status"] if is_error else [])]
    returned, form = _load_returned(if_objects(content))
    if not isinstance(content, list):
        form = {"content": "absent"}
    native = OWN.note(read_extra_fields(fields, *read), form=form)
    run_by = "provider" if "type" in fields else "agent"
    return ToolResultPart(call_id, names.get(call_id, ""), returned, is_error, run_by, native)


def dump_result(part: ToolResultPart, call_id: str) -> tuple[Json, list[Unsent]]:
    """Returns a result as a Converse block `toolResult`, and what of its content is lost."""
    content, losses = _dump_returned(part)
    fields: Json = {"toolUseId": call_id, "content": content}
    if OWN.form(part.native).get("content") == "absent" and not content:
        del fields["content"]
    if part.is_error:
        fields["status"] = "error"
    return {RESULT: merge_wire_fields(fields, OWN.fields(part.native))}, losses


def _load_tool(entry: Json, mark: Json) -> ToolSpec | ServerTool:
    """Reads one tool of a Converse `toolConfig`. `mark`: the mark for the cache that follows it."""
    block_type = next(iter(entry), "")
    fields = if_object(entry.get(block_type))
    if block_type not in ("toolSpec", "systemTool") or not (name := if_text(fields.get("name"))):
        raise HistoryError("a tool must be a toolSpec or a systemTool with a name").at(
            field="toolConfig.tools"
        )
    if block_type == "systemTool":
        return ServerTool(name, {}, OWN.note(read_extra_fields(fields, "name") | mark))
    schema = if_object(if_object(fields.get("inputSchema")).get("json"))
    read = ["name", *(["inputSchema"] if schema else [])]
    if description := if_text(fields.get("description")):
        read.append("description")
    return ToolSpec(name, description, schema, OWN.note(read_extra_fields(fields, *read) | mark))


def _load_returned(blocks: Sequence[Json]) -> tuple[Any, Json]:
    """Returns what the blocks of a Converse result say, and its wire form: a text, JSON or
    parts."""
    if not blocks:
        return None, {}
    if len(blocks) == 1 and blocks[0].keys() == {"text"}:
        return blocks[0]["text"], {}
    if len(blocks) == 1 and blocks[0].keys() == {"json"}:
        returned = blocks[0]["json"]
        return returned, {} if isinstance(returned, dict) else {"content": "json"}
    parts = load_content(blocks)
    if any(isinstance(part, ProviderPart) for part in parts):
        return list(blocks), {"content": _RAW}
    return tuple(parts), {}


def _dump_returned(part: ToolResultPart) -> tuple[list[Json], list[Unsent]]:
    """Returns the content of a Converse result, and what of it is lost."""
    form, returned = OWN.form(part.native).get("content"), part.result
    if part.is_content:
        dumped = [_dump_inner(inner) for inner in part.result]
        return [block for block, _ in dumped], [lost for _, lost in dumped if lost is not None]
    return _dump_plain(returned, form), []


def _dump_plain(returned: Any, form: Any) -> list[Json]:
    """Returns the content of a Converse result that is a text or JSON. `form`: how it came."""
    if form == _RAW and if_list(returned):
        return returned
    if returned is None:
        return []
    if isinstance(returned, dict) or form == "json":
        return [{"json": returned}]
    return [{"text": text_or_json(returned)}]


def _dump_inner(part: Content) -> tuple[Json, Unsent | None]:
    """Returns the block of a part inside a Converse result, which holds no audio."""
    block, lost = dump_block(part)
    if "audio" not in block or not isinstance(part, (DataPart, FilePart)):
        return block, lost
    why = "the API takes no audio in a result"
    return {"text": describe_as_text(part)}, (name_part_type(part), why, media_label(part))
