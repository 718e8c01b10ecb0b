"""Tools of Chat Completions, where they are more than the family's: the older functions, and what
the vendor ran."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from dragoman.codec.functions import dump_function, load_function
from dragoman.codec.json_values import (
    if_object,
    if_objects,
    if_text,
    merge_wire_fields,
    read_extra_fields,
    text_or_json,
)
from dragoman.fold import arguments_json
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import ToolCallPart, ToolResultPart
from dragoman.request import ServerTool, ToolSpec
from dragoman.wires.chat import tools
from dragoman.wires.chat.record import DialectRecord, OutgoingChat
from dragoman.wires.openai_chat.quirks import OWN

__all__ = [
    "dump_executed_tool",
    "dump_function_choice",
    "dump_tools",
    "load_executed_tool",
    "load_executed_tools",
    "load_function_call",
    "load_function_choice",
    "load_tools",
]


def load_tools(chat: DialectRecord, body: Json, form: Json) -> tuple[ToolSpec | ServerTool, ...]:
    """Takes the tools out of `body`, or the older `functions`."""
    if loaded := tools.load_tools(chat, body, form):
        return loaded
    functions = if_objects(body.get("functions"))
    if not functions or not all(map(tools.is_function, functions)):
        return ()
    form["tools"] = "functions"
    del body["functions"]
    return tuple([load_function(OWN, function) for function in functions])


def dump_tools(out: OutgoingChat, specs: Sequence[ToolSpec | ServerTool], form: JsonMap) -> Json:
    """Tools → `tools`, or the older `functions`."""
    if form.get("tools") != "functions":
        return tools.dump_tools(out, specs, form)
    return {
        "functions": [
            dump_function(OWN, tool, out.name(tool.name))
            for tool in specs
            if isinstance(tool, ToolSpec)
        ]
    }


def load_function_choice(value: Any) -> str | None:
    """The older `function_call` of a request → the choice of a tool, where it is a plain one."""
    name = if_text(if_object(value).get("name"))
    choices = ("auto", "none", "required")
    if isinstance(value, str):
        return value if value in choices else None
    return name if name and name not in choices and value == {"name": name} else None


def dump_function_choice(choice: str, name: Callable[[str], str]) -> Any:
    """The inverse of `load_function_choice`."""
    return choice if choice in ("auto", "none", "required") else {"name": name(choice)}


def load_function_call(
    chat: DialectRecord, value: Any, fresh_ids: Iterator[str]
) -> list[ToolCallPart]:
    """The older `function_call` of a message → the call."""
    if not if_object(value).get("name"):
        return []
    call = tools.load_call(chat, {"type": "function", "function": value}, fresh_ids)
    return [replace(call, native=OWN.with_form(call.native, field="function_call"))]


def load_executed_tools(
    _: DialectRecord, value: Any, fresh_ids: Iterator[str]
) -> list[ToolCallPart | ToolResultPart]:
    """Tools that the vendor ran (Groq's `executed_tools`) → their calls and, where they are known,
    their results."""
    return [
        part
        for entry in if_objects(value)
        for part in load_executed_tool(entry, fresh_ids)
        if part is not None
    ]


def load_executed_tool(
    entry: JsonMap, fresh_ids: Iterator[str]
) -> tuple[ToolCallPart, ToolResultPart | None]:
    """One of them."""
    call_id = next(fresh_ids)
    name, output = str(entry.get("type") or ""), entry.get("output")
    call = tools.set_arguments(
        ToolCallPart(call_id, name, run_by="provider"), entry.get("arguments")
    )
    native = OWN.note(read_extra_fields(entry, "index", "type", "arguments", "output"))
    if output is None:
        return replace(call, native=native), None
    return call, ToolResultPart(call_id, name, output, run_by="provider", native=native)


def dump_executed_tool(call: ToolCallPart, result: ToolResultPart | None, index: int) -> Json:
    """The inverse of `load_executed_tool`."""
    arguments = arguments_json(call) if call.state == "complete" else call.raw or ""
    entry = merge_wire_fields(
        {"index": index, "type": call.name, "arguments": arguments}, OWN.fields(call.native)
    )
    if result is not None:
        entry["output"] = text_or_json(result.result)
        entry = merge_wire_fields(entry, OWN.fields(result.native))
    return entry
