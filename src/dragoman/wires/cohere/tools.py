"""Tools, the choice of one, calls and results ⇄ `ToolSpec`, settings and parts. The API has
functions only. Arguments are a text; a result is a text, or a list of texts and documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from dragoman.codec.functions import collect_own_fields, dump_tool, load_tool, read_function_name
from dragoman.codec.json_values import (
    has_error,
    if_list,
    if_object,
    if_text,
    merge_wire_fields,
    read_extra_fields,
    text_or_json,
)
from dragoman.codec.message_list import dump_content, is_plain_text
from dragoman.codec.outgoing import Outgoing
from dragoman.fold import arguments_json, parse_call
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss, Lost
from dragoman.message import TextPart, ToolCallPart, ToolResultPart
from dragoman.request import ServerTool, Settings, ToolSpec
from dragoman.wires.cohere.content import dump_block, load_block
from dragoman.wires.cohere.quirks import OWN, Quirks

__all__ = [
    "dump_call",
    "dump_result",
    "dump_tool_choice",
    "dump_tools",
    "load_call",
    "load_calls",
    "load_result",
    "load_tool_choice",
    "load_tools",
]

_CHOICES = {"REQUIRED": "required", "NONE": "none"}


def load_tools(body: Json) -> tuple[ToolSpec, ...]:
    """Takes `tools` out of `body`, where all can be read; those of the API's version 1 cannot."""
    tools = if_list(body.get("tools"))
    if not tools or not all(map(_is_tool, tools)):
        return ()
    return tuple(load_tool(OWN, tool) for tool in body.pop("tools"))


def dump_tools(tools: Iterable[ToolSpec | ServerTool], out: Outgoing[Quirks]) -> list[Json]:
    """The functions among them → `tools`; others are losses."""
    dumped: list[Json] = []
    for tool in tools:
        if isinstance(tool, ToolSpec):
            dumped.append(dump_tool(OWN, tool, out.name(tool.name)))
        else:
            out.lose(None, None, Lost.tool, "the API runs no tools of its own", tool.name)
    return dumped


def load_tool_choice(body: Json) -> Json:
    """Takes `tool_choice` out of `body` → the setting."""
    choice = body.get("tool_choice")
    return (
        {"tool_choice": _CHOICES[body.pop("tool_choice")]}
        if isinstance(choice, str) and choice in _CHOICES
        else {}
    )


def dump_tool_choice(settings: Settings, losses: list[Loss]) -> Json:
    """The settings → `tool_choice`. A choice of one tool is the choice of any, and a loss."""
    choice = settings.tool_choice
    chosen = choice is not None and choice != "auto"
    if chosen and choice not in _CHOICES.values():
        losses.append(
            Loss(
                None,
                None,
                Lost.setting,
                f"the API can force a call, not that of {choice}",
                "tool_choice",
            )
        )
    if settings.parallel_tool_calls is not None:
        losses.append(
            Loss(None, None, Lost.setting, "the API has no such setting", "parallel_tool_calls")
        )
    if not chosen:
        return {}
    return {"tool_choice": "NONE" if choice == "none" else "REQUIRED"}


def load_calls(entries: Any) -> list[ToolCallPart]:
    """A message's `tool_calls` → the calls; none where one of them cannot be read."""
    calls = if_list(entries)
    return [load_call(call) for call in calls] if all(map(_is_call, calls)) else []


def load_call(call: JsonMap) -> ToolCallPart:
    """One of a message's `tool_calls` → the call. No arguments, an empty text and `null` are
    none."""
    function = if_object(call.get("function"))
    part = ToolCallPart(if_text(call.get("id")), if_text(function.get("name")))
    text = function.get("arguments")
    absent = [
        name for name, fields in (("type", call), ("arguments", function)) if name not in fields
    ]
    form: Json = {"without": absent} if absent else {}
    if call.get("type", "function") != "function":
        form["type"] = call["type"]
    if isinstance(text, str):
        part = parse_call(part, text)
    if "arguments" in function and arguments_json(part) != text:
        form["arguments"] = text
    further = collect_own_fields(
        read_extra_fields(call, "id", "type", "function"),
        read_extra_fields(function, "name", "arguments"),
    )
    return replace(part, native=OWN.note(further, form=form))


def dump_call(call: ToolCallPart, call_id: str, name: str, *, exact: bool = True) -> Json:
    """The inverse, under that id and name. `exact`: in the form in which it was loaded."""
    form: JsonMap = OWN.form(call.native) if exact else {}
    function: Json = {"name": name, "arguments": arguments_json(call)}
    absent = if_list(form.get("without"))
    if not call.arguments:
        function |= {"arguments": form["arguments"]} if "arguments" in form else {}
        function = read_extra_fields(function, "arguments") if "arguments" in absent else function
    type_ = {} if "type" in absent else {"type": form.get("type", "function")}
    return merge_wire_fields(
        {"id": call_id, **type_, "function": function}, OWN.fields(call.native)
    )


def load_result(entry: JsonMap, names: Mapping[str, str]) -> ToolResultPart:
    """A tool message → the result. `names`: id of each call so far → its tool. A single document is
    the data in it."""
    call_id = if_text(entry.get("tool_call_id"))
    content, form = entry.get("content"), Json()
    result: Any = content
    blocks = if_list(content)
    loaded = [load_block(if_object(block)) for block in blocks]
    if "content" not in entry:
        form["content"] = "absent"
    elif (data := _only_document(blocks)) is not None:
        result, form["content"] = data, "document"
    elif blocks and all(isinstance(part, TextPart) for part in loaded):
        result = tuple(loaded)
        form |= {"content": "list"} if is_plain_text(blocks) else {}
    elif not isinstance(content, str):
        form["content"] = "raw"
    further = read_extra_fields(entry, "role", "content", *(["tool_call_id"] if call_id else []))
    return ToolResultPart(
        call_id, names.get(call_id, ""), result, native=OWN.note(further, form=form)
    )


def dump_result(
    part: ToolResultPart, out: Outgoing[Quirks], position: int, index: int
) -> tuple[Json, list[Json]]:
    """A result → its tool message, and the blocks of media that are taken in a user message only.
    What is no text and no list of parts becomes JSON."""
    call_id = out.id(position, index, part)
    body: Json = {"role": "tool", **({"tool_call_id": call_id} if call_id else {})}
    if part.is_error and not has_error(part.result):
        out.lose(position, index, Lost.is_error, "this format has no mark for a failed tool")
    content, media = _dump_returned(part, out, position, index)
    if media:
        media = [{"type": "text", "text": f"[result of {part.name or part.id}]"}, *media]
        why = "results of tools hold text and documents only; it follows in a user message"
        out.lose(position, index, Lost.media, why)
    return merge_wire_fields({**body, **content}, OWN.fields(part.native)), media


def _dump_returned(
    part: ToolResultPart, out: Outgoing[Quirks], position: int, index: int
) -> tuple[Json, list[Json]]:
    form = OWN.form(part.native)
    content_form = form.get("content")
    if content_form == "absent" and part.result is None:
        return {}, []
    if content_form == "document" and (isinstance(part.result, str) or if_object(part.result)):
        return {"content": [_document(part.result)]}, []
    if content_form == "raw" and not part.is_content:
        return {"content": part.result}, []
    if not part.is_content:
        return {"content": text_or_json(part.result)}, []
    blocks: list[Json] = []
    media: list[Json] = []
    for piece in part.result or ():
        block, lost = dump_block(piece)
        if lost is not None:
            out.lose(position, index, *lost)
        if block is not None:
            (blocks if block["type"] == "text" else media).append(block)
    return dump_content(blocks, "", form), media


def _document(data: Any) -> Json:
    return {"type": "document", "document": {"data": data}}


def _only_document(blocks: list[Any]) -> str | Json | None:
    """The data of a document that is all there is, and has nothing beside it."""
    data = if_object(if_object(blocks[0]).get("document")).get("data") if len(blocks) == 1 else None
    document = data if isinstance(data, str) else if_object(data) or None
    return document if document is not None and blocks[0] == _document(document) else None


def _is_call(entry: Any) -> bool:
    call = if_object(entry)
    return if_text(call.get("id")) != "" and read_function_name(call) != ""


def _is_tool(entry: Any) -> bool:
    tool = if_object(entry)
    return tool.get("type") == "function" and read_function_name(tool) != ""
