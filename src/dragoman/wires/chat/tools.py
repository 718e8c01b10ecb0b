"""Tools: those of a request ⇄ `ToolSpec` (functions) and `ServerTool` (what the provider runs), the
choice of one, calls, results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, cast

from msgspec.structs import replace

from dragoman.codec import functions
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
    "call_id",
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
    """Takes the tools out of `body`; what cannot be read as tools stays."""
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
    """Tools → the field of the body that holds them."""
    return {out.chat.tools: [dump_tool(out.chat, tool, out.name) for tool in tools]}


def load_tool(chat: DialectRecord, tool: JsonMap) -> ToolSpec | ServerTool:
    """One of `tools`."""
    function = if_object(tool.get("function"))
    if not is_function(function) or tool.get("type", "function") != "function":
        return ServerTool(tool["type"], read_extra_fields(tool, "type"))
    return functions.load_tool(chat.own, tool)


def dump_tool(chat: DialectRecord, tool: ToolSpec | ServerTool, name: Callable[[str], str]) -> Json:
    """A tool → one of `tools`. `name`: its name → the one that it is sent under."""
    if isinstance(tool, ServerTool):
        return {"type": tool.name, **tool.options}
    return functions.dump_tool(chat.own, tool, name(tool.name))


def is_function(function: JsonMap) -> bool:
    """Whether it can be read as a function."""
    return if_text(function.get("name")) != ""


def _is_tool(tool: JsonMap) -> bool:
    return if_text(tool.get("type")) != "" or (
        "type" not in tool and is_function(if_object(tool.get("function")))
    )


def load_tool_choice(choices: Mapping[str, str], value: Any) -> str | None:
    """The choice of a tool, where it is a plain one. `choices`: those of the format → the neutral
    ones."""
    if isinstance(value, str):
        return choices.get(value)
    name = if_text(if_object(if_object(value).get("function")).get("name"))
    plain = name not in ("", *choices.values()) and value == {
        "type": "function",
        "function": {"name": name},
    }
    return name if plain else None


def dump_tool_choice(choices: Mapping[str, str], choice: str, name: Callable[[str], str]) -> Any:
    """The choice → a word of the format, or the function that is chosen."""
    choice_name = next(
        (choice_name for choice_name, neutral in choices.items() if neutral == choice), None
    )
    return choice_name or {"type": "function", "function": {"name": name(choice)}}


# ------------------------------------------------------------------ calls


def load_calls(chat: DialectRecord, value: Any, fresh_ids: Iterator[str]) -> list[ToolCallPart]:
    """The calls of a message; none, where one of them cannot be read."""
    calls = if_objects(value)
    return (
        [load_call(chat, call, fresh_ids) for call in calls]
        if all(is_call(chat, call) for call in calls)
        else []
    )


def is_call(chat: DialectRecord, entry: JsonMap) -> bool:
    """Whether it is a call that can be read as one."""
    call_type = entry.get("type", "function")
    return (
        if_text(call_type) in chat.inputs
        and if_text(if_object(entry.get(call_type)).get("name")) != ""
    )


def read_call_type(chat: DialectRecord, entry: JsonMap) -> str:
    """The type of a call: a function, where no other is known."""
    call_type = if_text(entry.get("type"))
    return call_type if call_type in chat.inputs else "function"


def load_call(chat: DialectRecord, call: JsonMap, fresh_ids: Iterator[str]) -> ToolCallPart:
    """One call of a message. Without an id it gets a fresh one and the note `"id": None`.

    What is no function has a text as its input, which is the argument `input`.
    """
    if (plain := load_plain_call(chat, call)) is not None:
        return plain
    call_type = read_call_type(chat, call)
    body, field = if_object(call.get(call_type)), chat.inputs[call_type]
    form: Json = (
        {} if "type" in call and call_type == "function" else {"type": call.get("type", ABSENT)}
    )
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
    unread_fields = read_extra_fields(body, "name", field)
    fields |= read_extra_fields(call, "id", call_type, "type") | (
        {call_type: unread_fields} if unread_fields else {}
    )
    return replace(part, native=chat.own.note(fields, form))


def load_plain_call(chat: DialectRecord, call: JsonMap) -> ToolCallPart | None:
    """A call that holds nothing but what every one does, in the usual form; `None`: it is no
    such."""
    function = if_object(call.get("function"))
    if len(call) != 3 or len(function) != 2 or call.get("type") != "function":
        return None
    call_id, name, text = (
        call.get("id"),
        function.get("name"),
        function.get(chat.inputs["function"]),
    )
    if not (
        isinstance(call_id, str)
        and isinstance(name, str)
        and isinstance(text, str)
        and call_id
        and name
    ):
        return None
    # Arguments that would be written in another form are kept as they came, by the longer way.
    part = parse_call(ToolCallPart(call_id, name), text)
    return part if arguments_json(part) == text else None


def dump_call(
    chat: DialectRecord, call: ToolCallPart, call_id: str | None, name: str, *, exact: bool
) -> Json:
    """A call → one of a message's calls, under that id (`None`: none). `exact`: in the form in
    which it was loaded."""
    form, fields = chat.own.form(call.native), read_extra_fields(chat.own.fields(call.native), "id")
    block: Json = {} if call_id is None and "id" not in form else {"id": call_id}
    call_type = if_text(form.get("type"))
    if call_type in chat.inputs and call_type != "function":
        text = call.arguments.get("input", "")
        return merge_wire_fields(
            block | {"type": call_type, call_type: {"name": name, chat.inputs[call_type]: text}},
            fields,
        )
    field = chat.inputs["function"]
    function: Json = {"name": name, field: arguments_json(call)}
    if (
        exact
        and "arguments" in form
        and set_arguments(call, form["arguments"]).arguments == call.arguments
    ):
        function[field] = form["arguments"]
    if exact and "without" in form and not call.arguments:
        del function[field]
    if not (exact and call_type == ABSENT):
        block["type"] = "function"
    return merge_wire_fields(block | {"function": function}, fields)


def set_arguments(call: ToolCallPart, value: object) -> ToolCallPart:
    """A call with its arguments as a vendor has them: as text, as an object, or not at all."""
    if isinstance(value, dict):
        return replace(call, arguments=cast("Json", value), raw=None, state="complete")
    return parse_call(call, value) if isinstance(value, str) else call


def load_or_mint_id(
    owner: JsonMap, field: str, fresh_ids: Iterator[str], form: Json
) -> tuple[str, Json]:
    """An id, or a fresh one where none was given; then the note of that, and in `form` what stood
    in its place."""
    value = owner.get(field)
    if isinstance(value, str) and value:
        return value, {}
    if field in owner:
        form["id"] = value
    return next(fresh_ids), {"id": None}


def _read_provider_id(native_of: WireNative, native: Native, own_id: str | None) -> str | None:
    """The id that was given: `None` or an empty one where there was none."""
    return (
        native_of.form(native).get("id")
        if native_of.fields(native).get("id", "") is None
        else own_id
    )


def call_id(out: OutgoingChat, position: int, index: int, call: ToolCallPart) -> str | None:
    """The id under which a call is sent. One that its provider did not give is not sent back to it
    (`None`)."""
    provider_id = (
        _read_provider_id(out.chat.own, call.native, call.id)
        if out.returns_to_origin(position)
        else call.id
    )
    return out.id(position, index, call) if provider_id == call.id else provider_id


# ------------------------------------------------------------------ results


def load_result(
    chat: DialectRecord,
    message: JsonMap,
    calls: dict[str, ToolCallPart],
    fresh_ids: Iterator[str],
) -> ToolResultPart:
    """A tool message → the result. `calls`: those so far by id; they give the tool's name where the
    message does not, and the id where neither has one (the first such call that is not answered
    yet)."""
    result_id, content = message.get("tool_call_id"), message.get("content")
    usual = len(message) == 3 and message["role"] == chat.result_roles[0]
    if usual and isinstance(result_id, str) and isinstance(content, str) and result_id:
        return ToolResultPart(
            result_id, calls[result_id].name if result_id in calls else "", content
        )
    native_of, name, form = chat.own, message.get("name"), Json()
    if message["role"] != chat.result_roles[0]:
        form["role"] = message["role"]
    elif isinstance(name, str) and name:
        form["name"] = True
    # A result without an id answers the first call without one that is not answered yet.
    unnamed = (
        key
        for key, call in calls.items()
        if not _read_provider_id(native_of, call.native, key)
        and (not isinstance(name, str) or call.name == name)
    )
    read = ("name",) if form and isinstance(name, str) else ()
    call_id, fields = load_or_mint_id(message, "tool_call_id", chain(unnamed, fresh_ids), form)
    call = calls.pop(call_id, None) if fields else calls.get(call_id)
    further = read_extra_fields(message, "role", "tool_call_id", "content", *read)
    fields = (
        further if further.get("id") is not None else read_extra_fields(further, "id")
    ) | fields
    result = _load_result(chat, message, form)
    call_name = call.name if call else ""
    named = name if isinstance(name, str) and read else call_name
    return ToolResultPart(call_id, named, result, native=native_of.note(fields, form))


def dump_result(
    out: OutgoingChat, position: int, index: int, part: ToolResultPart, call_id: str | None
) -> tuple[Json, list[Json]]:
    """A result → its tool message, and the blocks of media that the vendor takes in a user message
    only."""
    native_of = out.chat.own
    form, fields = (
        native_of.form(part.native) if out.target is None else {},
        native_of.fields(part.native),
    )
    if out.target is not None and out.chat.bare_results:
        fields = {}
    if out.target is None:
        call_id = _read_provider_id(native_of, part.native, call_id)
    role = form.get("role")
    if call_id is None and out.target is not None and _answers_function_call(out, position, part):
        form = {"role": (role := "function")}
    body: Json = {"role": role if role in out.chat.result_roles else out.chat.result_roles[0]}
    if call_id is not None or "id" in form:
        body["tool_call_id"] = call_id
    if "name" in form or "role" in form:
        body["name"] = out.name(part.name)
    content, media = _dump_result(out, position, index, part, form)
    further = (
        fields
        if out.target is None and fields.get("id") is not None
        else read_extra_fields(fields, "id")
    )
    return merge_wire_fields(body | content, further), media


def _answers_function_call(out: OutgoingChat, position: int, part: ToolResultPart) -> bool:
    """Whether a result answers the one call of a message that is sent as `function_call`, which has
    no id."""
    calls = (
        out.messages[position - 1].tool_calls
        if position and out.returns_to_origin(position - 1)
        else ()
    )
    return any(
        call.id == part.id and out.chat.own.form(call.native).get("field") == "function_call"
        for call in calls
    )


def _load_result(chat: DialectRecord, message: JsonMap, form: Json) -> Any:
    """Text stays text, blocks become parts; anything else is the result itself, in the form
    `raw`."""
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
    """Text as it is, parts as blocks, anything else as JSON."""
    content_form, result = form.get("content"), part.result
    if content_form == ABSENT and result is None:
        return {}, []
    if content_form == "raw" and not part.is_content:
        return {"content": result}, []
    if not part.is_content:
        return {"content": text_or_json(result)}, []
    blocks = [
        (piece, out.chat.dump_noted_block(out, position, index, piece) or {}) for piece in result
    ]
    whole = out.tool_media or content_form == "list"
    sendable = [block for piece, block in blocks if whole or isinstance(piece, TextPart)]
    media = [block for piece, block in blocks if not (whole or isinstance(piece, TextPart))]
    return dump_content(
        sendable,
        "",
        {"content": "list"} if content_form == "list" else {},
        string_only=out.string_only,
    ), media
