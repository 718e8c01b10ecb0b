"""Reads and writes tools: those of a request (`ToolSpec` for functions, `ServerTool` for what the
provider runs), the choice of a tool, calls and results.

Calls and results remember what their neutral parts do not hold, so that a request goes back as it
came: ids that were missing, arguments in another spelling, the older `function_call`. Towards
another vendor those notes are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, cast

from msgspec.structs import replace

from dragoman.codec import function_tools
from dragoman.codec.json_values import (
    if_object,
    if_objects,
    if_text,
    merge_wire_fields,
    read_extra_fields,
    text_or_json,
)
from dragoman.codec.message_list import ABSENT, dump_content
from dragoman.codec.native import WireNative
from dragoman.fold import arguments_json, parse_call
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import (
    Native,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.request import ServerTool, ToolSpec
from dragoman.wires.chat.content import load_block
from dragoman.wires.chat.record import DialectRecord, OutgoingChat

__all__ = [
    "choose_call_id",
    "read_call_type",
    "dump_call",
    "dump_result",
    "dump_tool",
    "dump_tool_choice",
    "dump_tools",
    "is_call",
    "is_function",
    "load_call",
    "load_calls",
    "load_or_mint_id",
    "load_plain_call",
    "load_result",
    "load_tool",
    "load_tool_choice",
    "load_tools",
    "set_arguments",
]


# ------------------------------------------------------------------ of a request


def load_tools(
    chat: DialectRecord,
    body: Json,
    form: Json,  # noqa: ARG001
) -> tuple[ToolSpec | ServerTool, ...]:
    """Takes the tools out of `body`. If one of them cannot be read, all stay there."""
    tools = if_objects(body.get(chat.tools))
    if not tools or not all(map(_is_tool, tools)):
        return ()
    del body[chat.tools]
    return tuple([chat.load_tool(tool) for tool in tools])


def dump_tools(
    out: OutgoingChat,
    tools: Sequence[ToolSpec | ServerTool],
    form: JsonMap,  # noqa: ARG001
) -> Json:
    """Returns the field of the body that holds the tools."""
    return {out.chat.tools: [dump_tool(out.chat, tool, out.name) for tool in tools]}


def load_tool(chat: DialectRecord, tool: JsonMap) -> ToolSpec | ServerTool:
    """Reads one entry of `tools` in a Chat request."""
    function = if_object(tool.get("function"))
    # What is no function is run by the provider.
    if not is_function(function) or tool.get("type", "function") != "function":
        return ServerTool(tool["type"], read_extra_fields(tool, "type"))
    return function_tools.load_tool(chat.own, tool)


def dump_tool(chat: DialectRecord, tool: ToolSpec | ServerTool, name: Callable[[str], str]) -> Json:
    """Writes one of `tools`. `name` maps a tool's name to the one that it is sent under."""
    if isinstance(tool, ServerTool):
        return {"type": tool.name, **tool.options}
    return function_tools.dump_tool(chat.own, tool, name(tool.name))


def is_function(function: JsonMap) -> bool:
    """True if an object can be read as a function."""
    return if_text(function.get("name")) != ""


def _is_tool(tool: JsonMap) -> bool:
    """True if a Chat object can be read as a tool. The type may be left out for a function."""
    if "type" in tool:
        return if_text(tool["type"]) != ""
    return is_function(if_object(tool.get("function")))


def load_tool_choice(choices: Mapping[str, str], value: Any) -> str | None:
    """Reads the choice of a tool, or returns None if it is no plain one. `choices`: the Chat
    format's words → the neutral ones."""
    if isinstance(value, str):
        return choices.get(value)
    name = if_text(if_object(if_object(value).get("function")).get("name"))
    # A tool may be called like one of the words. Then the choice is kept as it came.
    if name in ("", *choices.values()):
        return None
    if value == {"type": "function", "function": {"name": name}}:
        return name
    return None


def dump_tool_choice(choices: Mapping[str, str], choice: str, name: Callable[[str], str]) -> Any:
    """Writes the choice of a tool: a word of the Chat format, or the function that is chosen."""
    for format_choice, neutral_choice in choices.items():
        if neutral_choice == choice:
            return format_choice
    return {"type": "function", "function": {"name": name(choice)}}


# ------------------------------------------------------------------ calls


def load_calls(chat: DialectRecord, value: Any, fresh_ids: Iterator[str]) -> list[ToolCallPart]:
    """Reads the tool calls of a Chat message. Returns an empty list if one of them cannot be
    read."""
    calls = if_objects(value)
    if not all(is_call(chat, call) for call in calls):
        return []
    return [load_call(chat, call, fresh_ids) for call in calls]


def is_call(chat: DialectRecord, entry: JsonMap) -> bool:
    """True if an object can be read as a tool call of a Chat message."""
    call_type = entry.get("type", "function")
    if if_text(call_type) not in chat.inputs:
        return False
    return if_text(if_object(entry.get(call_type)).get("name")) != ""


def read_call_type(chat: DialectRecord, entry: JsonMap) -> str:
    """Returns the type of a Chat message's tool call: a function unless it names another known
    type."""
    call_type = if_text(entry.get("type"))
    if call_type in chat.inputs:
        return call_type
    return "function"


def load_call(chat: DialectRecord, call: JsonMap, fresh_ids: Iterator[str]) -> ToolCallPart:
    """Reads one tool call of a Chat message. Without an id it gets a fresh one and the note `"id":
    None`.

    A call that is not a function has a text as its input, which becomes the argument `input`.
    """
    if (plain := load_plain_call(chat, call)) is not None:
        return plain
    call_type = read_call_type(chat, call)
    body, field = if_object(call.get(call_type)), chat.inputs[call_type]
    form: Json = {}
    if "type" not in call or call_type != "function":
        form["type"] = call.get("type", ABSENT)
    call_id, fields = load_or_mint_id(call, "id", fresh_ids, form)
    part, value = ToolCallPart(call_id, str(body.get("name") or "")), body.get(field)
    if call_type != "function":
        part = replace(part, arguments={"input": str(value or "")})
    else:
        part = set_arguments(part, value)
        if field not in body:
            form["without"] = "arguments"
        elif arguments_json(part) != value:
            form["arguments"] = value
    fields |= read_extra_fields(call, "id", call_type, "type")
    if unread_fields := read_extra_fields(body, "name", field):
        fields[call_type] = unread_fields
    return replace(part, native=chat.own.note(fields, form))


def load_plain_call(chat: DialectRecord, call: JsonMap) -> ToolCallPart | None:
    """Reads a tool call of a Chat message in the usual form that holds nothing unusual. None for
    any other."""
    function = if_object(call.get("function"))
    if len(call) != 3 or len(function) != 2 or call.get("type") != "function":
        return None
    call_id, name = call.get("id"), function.get("name")
    text = function.get(chat.inputs["function"])
    if not isinstance(call_id, str) or not isinstance(name, str) or not isinstance(text, str):
        return None
    if "" in (call_id, name):
        return None
    part = parse_call(ToolCallPart(call_id, name), text)
    # An object is written again as it came (`raw`); anything else is kept by the long way.
    if part.state == "complete" and text.lstrip().startswith("{"):
        return part
    return None


def _restore_arguments(function: Json, field: str, call: ToolCallPart, form: JsonMap) -> None:
    """Puts the arguments of a Chat call back in the spelling in which they were loaded, or takes
    them out if they came without the field."""
    if "arguments" in form:
        # The loaded spelling counts only while it says the same.
        loaded = set_arguments(call, form["arguments"])
        if loaded.arguments == call.arguments:
            function[field] = form["arguments"]
    if "without" in form and not call.arguments:
        del function[field]


def dump_call(
    chat: DialectRecord, call: ToolCallPart, call_id: str | None, name: str, *, exact: bool
) -> Json:
    """Writes a tool call of a Chat message. `call_id`: the id to send, or None to send none.
    `exact`: write it in the form in which it was loaded."""
    form, fields = chat.own.form(call.native), read_extra_fields(chat.own.fields(call.native), "id")
    block: Json = {} if call_id is None and "id" not in form else {"id": call_id}
    call_type = if_text(form.get("type"))
    if call_type in chat.inputs and call_type != "function":
        custom = {"name": name, chat.inputs[call_type]: call.arguments.get("input", "")}
        return merge_wire_fields(block | {"type": call_type, call_type: custom}, fields)
    field = chat.inputs["function"]
    function: Json = {"name": name, field: arguments_json(call)}
    if exact:
        _restore_arguments(function, field, call, form)
    if not exact or call_type != ABSENT:
        block["type"] = "function"
    return merge_wire_fields(block | {"function": function}, fields)


def set_arguments(call: ToolCallPart, value: object) -> ToolCallPart:
    """Returns a tool call of Chat Completions with the arguments as a vendor has them: as text, as
    an object, or not at all."""
    if isinstance(value, dict):
        return replace(call, arguments=cast("Json", value), raw=None, state="complete")
    if isinstance(value, str):
        return parse_call(call, value)
    return call


def load_or_mint_id(
    owner: JsonMap, field: str, fresh_ids: Iterator[str], form: Json
) -> tuple[str, Json]:
    """Returns the id of a Chat tool call or message, or a fresh one, with the note that it came
    without one. Notes in `form` what stood in its place."""
    value = owner.get(field)
    if isinstance(value, str) and value:
        return value, {}
    if field in owner:
        form["id"] = value
    return next(fresh_ids), {"id": None}


def _read_provider_id(native_of: WireNative, native: Native, own_id: str | None) -> str | None:
    """Returns the id that the Chat Completions provider gave a tool call: None or empty if it gave
    none."""
    if native_of.fields(native).get("id", "") is None:
        return native_of.form(native).get("id")
    return own_id


def choose_call_id(out: OutgoingChat, position: int, index: int, call: ToolCallPart) -> str | None:
    """Returns the id under which a Chat request sends a call: the provider's own if the call goes
    back to that provider, otherwise one that fits the target. None if its provider gave the call no
    id."""
    if out.returns_to_origin(position):
        provider_id = _read_provider_id(out.chat.own, call.native, call.id)
        if provider_id != call.id:
            return provider_id
    return out.id(position, index, call)


# ------------------------------------------------------------------ results


def load_result(
    chat: DialectRecord,
    message: JsonMap,
    calls: dict[str, ToolCallPart],
    fresh_ids: Iterator[str],
) -> ToolResultPart:
    """Reads a tool message of a Chat request as a tool result.

    `calls`: the calls so far by id. They give the tool's name if the message has none. If neither
    has an id, the result answers the first such call that has no result yet.
    """
    result_id, content = message.get("tool_call_id"), message.get("content")
    usual = len(message) == 3 and message["role"] == chat.result_roles[0]
    if usual and isinstance(result_id, str) and isinstance(content, str) and result_id:
        name = calls[result_id].name if result_id in calls else ""
        return ToolResultPart(result_id, name, content)
    return _load_unusual_result(chat, message, calls, fresh_ids)


def _read_result_form(chat: DialectRecord, message: JsonMap) -> Json:
    """Returns the form of a tool message: its role if it is an older one, or that it has a name."""
    if message["role"] != chat.result_roles[0]:
        return {"role": message["role"]}
    return {"name": True} if if_text(message.get("name")) else {}


def _find_unnamed_calls(
    chat: DialectRecord, calls: Mapping[str, ToolCallPart], name: object
) -> Iterator[str]:
    """Yields the made-up ids of calls that came without one. `name`: only calls of that tool, if it
    is a text."""
    for call_id, call in calls.items():
        if _read_provider_id(chat.own, call.native, call_id):
            continue
        if not isinstance(name, str) or call.name == name:
            yield call_id


def _load_unusual_result(
    chat: DialectRecord,
    message: JsonMap,
    calls: dict[str, ToolCallPart],
    fresh_ids: Iterator[str],
) -> ToolResultPart:
    """Reads a tool message that has no id, or something of a vendor's own."""
    name, form = message.get("name"), _read_result_form(chat, message)
    read_name = name if form and isinstance(name, str) else None
    read = ["role", "tool_call_id", "content"]
    if read_name is not None:
        read.append("name")
    # A result without an id answers the first call without one that has no result yet.
    ids = chain(_find_unnamed_calls(chat, calls, name), fresh_ids)
    call_id, id_note = load_or_mint_id(message, "tool_call_id", ids, form)
    call = calls.pop(call_id, None) if id_note else calls.get(call_id)
    fields = read_extra_fields(message, *read)
    if fields.get("id") is None:
        # In the fields, `id: None` says that the result came without an id.
        fields = read_extra_fields(fields, "id")
    result = _load_result(chat, message, form)
    if read_name is None:
        read_name = call.name if call else ""
    return ToolResultPart(call_id, read_name, result, native=chat.own.note(fields | id_note, form))


def _dump_result_head(
    out: OutgoingChat, part: ToolResultPart, call_id: str | None, form: JsonMap
) -> Json:
    """Writes the fields of a tool message that say which call it answers."""
    roles, role = out.chat.result_roles, form.get("role")
    head: Json = {"role": role if role in roles else roles[0]}
    if call_id is not None or "id" in form:
        head["tool_call_id"] = call_id
    # A message of an older role names its function, not its call.
    if "name" in form or "role" in form:
        head["name"] = out.name(part.name)
    return head


def dump_result(
    out: OutgoingChat, position: int, index: int, part: ToolResultPart, call_id: str | None
) -> tuple[Json, list[Json]]:
    """Writes the tool message of a result. Also returns the blocks of media that the vendor takes in
    a user message only."""
    chat, native_of = out.chat, out.chat.own
    fields = native_of.fields(part.native)
    form: JsonMap = {}
    if out.target is None:
        form = native_of.form(part.native)
        call_id = _read_provider_id(native_of, part.native, call_id)
    elif chat.bare_results:
        fields = {}
    # An older `function_call` has no id, so its result names the function instead.
    if call_id is None and out.target is not None and _answers_function_call(out, position, part):
        form = {"role": "function"}
    body = _dump_result_head(out, part, call_id, form)
    content, media = _dump_result(out, position, index, part, form)
    if out.target is not None or fields.get("id") is None:
        fields = read_extra_fields(fields, "id")
    return merge_wire_fields(body | content, fields), media


def _answers_function_call(out: OutgoingChat, position: int, part: ToolResultPart) -> bool:
    """True if a Chat tool result answers a `function_call`, which is the one call of its message
    and has no id."""
    if not position or not out.returns_to_origin(position - 1):
        return False
    return any(
        call.id == part.id and out.chat.own.form(call.native).get("field") == "function_call"
        for call in out.messages[position - 1].tool_calls
    )


def _load_result(chat: DialectRecord, message: JsonMap, form: Json) -> Any:
    """Reads the content of a tool message. Text stays text and blocks become parts. Anything else
    is the result itself, with the wire form `raw`."""
    if "content" not in message:
        form["content"] = ABSENT
        return None
    content = message["content"]
    if isinstance(content, str):
        return content
    parts = tuple(load_block(chat, block) for block in if_objects(content))
    if not parts or any(isinstance(part, (ProviderPart, ThinkingPart)) for part in parts):
        form["content"] = "raw"
        return content
    if len(parts) == 1 or not all(isinstance(part, TextPart) for part in parts):
        form["content"] = "list"
    return parts


def _dump_result(
    out: OutgoingChat, position: int, index: int, part: ToolResultPart, form: JsonMap
) -> tuple[Json, list[Json]]:
    """Writes the content of a Chat tool result: text as it is, parts as blocks, anything else as
    JSON. Also returns the blocks of media that do not fit there."""
    content_form, result = form.get("content"), part.result
    if content_form == ABSENT and result is None:
        return {}, []
    if not part.is_content:
        return {"content": result if content_form == "raw" else text_or_json(result)}, []
    takes_media = out.tool_media or content_form == "list"
    blocks: list[Json] = []
    media: list[Json] = []
    for piece in result:
        block = out.chat.dump_noted_block(out, position, index, piece) or {}
        if takes_media or isinstance(piece, TextPart):
            blocks.append(block)
        else:
            media.append(block)
    list_form = {"content": "list"} if content_form == "list" else {}
    return dump_content(blocks, "", list_form, string_only=out.string_only), media
