"""Reads and writes tools, calls and results.

The API has functions only; other tools of a request are kept as they are. Arguments are an object.
Results name their tool, and newer servers also read the id of the call. Older servers give no ids,
and then none go back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from dragoman.codec import function_tools
from dragoman.codec.json_values import (
    has_error,
    if_object,
    if_text,
    merge_wire_fields,
    read_extra_fields,
    text_or_json,
)
from dragoman.codec.outgoing_conversation import Outgoing
from dragoman.fold import parse_call
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Lost
from dragoman.message import Native, TextPart, ToolCallPart, ToolResultPart
from dragoman.request import ServerTool, ToolSpec
from dragoman.wires.ollama.content import Fields, dump_content, load_images, load_text
from dragoman.wires.ollama.quirks import OWN, Quirks

__all__ = [
    "UnansweredCalls",
    "dump_call",
    "dump_result",
    "dump_tools",
    "is_call",
    "is_tool",
    "load_call",
    "load_result",
    "load_tools",
    "set_call_index",
    "drop_call_index",
]


def is_tool(tool: Any) -> bool:
    """True if an Ollama object can be read as one of `tools`."""
    fields = if_object(tool)
    tool_type = if_text(fields.get("type", "function"))
    if tool_type not in ("function", ""):
        return True
    return function_tools.read_function_name(fields) != ""


def load_tools(tools: Sequence[Any]) -> tuple[ToolSpec | ServerTool, ...]:
    """Reads `tools`, each of which `is_tool`."""
    return tuple([_load_tool(tool) for tool in tools])


def dump_tools(tools: Sequence[ToolSpec | ServerTool], out: Outgoing[Quirks]) -> list[Json]:
    """Writes `tools`, without those that no server of this API would run."""
    return [dumped for tool in tools if (dumped := _dump_tool(tool, out)) is not None]


def is_call(entry: Any) -> bool:
    """True if an object can be read as a call."""
    return function_tools.read_function_name(if_object(entry)) != ""


def load_call(call: JsonMap, fresh_id: Callable[[], str]) -> ToolCallPart:
    """Reads one of an Ollama message's `tool_calls`. Without an id it gets a fresh one and the note
    `"id": None`."""
    function = if_object(call.get("function"))
    call_id, arguments = if_text(call.get("id")), function.get("arguments")
    part = ToolCallPart(call_id or fresh_id(), if_text(function.get("name")))
    form: Json = {}
    if isinstance(arguments, dict):
        part = replace(part, arguments=if_object(arguments))
    else:
        part = parse_call(part, text_or_json(arguments))
        if "arguments" in function:
            form["arguments"] = arguments
        else:
            form["without"] = "arguments"
    call_fields = read_extra_fields(call, "id", "function")
    if not call_id:
        call_fields = {"id": None, **call_fields}
        if "id" in call:
            form["id"] = call["id"]
    own_fields = function_tools.collect_own_fields(
        call_fields, read_extra_fields(function, "name", "arguments")
    )
    return replace(part, native=OWN.note(own_fields, form=form))


def dump_call(call: ToolCallPart, call_id: str) -> Json:
    """Writes one of an Ollama message's `tool_calls`, under that id. Cut and invalid arguments are
    left out, unless a loaded conversation held them."""
    form = OWN.form(call.native)
    function: Json = {"name": call.name, "arguments": call.arguments}
    if "arguments" in form or "without" in form:
        loaded: Json = {"name": call.name}
        if "arguments" in form:
            loaded["arguments"] = form["arguments"]
        # The loaded form counts only while it says the same.
        if load_call({"function": loaded}, str).arguments == call.arguments:
            function = loaded
    block: Json = {"id": call_id}
    if "id" in form:
        block = {"id": form["id"]}
    elif _is_unnamed(call.native):
        block = {}
    return merge_wire_fields(
        {**block, "function": function}, read_extra_fields(OWN.fields(call.native), "id")
    )


def set_call_index(call: Json, index: int) -> None:
    """Writes an Ollama call's index into it (`function.index`), as servers do that give ids. A call
    that has another index keeps it."""
    if "id" in call:
        call["function"] = {"index": index, **call["function"]}


def drop_call_index(call: JsonMap, index: int) -> JsonMap:
    """Returns an Ollama call without its index, if the index is its place among the calls."""
    function = if_object(call.get("function"))
    noted_index = function.get("index")
    if not call.get("id") or type(noted_index) is not int or noted_index != index:
        return call
    return {**call, "function": read_extra_fields(function, "index")}


class UnansweredCalls:
    """The calls of a message, until their results come."""

    def __init__(self, calls: Sequence[ToolCallPart] = ()) -> None:
        """Keeps the calls of an Ollama conversation that wait for results."""
        self._calls = calls
        self._left = set(range(len(calls)))
        self._all = deque(range(len(calls)))
        self._by_id: dict[str, deque[int]] = {}
        self._by_name: dict[str, deque[int]] = {}
        for index, call in enumerate(calls):
            self._by_id.setdefault(call.id, deque()).append(index)
            self._by_name.setdefault(call.name, deque()).append(index)

    def take(self, call_id: str, name: str) -> ToolCallPart | None:
        """Returns the first tool call of an Ollama conversation that still waits: of those with the
        id if one is given, else of those with the name, else of all."""
        indexes = self._all
        if call_id:
            indexes = self._by_id.get(call_id)
        elif name:
            indexes = self._by_name.get(name)
        while indexes:
            if (index := indexes.popleft()) in self._left:
                self._left.remove(index)
                return self._calls[index]
        return None


def load_result(
    entry: JsonMap, waiting: UnansweredCalls, fresh_id: Callable[[], str]
) -> ToolResultPart:
    """Reads an Ollama tool message. Without an id it answers the first of the `waiting` calls that
    has its tool's name.

    Raises:
        HistoryError: its content is not a text.
    """
    name, call_id = if_text(entry.get("tool_name")), if_text(entry.get("tool_call_id"))
    call = waiting.take(call_id, name)
    form: Json = {} if name else {"tool_name": entry.get("tool_name", "absent")}
    text, images = load_text(entry, form), load_images(entry)
    read = ["role", "content", "tool_name"]
    result: Any = text
    if images:
        result = (*images, TextPart(text)) if text else (*images,)
        read.append("images")
    if call_id:
        fields = read_extra_fields(entry, "tool_call_id", *read)
    else:
        fields = {"id": None, **read_extra_fields(entry, *read)}
        call_id = call.id if call else fresh_id()
    if not name and call:
        name = call.name
    return ToolResultPart(call_id, name, result, native=OWN.note(fields, form=form))


def dump_result(
    part: ToolResultPart,
    call: ToolCallPart | None,
    out: Outgoing[Quirks],
    position: int,
    index: int,
) -> Json:
    """Writes the Ollama tool message of a result. `call`: the call that it answers. If that had no
    id, none is written."""
    form = OWN.form(part.native)
    body: Json = {"role": "tool", **_dump_content(part, out, position, index)}
    if "tool_name" not in form and part.name:
        body["tool_name"] = part.name
    elif form.get("tool_name", "absent") != "absent":
        body["tool_name"] = form["tool_name"]
    if not _is_unnamed(part.native) and not (call and _is_unnamed(call.native)):
        body["tool_call_id"] = out.id(position, index, part)
    if part.is_error and not has_error(part.result):
        out.lose(position, index, Lost.is_error, "this format has no mark for a failed tool")
    return merge_wire_fields(body, read_extra_fields(OWN.fields(part.native), "id"))


def _load_tool(tool: JsonMap) -> ToolSpec | ServerTool:
    """Returns a tool of a request as a function or a tool of Ollama's own."""
    if tool.get("type", "function") != "function":
        native = OWN.note(read_extra_fields(tool, "type")) or OWN.note(form={"type": "own"})
        return ServerTool(if_text(tool["type"]), native=native)
    return function_tools.load_tool(OWN, tool)


def _dump_tool(tool: ToolSpec | ServerTool, out: Outgoing[Quirks]) -> Json | None:
    """Returns a tool as an entry of a request, or None with a loss if Ollama cannot run it."""
    form, own_fields = OWN.form(tool.native), OWN.fields(tool.native)
    if isinstance(tool, ServerTool):
        if own_fields or form:
            return {"type": tool.name, **own_fields}
        out.lose(None, None, Lost.tool, "the API runs no tools of its own", tool.name)
        return None
    return function_tools.dump_tool(OWN, tool, tool.name)


def _dump_content(part: ToolResultPart, out: Outgoing[Quirks], position: int, index: int) -> Json:
    """Writes the content of a tool result for Ollama: text as it is, images in their own field,
    anything else as JSON."""
    empty = OWN.form(part.native).get("content", "")
    if part.result is None and empty != "":
        if empty == "absent":
            return {}
        return {"content": None}
    if not part.is_content:
        return {"content": text_or_json(part.result)}
    fields = Fields(out, position, joined=True)
    for piece in part.result or ():
        dump_content(piece, fields, index)
    return fields.dump("absent" if empty == "absent" else "")


def _is_unnamed(native: Native) -> bool:
    """True if a call or result came without an id."""
    return OWN.fields(native).get("id", "") is None
