"""Reads and writes the tools of a request, and the steps that are calls and results.

A step `NAME_call` calls the tool NAME of the provider's, and `NAME_result` answers it; both stand
in the model's answer. A `function_call` and a call to an MCP server name their tool themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from dragoman.codec.json_values import (
    if_list,
    if_object,
    if_objects,
    if_text,
    merge_wire_fields,
    read_extra_fields,
    text_or_json,
)
from dragoman.codec.outgoing_conversation import Outgoing
from dragoman.codec.server_tools import ServerTools
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import ProviderPart, ToolCallPart, ToolResultPart
from dragoman.request import ServerTool, ToolSpec
from dragoman.wires.google_interactions.content import dump_content, load_content
from dragoman.wires.google_interactions.quirks import OWN, Quirks

__all__ = [
    "FUNCTION",
    "RESULT",
    "SERVER_TOOLS",
    "dump_call",
    "dump_result",
    "dump_tool_choice",
    "dump_tools",
    "load_call",
    "load_result",
    "load_tool_choice",
    "load_tools",
]

FUNCTION, RESULT = "function_call", "function_result"
_MCP_CALL, _MCP_RESULT = "mcp_server_tool_call", "mcp_server_tool_result"
_NAMED = (FUNCTION, RESULT, _MCP_CALL, _MCP_RESULT)
"""Types of steps that name their tool."""
_ABSENT = "absent"
_NO_ARGUMENTS: Json = {"type": "object", "properties": {}}
SERVER_TOOLS = ServerTools(
    names={
        **{name: name for name in ("code_execution", "computer_use", "file_search", "tool_search")},
        "google_search": "web_search",
        "url_context": "web_fetch",
        "mcp_server": "mcp",
    },
    options={
        "file_search": {"stores": "file_search_store_names", "max_results": "top_k"},
        "computer_use": {"environment": "environment"},
        "mcp": {
            **{name: name for name in ("name", "url", "headers")},
            "allowed_tools": "allowed_tools.0.tools",
        },
    },
    usual={"mcp": {"approval": "never"}},
)
"""The tools that Google runs, and the computer whose calls it defines."""
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_SENT_CHOICES = {choice: mode for mode, choice in _CHOICES.items()}


def load_tools(entries: Sequence[Any]) -> tuple[ToolSpec | ServerTool, ...]:
    """Reads the `tools` of an Interactions request.

    Raises:
        HistoryError: one of them is no tool.
    """
    return tuple([_load_tool(entry) for entry in entries])


def dump_tools(tools: Iterable[ToolSpec | ServerTool], out: Outgoing[Quirks]) -> list[Json]:
    """Writes the `tools` of an Interactions request, under the names that are sent."""
    return [_dump_tool(tool, out) for tool in tools]


def load_tool_choice(config: Json) -> Json:
    """Takes `tool_choice` out of a `generation_config`. Returns the setting, or nothing if no
    setting expresses it."""
    match config.get("tool_choice"):
        case str() as mode if mode in _CHOICES:
            choice = _CHOICES[mode]
        case {"allowed_tools": {"mode": "any", "tools": [str(name)], **others}, **beside} if (
            name not in _SENT_CHOICES and not others and not beside
        ):
            choice = name
        case _:
            return {}
    del config["tool_choice"]
    return {"tool_choice": choice}


def dump_tool_choice(choice: str, out: Outgoing[Quirks]) -> str | Json:
    """Writes the choice of a tool as the Interactions API's `tool_choice`."""
    if choice in _SENT_CHOICES:
        return _SENT_CHOICES[choice]
    return {"allowed_tools": {"mode": "any", "tools": [out.name(choice)]}}


def load_call(step: JsonMap) -> ToolCallPart | None:
    """Reads a step of the Interactions API that is a call. None if it has no id or no name."""
    step_type, arguments = if_text(step.get("type")), step.get("arguments")
    call_id, name = if_text(step.get("id")), _read_tool_name(step, "_call")
    if not call_id or not name or not isinstance(arguments, dict | None):
        return None
    form: Json = {}
    if arguments is None:
        form["arguments"] = None if "arguments" in step else _ABSENT
    if step_type != FUNCTION:
        form["type"] = step_type
    read = ["type", "id", "arguments", *(["name"] if step_type in _NAMED else [])]
    native = OWN.note(read_extra_fields(step, *read), form=form)
    run_by = "agent" if step_type == FUNCTION else "provider"
    return ToolCallPart(call_id, name, if_object(arguments), run_by=run_by, native=native)


def dump_call(call: ToolCallPart, call_id: str, name: str) -> Json:
    """Writes a call as a step of the Interactions API. One that another provider ran becomes that
    of an MCP server."""
    form = OWN.form(call.native)
    step_type = _choose_type(call, FUNCTION, _MCP_CALL)
    step: Json = {"type": step_type, "id": call_id, "arguments": call.arguments}
    if step_type in _NAMED:
        step["name"] = name
    if "arguments" in form and not call.arguments:
        step["arguments"] = None
        if form["arguments"] == _ABSENT:
            del step["arguments"]
    return _merge_fields(step, call)


def load_result(step: JsonMap, names: Mapping[str, str]) -> ToolResultPart | None:
    """Reads a step of the Interactions API that is a result. None if it names no call. `names`: id
    of each call so far → its tool."""
    step_type, call_id = if_text(step.get("type")), if_text(step.get("call_id"))
    if not call_id:
        return None
    ours = step_type == RESULT
    name = _read_tool_name(step, "_result")
    # The type of a function's result follows from who ran it.
    form: Json = {} if ours else {"type": step_type}
    if step_type in _NAMED and not name:
        form["name"], name = step.get("name", _ABSENT), names.get(call_id, "")
    result, result_form = _load_returned(step) if ours else (step.get("result"), {})
    if "result" not in step:
        result_form = {"result": _ABSENT}
    read = ["type", "call_id", "result", *(["name"] if step_type in _NAMED else [])]
    if step.get("is_error") is True:
        read.append("is_error")
    native = OWN.note(read_extra_fields(step, *read), form=form | result_form)
    return ToolResultPart(
        call_id,
        name,
        result,
        "is_error" in read,
        "agent" if ours else "provider",
        native,
    )


def dump_result(part: ToolResultPart, call_id: str, name: str) -> Json:
    """Writes a result as a step of the Interactions API."""
    form = OWN.form(part.native)
    step_type = _choose_type(part, RESULT, _MCP_RESULT)
    step: Json = {"type": step_type, "call_id": call_id}
    if step_type in _NAMED:
        # A name that was read from the call was not in the step.
        noted = form.get("name", name or _ABSENT)
        if noted != _ABSENT:
            step["name"] = noted
    if part.result is not None or form.get("result") != _ABSENT:
        step["result"] = _dump_returned(part, raw="type" in form or form.get("result") == "raw")
    if part.is_error:
        step["is_error"] = True
    return _merge_fields(step, part)


def _load_tool(entry: Any) -> ToolSpec | ServerTool:
    """Reads one tool of an Interactions request."""
    if not isinstance(entry, dict):
        raise HistoryError(f"a tool must be an object, not {entry!r:.200}").at(field="tools")
    tool = cast("Json", entry)
    tool_type = if_text(tool.get("type"))
    if tool_type != "function":
        # A tool without a type is kept whole, since nobody knows what it is.
        native = None if tool_type else OWN.note(tool, mark=True)
        return ServerTool(tool_type, read_extra_fields(tool, "type") if tool_type else {}, native)
    if not (name := if_text(tool.get("name"))):
        raise HistoryError("a function must have a name").at(field="tools")
    description, schema = if_text(tool.get("description")), if_object(tool.get("parameters"))
    read = ["type", "name"]
    if description:
        read.append("description")
    if schema:
        read.append("parameters")
    form = {} if "parameters" in tool else {"parameters": _ABSENT}
    return ToolSpec(name, description, schema, OWN.note(read_extra_fields(tool, *read), form=form))


def _dump_tool(tool: ToolSpec | ServerTool, out: Outgoing[Quirks]) -> Json:
    """Writes one tool of an Interactions request."""
    fields = OWN.fields(tool.native)
    if isinstance(tool, ServerTool):
        sent_name = out.quirks.server_tools.get(tool.name, tool.name)
        return {**({"type": sent_name} if sent_name else {}), **tool.options, **fields}
    entry: Json = {"type": "function", "name": out.name(tool.name)}
    if tool.description:
        entry["description"] = tool.description
    is_absent = OWN.form(tool.native).get("parameters") == _ABSENT
    if tool.input_schema or not (is_absent or "parameters" in fields):
        entry["parameters"] = tool.input_schema or _NO_ARGUMENTS
    return merge_wire_fields(entry, fields)


def _read_tool_name(step: JsonMap, ending: str) -> str:
    """Returns the name of the tool that an Interactions step calls or answers."""
    step_type = if_text(step.get("type"))
    return if_text(step.get("name")) if step_type in _NAMED else step_type.removesuffix(ending)


def _choose_type(part: ToolCallPart | ToolResultPart, ours: str, of_others: str) -> str:
    """Returns the type of the Interactions step for a call or a result."""
    if part.run_by != "provider":
        return ours
    return if_text(OWN.form(part.native).get("type")) or of_others


def _merge_fields(step: Json, part: ToolCallPart | ToolResultPart) -> Json:
    """Adds a part's own fields to its Interactions step."""
    if step["type"] in (_MCP_CALL, _MCP_RESULT) and not OWN.is_ours(part.native):
        step["server_name"] = "provider"
    return merge_wire_fields(step, OWN.fields(part.native))


def _load_returned(step: JsonMap) -> tuple[Any, Json]:
    """Returns what a function of an Interactions request gave, and its wire form."""
    returned = step.get("result")
    if if_list(returned):
        parts = load_content(if_objects(returned))
        if parts and not any(isinstance(part, ProviderPart) for part in parts):
            return tuple(parts), {}
    return returned, {} if _is_written(returned) else {"result": "raw"}


def _dump_returned(part: ToolResultPart, *, raw: bool) -> Any:
    """Returns what a tool gave as the field `result` of an Interactions step: a text, an object or
    blocks. `raw`: it goes back as it came."""
    if part.is_content:
        return dump_content(part.result)
    return part.result if raw or _is_written(part.result) else text_or_json(part.result)


def _is_written(returned: object) -> bool:
    """True if what a tool gave is written in an Interactions step as it is."""
    return isinstance(returned, str | dict)
