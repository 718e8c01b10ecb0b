"""Tools: of a request ⇄ `ToolSpec` (the API has functions only; what else a request held is kept as
it is), `tool_calls` ⇄ `ToolCallPart`, messages of the role `tool` ⇄ `ToolResultPart`.

Arguments are an object. Results name their tool; newer servers also read the id of the call. Older
ones give no ids, and then none go back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from dragoman.codec import functions
from dragoman.codec.json_values import (
    has_error,
    if_object,
    if_text,
    merge_wire_fields,
    read_extra_fields,
    text_or_json,
)
from dragoman.codec.outgoing import Outgoing
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
    """Whether it can be read as one of `tools`."""
    fields = if_object(tool)
    return (
        if_text(fields.get("type", "function")) not in ("function", "")
        or functions.read_function_name(fields) != ""
    )


def load_tools(tools: Sequence[Any]) -> tuple[ToolSpec | ServerTool, ...]:
    """`tools`, each of which `is_tool`."""
    return tuple([_load_tool(tool) for tool in tools])


def dump_tools(tools: Sequence[ToolSpec | ServerTool], out: Outgoing[Quirks]) -> list[Json]:
    """The inverse, without tools that no server of this API would run."""
    return [dumped for tool in tools if (dumped := _dump_tool(tool, out)) is not None]


def is_call(entry: Any) -> bool:
    """Whether it is a call that can be read as one."""
    return functions.read_function_name(if_object(entry)) != ""


def load_call(call: JsonMap, fresh_id: Callable[[], str]) -> ToolCallPart:
    """One of a message's `tool_calls` → the call. Without an id it gets a fresh one and is marked
    `"id": None`."""
    function = if_object(call.get("function"))
    call_id, arguments = if_text(call.get("id")), function.get("arguments")
    part = ToolCallPart(call_id or fresh_id(), if_text(function.get("name")))
    form: Json = {}
    if isinstance(arguments, dict):
        part = replace(part, arguments=if_object(arguments))
    else:
        text = text_or_json(arguments)
        part = parse_call(part, text)
        form |= {"arguments": arguments} if "arguments" in function else {"without": "arguments"}
    if not call_id and "id" in call:
        form["id"] = call["id"]
    call_fields = {**({} if call_id else {"id": None}), **read_extra_fields(call, "id", "function")}
    own_fields = functions.collect_own_fields(
        call_fields, read_extra_fields(function, "name", "arguments")
    )
    return replace(part, native=OWN.note(own_fields, form=form))


def dump_call(call: ToolCallPart, call_id: str) -> Json:
    """The inverse, under that id. Cut and invalid arguments are sent as none, unless a loaded
    conversation held them."""
    form = OWN.form(call.native)
    function: Json = {"name": call.name, "arguments": call.arguments}
    exact = {"name": call.name, **({"arguments": form["arguments"]} if "arguments" in form else {})}
    # As it was loaded, but only while its arguments are still those.
    if {"arguments", "without"} & form.keys() and load_call(
        {"function": exact}, str
    ).arguments == call.arguments:
        function = exact
    named = {"id": call_id}
    if "id" in form:
        named = {"id": form["id"]}
    elif _is_unnamed(call.native):
        named = {}
    return merge_wire_fields(
        {**named, "function": function}, read_extra_fields(OWN.fields(call.native), "id")
    )


def set_call_index(call: Json, index: int) -> None:
    """Gives a call of an answer its place in it (`function.index`), as servers do that give ids.
    One that says another keeps it."""
    if "id" in call:
        call["function"] = {"index": index, **call["function"]}


def drop_call_index(call: JsonMap, index: int) -> JsonMap:
    """The inverse: a call without its place, where it is just that."""
    function = if_object(call.get("function"))
    if not call.get("id") or type(function.get("index")) is not int or function["index"] != index:
        return call
    return {**call, "function": read_extra_fields(function, "index")}


class UnansweredCalls:
    """The calls of a message, until their results come."""

    def __init__(self, calls: Sequence[ToolCallPart] = ()) -> None:
        self._calls = calls
        self._left = set(range(len(calls)))
        self._all = deque(range(len(calls)))
        self._by_id: dict[str, deque[int]] = {}
        self._by_name: dict[str, deque[int]] = {}
        for index, call in enumerate(calls):
            self._by_id.setdefault(call.id, deque()).append(index)
            self._by_name.setdefault(call.name, deque()).append(index)

    def take(self, call_id: str, name: str) -> ToolCallPart | None:
        """The first that still waits of those with the id, where one is given, else the name, else
        of all."""
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
    """A tool message → the result. Without an id it answers the first of the calls `waiting` that
    has its tool's name.

    Raises:
        HistoryError: its content is no text.
    """
    name, call_id = if_text(entry.get("tool_name")), if_text(entry.get("tool_call_id"))
    call = waiting.take(call_id, name)
    form: Json = {} if name else {"tool_name": entry.get("tool_name", "absent")}
    text, images = load_text(entry, form), load_images(entry)
    read = (
        "role",
        "content",
        "tool_name",
        *(["tool_call_id"] if call_id else []),
        *(["images"] if images else []),
    )
    result: Any = text
    if images:
        result = (*images, TextPart(text)) if text else (*images,)
    return ToolResultPart(
        call_id or (call.id if call else fresh_id()),
        name or (call.name if call else ""),
        result,
        native=OWN.note(
            {**({} if call_id else {"id": None}), **read_extra_fields(entry, *read)}, form=form
        ),
    )


def dump_result(
    part: ToolResultPart,
    call: ToolCallPart | None,
    out: Outgoing[Quirks],
    position: int,
    index: int,
) -> Json:
    """A result → its tool message. `call`: the one that it answers; where that had no id, none is
    written."""
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
    if tool.get("type", "function") != "function":
        native = OWN.note(read_extra_fields(tool, "type")) or OWN.note(form={"type": "own"})
        return ServerTool(if_text(tool["type"]), native=native)
    return functions.load_tool(OWN, tool)


def _dump_tool(tool: ToolSpec | ServerTool, out: Outgoing[Quirks]) -> Json | None:
    form, own_fields = OWN.form(tool.native), OWN.fields(tool.native)
    if isinstance(tool, ServerTool):
        if own_fields or form:
            return {"type": tool.name, **own_fields}
        out.lose(None, None, Lost.tool, "the API runs no tools of its own", tool.name)
        return None
    return functions.dump_tool(OWN, tool, tool.name)


def _dump_content(part: ToolResultPart, out: Outgoing[Quirks], position: int, index: int) -> Json:
    """Text as it is, images in a field of their own, anything else as JSON."""
    empty = OWN.form(part.native).get("content", "")
    if part.result is None and empty != "":
        return {} if empty == "absent" else {"content": None}
    if not part.is_content:
        return {"content": text_or_json(part.result)}
    fields = Fields(out, position, joined=True)
    for piece in part.result or ():
        dump_content(piece, fields, index)
    return fields.dump("absent" if empty == "absent" else "")


def _is_unnamed(native: Native) -> bool:
    """Whether a call or result came without an id."""
    return OWN.fields(native).get("id", "") is None
