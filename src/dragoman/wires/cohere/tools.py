"""Reads and writes tools, the choice of a tool, calls and results. The API has functions only.
Arguments are a text; a result is a text, or a list of texts and documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from dragoman.codec.function_tools import (
    collect_own_fields,
    dump_tool,
    load_tool,
    read_function_name,
)
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
from dragoman.codec.outgoing_conversation import Outgoing
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
    """Takes `tools` out of `body`. If one cannot be read, as those of the Cohere API's version 1,
    all stay there."""
    tools = if_list(body.get("tools"))
    if not tools or not all(map(_is_tool, tools)):
        return ()
    return tuple(load_tool(OWN, tool) for tool in body.pop("tools"))


def dump_tools(tools: Iterable[ToolSpec | ServerTool], out: Outgoing[Quirks]) -> list[Json]:
    """Writes the functions among the tools as Cohere's `tools`. Others are lost."""
    dumped: list[Json] = []
    for tool in tools:
        if isinstance(tool, ToolSpec):
            dumped.append(dump_tool(OWN, tool, out.name(tool.name)))
        else:
            out.lose(None, None, Lost.tool, "the API runs no tools of its own", tool.name)
    return dumped


def load_tool_choice(body: Json) -> Json:
    """Takes Cohere's `tool_choice` out of `body`. Returns the setting, or nothing for an unknown
    word."""
    choice = body.get("tool_choice")
    if not isinstance(choice, str) or choice not in _CHOICES:
        return {}
    del body["tool_choice"]
    return {"tool_choice": _CHOICES[choice]}


def dump_tool_choice(settings: Settings, losses: list[Loss]) -> Json:
    """Writes Cohere's `tool_choice`. The choice of one tool becomes the choice of any, which is a
    loss."""
    choice, body = settings.tool_choice, Json()
    if choice is not None and choice != "auto":
        body["tool_choice"] = "NONE" if choice == "none" else "REQUIRED"
        if choice not in _CHOICES.values():
            why = f"the API can force a call, not that of {choice}"
            losses.append(Loss(None, None, Lost.setting, why, "tool_choice"))
    if settings.parallel_tool_calls is not None:
        why = "the API has no such setting"
        losses.append(Loss(None, None, Lost.setting, why, "parallel_tool_calls"))
    return body


def load_calls(entries: Any) -> list[ToolCallPart]:
    """Reads a Cohere message's `tool_calls`. Returns an empty list if one of them cannot be
    read."""
    calls = if_list(entries)
    if not all(map(_is_call, calls)):
        return []
    return [load_call(call) for call in calls]


def load_call(call: JsonMap) -> ToolCallPart:
    """Reads one of a Cohere message's `tool_calls`. An empty text and `null` are no arguments."""
    function = if_object(call.get("function"))
    part = ToolCallPart(if_text(call.get("id")), if_text(function.get("name")))
    text = function.get("arguments")
    absent = [] if "type" in call else ["type"]
    if "arguments" not in function:
        absent.append("arguments")
    form: Json = {"without": absent} if absent else {}
    if call.get("type", "function") != "function":
        form["type"] = call["type"]
    if isinstance(text, str):
        part = parse_call(part, text)
    # Arguments that would be written in another spelling are kept as they came.
    if "arguments" in function and arguments_json(part) != text:
        form["arguments"] = text
    fields = collect_own_fields(
        read_extra_fields(call, "id", "type", "function"),
        read_extra_fields(function, "name", "arguments"),
    )
    return replace(part, native=OWN.note(fields, form=form))


def dump_call(call: ToolCallPart, call_id: str, name: str, *, exact: bool = True) -> Json:
    """Writes one of a Cohere message's `tool_calls`, under that id and name. `exact`: in the form
    in which it was loaded."""
    form: JsonMap = OWN.form(call.native) if exact else {}
    absent = if_list(form.get("without"))
    function: Json = {"name": name, "arguments": arguments_json(call)}
    if not call.arguments:
        if "arguments" in form:
            function["arguments"] = form["arguments"]
        if "arguments" in absent:
            del function["arguments"]
    block: Json = {"id": call_id}
    if "type" not in absent:
        block["type"] = form.get("type", "function")
    block["function"] = function
    return merge_wire_fields(block, OWN.fields(call.native))


def load_result(entry: JsonMap, names: Mapping[str, str]) -> ToolResultPart:
    """Reads a Cohere tool message. `names`: id of each call so far → its tool. A result that is one
    document becomes the data in it."""
    call_id = if_text(entry.get("tool_call_id"))
    read = ["role", "content"]
    if call_id:
        read.append("tool_call_id")
    form: Json = {}
    result = _load_content(entry, form)
    native = OWN.note(read_extra_fields(entry, *read), form=form)
    return ToolResultPart(call_id, names.get(call_id, ""), result, native=native)


def _load_content(entry: JsonMap, form: Json) -> Any:
    """Reads the content of a Cohere tool message. Notes in `form` how it was written."""
    content = entry.get("content")
    blocks = if_list(content)
    loaded = [load_block(if_object(block)) for block in blocks]
    if "content" not in entry:
        form["content"] = "absent"
    elif (data := _only_document(blocks)) is not None:
        form["content"] = "document"
        return data
    elif blocks and all(isinstance(part, TextPart) for part in loaded):
        if is_plain_text(blocks):
            form["content"] = "list"
        return tuple(loaded)
    elif not isinstance(content, str):
        form["content"] = "raw"
    return content


def dump_result(
    part: ToolResultPart, out: Outgoing[Quirks], position: int, index: int
) -> tuple[Json, list[Json]]:
    """Writes the tool message of a result. Also returns the Cohere blocks of media, which the API
    takes in a user message only."""
    body: Json = {"role": "tool"}
    if call_id := out.id(position, index, part):
        body["tool_call_id"] = call_id
    if part.is_error and not has_error(part.result):
        out.lose(position, index, Lost.is_error, "this format has no mark for a failed tool")
    content, media = _dump_content(part, out, position, index)
    if media:
        media = [{"type": "text", "text": f"[result of {part.name or part.id}]"}, *media]
        why = "results of tools hold text and documents only; it follows in a user message"
        out.lose(position, index, Lost.media, why)
    return merge_wire_fields({**body, **content}, OWN.fields(part.native)), media


def _dump_content(
    part: ToolResultPart, out: Outgoing[Quirks], position: int, index: int
) -> tuple[Json, list[Json]]:
    """Writes the content of a Cohere tool result. Also returns the Cohere blocks of media."""
    form = OWN.form(part.native)
    content_form = form.get("content")
    if content_form == "absent" and part.result is None:
        return {}, []
    if content_form == "document" and (isinstance(part.result, str) or if_object(part.result)):
        return {"content": [_document(part.result)]}, []
    if not part.is_content:
        result = part.result
        return {"content": result if content_form == "raw" else text_or_json(result)}, []
    blocks, media = _dump_blocks(part, out, position, index)
    return dump_content(blocks, "", form), media


def _dump_blocks(
    part: ToolResultPart, out: Outgoing[Quirks], position: int, index: int
) -> tuple[list[Json], list[Json]]:
    """Writes the pieces of a tool result as Cohere blocks of text and blocks of media."""
    blocks: list[Json] = []
    media: list[Json] = []
    for piece in part.result or ():
        block, loss = dump_block(piece)
        if loss is not None:
            out.lose(position, index, *loss)
        if block is None:
            continue
        if block["type"] == "text":
            blocks.append(block)
        else:
            media.append(block)
    return blocks, media


def _document(data: Any) -> Json:
    return {"type": "document", "document": {"data": data}}


def _only_document(blocks: list[Any]) -> str | Json | None:
    """Returns the data of a document in a Cohere tool result that is the only block and holds
    nothing else, or None."""
    if len(blocks) != 1:
        return None
    data = if_object(if_object(blocks[0]).get("document")).get("data")
    document = data if isinstance(data, str) else if_object(data) or None
    if document is None or blocks[0] != _document(document):
        return None
    return document


def _is_call(entry: Any) -> bool:
    call = if_object(entry)
    return if_text(call.get("id")) != "" and read_function_name(call) != ""


def _is_tool(entry: Any) -> bool:
    tool = if_object(entry)
    return tool.get("type") == "function" and read_function_name(tool) != ""
