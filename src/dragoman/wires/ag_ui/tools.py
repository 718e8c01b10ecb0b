"""Tools of the client, calls, and results of calls.

`load_…` reads a protocol object, and `dump_…` writes one. Fields of the protocol without a neutral
name are kept in `native`. Neutral fields without a protocol field travel in the object's
extras: a dump reads back what it has written, as any reader would, and adds the difference
between that and the original. The next load applies it, so that nothing is lost between two
dragoman peers, and other peers ignore it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dragoman import json_bytes
from dragoman.codec.json_difference import apply_difference, find_difference, is_equal
from dragoman.codec.json_values import (
    if_list,
    if_object,
    if_text,
    merge_wire_fields,
    optional_field,
    text_or_json,
)
from dragoman.codec.media import describe_as_text
from dragoman.errors import HistoryError
from dragoman.fold import arguments_json, parse_call
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import TextPart, ToolCallPart, ToolResultPart
from dragoman.request import ToolSpec
from dragoman.wires.ag_ui.content import dump_block, load_content
from dragoman.wires.ag_ui.quirks import OWN, add_extras, load_extras, load_native

__all__ = [
    "dump_call",
    "dump_output",
    "dump_result",
    "dump_tools",
    "load_call",
    "load_output",
    "load_result",
    "load_tools",
    "part_extras",
    "text_of",
]

_JSON = "json"
"""Key in a result's extras: its text is JSON."""


def load_tools(tools: Any) -> tuple[ToolSpec, ...]:
    """Returns the tools in the AG-UI field `tools`, which the client runs.

    Raises:
        HistoryError: a tool has no name.
    """
    entries = [if_object(tool) for tool in if_list(tools)]
    for index, tool in enumerate(entries):
        if not if_text(tool.get("name")):
            raise HistoryError(
                f"tools[{index}] of a RunAgentInput is an object with a name, a text"
            )
    return tuple([_load_tool(tool) for tool in entries])


def _load_tool(tool: JsonMap) -> ToolSpec:
    """Reads one tool of AG-UI's client."""
    spec = ToolSpec(
        tool["name"],
        if_text(tool.get("description")),
        if_object(tool.get("parameters")),
        load_native(tool, "name", "description", "parameters"),
    )
    return apply_difference(spec, load_extras(tool.get("metadata")), ToolSpec)


def dump_tools(tools: Iterable[ToolSpec]) -> list[Json]:
    """Returns the field `tools`."""
    return [_dump_tool(spec) for spec in tools]


def _dump_tool(spec: ToolSpec) -> Json:
    """Returns a client tool as an element of AG-UI's `tools`."""
    tool = {
        "name": spec.name,
        "description": spec.description,
        "parameters": dict(spec.input_schema),
    }
    tool = merge_wire_fields(tool, OWN.fields(spec.native))
    return add_extras(tool, find_difference(spec, _load_tool(tool)))


def load_call(call: JsonMap) -> ToolCallPart:
    """Returns the call in an element of `toolCalls`.

    Raises:
        HistoryError: the element names no function.
    """
    function = if_object(call.get("function"))
    name, arguments = function.get("name"), function.get("arguments")
    if not isinstance(name, str):
        raise HistoryError("a tool call of AG-UI has a function with a name")
    native = load_native(call, "id", "type", "function")
    begun = ToolCallPart(if_text(call.get("id")), name, native=native)
    read = parse_call(begun, "" if arguments is None else text_or_json(arguments))
    return apply_difference(read, load_extras(call.get("metadata")).get("part"), ToolCallPart)


def dump_call(
    piece: ToolCallPart,
    id_: str,
    position: JsonMap,
    *,
    extras: bool = True,
) -> Json:
    """Returns a tool call as an element of `toolCalls` in an AG-UI message.

    Args:
        piece: the call.
        id_: the protocol's id of it.
        position: extras that say where it stands.
        extras: False to leave out what the protocol has no field for.
    """
    function = {"name": piece.name, "arguments": text_of(piece)}
    call = merge_wire_fields(
        {
            "id": id_,
            "type": "function",
            "function": function,
        },
        OWN.fields(piece.native),
    )
    if not extras:
        return add_extras(call, {})
    # read the call as its reader will, and carry what comes out otherwise
    if _is_plain_call(piece, id_, function["arguments"]):
        return add_extras(call, position)
    difference = find_difference(piece, load_call(call))
    return add_extras(call, {**position, **part_extras(difference)})


def _is_plain_call(piece: ToolCallPart, id_: str, text: str) -> bool:
    """True if a reader of AG-UI certainly gets this call from its id, its name and its arguments'
    text."""
    if piece.native or piece.raw is not None or piece.id != id_:
        return False
    if piece.run_by != "agent" or piece.state != "complete":
        return False
    try:
        return json_bytes.encode(json_bytes.decode(text)).decode() == text
    except ValueError:
        return False


def part_extras(difference: JsonMap) -> Json:
    """Returns the extras for what a reader would miss of a part, empty if nothing."""
    return optional_field("part", difference)


def text_of(call: ToolCallPart) -> str:
    """Returns an AG-UI call's arguments as JSON text, or their raw text if they are cut or
    invalid."""
    if call.state == "complete":
        return arguments_json(call)
    return call.raw or ""


def load_output(content: Any, extras: JsonMap, form: Json) -> Any:
    """Returns what a tool returned, from the content of its AG-UI message.

    Args:
        content: of the message.
        extras: of the message, which say if the text is JSON.
        form: takes a note of how the content was written.

    Raises:
        HistoryError: the content is neither a text nor a list of parts.
    """
    if isinstance(content, list):
        return tuple(load_content(content, form))
    text = "" if content is None else text_or_json(content)
    if extras.get(_JSON) is not True:
        return text
    try:
        return json_bytes.decode(text)
    except ValueError:
        return text


def dump_output(
    piece: ToolResultPart, *, parts: bool = True, extras: bool = True
) -> tuple[Any, Json]:
    """Returns the content of an AG-UI tool message, and the extras that say what the text is.

    Args:
        piece: the result.
        parts: True if the peer reads lists of parts.
        extras: False to leave out what the protocol has no field for.
    """
    if isinstance(piece.result, str):
        return piece.result, {}
    if not piece.is_content:
        return json_bytes.encode(piece.result).decode(), {_JSON: True}
    if parts:
        return [dump_block(part, extras=extras) for part in piece.result], {}
    texts = [
        part.text if isinstance(part, TextPart) else describe_as_text(part) for part in piece.result
    ]
    return "\n".join(texts), {}


def load_result(message: JsonMap, extras: JsonMap, names: Mapping[str, str]) -> ToolResultPart:
    """Returns the result in an AG-UI tool message. `names` maps the ids of earlier calls to their
    tools.

    Raises:
        HistoryError: the content is neither a text nor a list of parts.
    """
    form: Json = {}
    output, error = load_output(message.get("content"), extras, form), message.get("error")
    neutral = ["id", "role", "toolCallId", "content"]
    # an error that repeats the output says nothing of its own
    if not isinstance(error, str) or error in ("", output):
        neutral.append("error")
    id_ = if_text(message.get("toolCallId"))
    read = ToolResultPart(
        id_,
        names.get(id_, ""),
        error if error and output in ("", None) else output,
        bool(error),
        native=load_native(message, *neutral, form=form),
    )
    return apply_difference(read, extras.get("part"), ToolResultPart)


def dump_result(
    piece: ToolResultPart,
    id_: str,
    call_id: str,
    position: JsonMap,
    names: Mapping[str, str],
    *,
    parts: bool = True,
    extras: bool = True,
) -> tuple[Json, Json]:
    """Returns a tool result as an AG-UI tool message, and its extras.

    Args:
        piece: the result.
        id_: id of the message.
        call_id: the protocol's id of the call.
        position: extras that say where the result stands.
        names: call id → tool, of the calls before it.
        parts: True if the peer reads lists of parts.
        extras: False to leave out what the protocol has no field for.
    """
    content, form = dump_output(piece, parts=parts, extras=extras)
    message = {
        "id": id_,
        "role": "tool",
        "toolCallId": call_id,
        "content": content,
    }
    native_fields = OWN.fields(piece.native)
    if piece.is_error:
        message["error"] = if_text(native_fields.get("error")) or _error_text(content) or "error"
    message = merge_wire_fields(message, native_fields)
    if piece.id == call_id and names.get(call_id, "") == piece.name and _is_plain(piece, content):
        return message, {**position, **form}
    difference = find_difference(piece, load_result(message, form, names))
    return message, {**position, **form, **part_extras(difference)}


def _is_plain(piece: ToolResultPart, content: Any) -> bool:
    """True if a reader of AG-UI certainly gets this result from its call and its content."""
    is_bare = not (piece.native or piece.is_error or piece.denied or piece.is_content)
    if not is_bare or piece.run_by != "agent":
        return False
    if isinstance(piece.result, str):
        return True
    try:
        return is_equal(piece.result, json_bytes.decode(content))
    except ValueError:
        return False


def _error_text(content: Any) -> str:
    """Returns the text for the AG-UI tool message of a failed tool."""
    if isinstance(content, str):
        return content
    texts = [if_text(block.get("text")) for block in content]
    return "\n".join(filter(None, texts))
