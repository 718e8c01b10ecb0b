"""Tools of the client, calls, and results of calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dragoman import json_bytes
from dragoman.codec.carried import changed, difference
from dragoman.codec.json_values import if_list, if_object, if_text, merged, text_or_json
from dragoman.codec.media import as_text
from dragoman.errors import HistoryError
from dragoman.fold import arguments_json, parse_call
from dragoman.message import TextPart, ToolCallPart, ToolResultPart
from dragoman.request import ToolSpec
from dragoman.wires.ag_ui.content import dump_block, load_content
from dragoman.wires.ag_ui.quirks import OWN, native_of, unpacked, with_extras

__all__ = [
    "dump_call",
    "dump_output",
    "dump_result",
    "dump_tools",
    "load_call",
    "load_output",
    "load_result",
    "load_tools",
    "text_of",
]

_JSON = "json"
"""Of a result's extras: the text is JSON."""


def load_tools(tools: Any) -> tuple[ToolSpec, ...]:
    """The field `tools` → the tools that the client runs.

    Raises:
        HistoryError: one has no name.
    """
    listed = [if_object(tool) for tool in if_list(tools)]
    for place, tool in enumerate(listed):
        if not if_text(tool.get("name")):
            raise HistoryError(
                f"tools[{place}] of a RunAgentInput is an object with a name, a text"
            )
    return tuple([_tool(tool) for tool in listed])


def _tool(tool: Mapping[str, Any]) -> ToolSpec:
    read = ToolSpec(
        tool["name"],
        if_text(tool.get("description")),
        if_object(tool.get("parameters")),
        native_of(tool, "name", "description", "parameters"),
    )
    return changed(read, unpacked(tool.get("metadata")), ToolSpec)


def dump_tools(tools: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    """The inverse."""
    dumped: list[dict[str, Any]] = []
    for spec in tools:
        tool = {
            "name": spec.name,
            "description": spec.description,
            "parameters": dict(spec.input_schema),
        }
        tool = merged(tool, OWN.fields(spec.native))
        dumped.append(with_extras(tool, difference(spec, _tool(tool))))
    return dumped


def load_call(call: Mapping[str, Any]) -> ToolCallPart:
    """An element of `toolCalls` → the call.

    Raises:
        HistoryError: it names no function.
    """
    function = if_object(call.get("function"))
    name, text = function.get("name"), function.get("arguments")
    if not isinstance(name, str):
        raise HistoryError("a tool call of AG-UI has a function with a name")
    native = native_of(call, "id", "type", "function")
    read = ToolCallPart(if_text(call.get("id")), name, native=native)
    read = parse_call(read, "" if text is None else text_or_json(text))
    return changed(read, unpacked(call.get("metadata")).get("part"), ToolCallPart)


def dump_call(
    piece: ToolCallPart, id_: str, at: Mapping[str, Any], *, extras: bool = True
) -> dict[str, Any]:
    """The inverse. `id_`: under which the protocol knows the call; `at`: extras that say where it stands."""
    function = {"name": piece.name, "arguments": text_of(piece)}
    call = merged({"id": id_, "type": "function", "function": function}, OWN.fields(piece.native))
    if not extras:
        return with_extras(call, {})
    more = difference(piece, load_call(call))
    return with_extras(call, {**at, **({"part": more} if more else {})})


def text_of(call: ToolCallPart) -> str:
    """A call's arguments as text: what came of them where they are cut or no JSON, else a JSON object."""
    return arguments_json(call) if call.state == "complete" else call.raw or ""


def load_output(content: Any, held: Mapping[str, Any], form: dict[str, Any]) -> Any:
    """The content of a result → what the tool returned. `held`: its extras.

    Raises:
        HistoryError: it is neither a text nor a list of parts.
    """
    if isinstance(content, list):
        return tuple(load_content(content, form))
    text = (
        if_text(content) if content is None or isinstance(content, str) else text_or_json(content)
    )
    if held.get(_JSON) is True:
        try:
            return json_bytes.decode(text)
        except ValueError:
            return text
    return text


def dump_output(
    piece: ToolResultPart, *, parts: bool = True, extras: bool = True
) -> tuple[Any, dict[str, Any]]:
    """What a tool returned → the content of a result, and what the extras say of it. `parts`: the peer reads a list of them."""
    if piece.is_content:
        if parts:
            return [dump_block(part, extras=extras) for part in piece.result], {}
        texts = [
            part.text if isinstance(part, TextPart) else as_text(part) for part in piece.result
        ]
        return "\n".join(texts), {}
    if isinstance(piece.result, str):
        return piece.result, {}
    return json_bytes.encode(piece.result).decode(), {_JSON: True}


def load_result(
    message: Mapping[str, Any], held: Mapping[str, Any], names: Mapping[str, str]
) -> ToolResultPart:
    """A tool's message → the result. `names`: of the calls before it, by id.

    Raises:
        HistoryError: its content is neither a text nor a list of parts.
    """
    form: dict[str, Any] = {}
    output, error = load_output(message.get("content"), held, form), message.get("error")
    neutral = ["id", "role", "toolCallId", "content"]
    if not isinstance(error, str) or error in ("", output):
        neutral.append("error")
    id_ = if_text(message.get("toolCallId"))
    read = ToolResultPart(
        id_,
        names.get(id_, ""),
        error if error and output in ("", None) else output,
        bool(error),
        native=native_of(message, *neutral, form=form),
    )
    return changed(read, held.get("part"), ToolResultPart)


def dump_result(
    piece: ToolResultPart,
    id_: str,
    call_id: str,
    at: Mapping[str, Any],
    names: Mapping[str, str],
    *,
    parts: bool = True,
    extras: bool = True,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The inverse: the message without its extras, and those. `call_id`: under which the protocol knows the call."""
    content, held = dump_output(piece, parts=parts, extras=extras)
    message = {"id": id_, "role": "tool", "toolCallId": call_id, "content": content}
    own = OWN.fields(piece.native)
    if piece.is_error:
        shown = (
            content
            if isinstance(content, str)
            else "\n".join(t for b in content if (t := if_text(b.get("text"))))
        )
        message["error"] = if_text(own.get("error")) or shown or "error"
    message = merged(message, own)
    more = difference(piece, load_result(message, held, names))
    return message, {**at, **held, **({"part": more} if more else {})}
