"""Reads and writes tools of Chat Completions where they are more than the family's: the older
functions, and tools that the vendor ran."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from dragoman.codec.function_tools import dump_function, load_function
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
from dragoman.loss import Lost
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


_CHOICES = ("auto", "none", "required")


def load_tools(chat: DialectRecord, body: Json, form: Json) -> tuple[ToolSpec | ServerTool, ...]:
    """Takes the tools, or the older `functions`, out of `body`."""
    if loaded := tools.load_tools(chat, body, form):
        return loaded
    functions = if_objects(body.get("functions"))
    if not functions or not all(map(tools.is_function, functions)):
        return ()
    form["tools"] = "functions"
    del body["functions"]
    return tuple([load_function(OWN, function) for function in functions])


def dump_tools(out: OutgoingChat, specs: Sequence[ToolSpec | ServerTool], form: JsonMap) -> Json:
    """Returns the field of the body that holds the tools: `tools`, or the older `functions`."""
    if form.get("tools") != "functions":
        fields = tools.dump_tools(out, specs, form)
        return _level_strict(out, fields) if out.quirks.same_strict else fields
    # The older form has no tools that the provider runs.
    functions = [spec for spec in specs if isinstance(spec, ToolSpec)]
    return {"functions": [dump_function(OWN, spec, out.name(spec.name)) for spec in functions]}


def _level_strict(out: OutgoingChat, fields: Json) -> Json:
    """Returns the field of OpenAI Chat tools without their `strict`, if some have it and some do
    not."""
    entries: list[Json] = fields.get("tools", [])
    if len({bool(if_object(entry.get("function")).get("strict")) for entry in entries}) < 2:
        return fields
    out.lose(None, None, Lost.field, "the vendor takes one value for all tools", "tools.strict")
    return {
        "tools": [
            {**entry, "function": read_extra_fields(if_object(entry.get("function")), "strict")}
            for entry in entries
        ]
    }


def load_function_choice(value: Any) -> str | None:
    """Reads the older `function_call` of an OpenAI Chat request as the choice of a tool, or returns
    None if it is no plain one."""
    if isinstance(value, str):
        if value in _CHOICES:
            return value
        return None
    name = if_text(if_object(value).get("name"))
    if not name or name in _CHOICES:
        return None
    if value == {"name": name}:
        return name
    return None


def dump_function_choice(choice: str, name: Callable[[str], str]) -> str | Json:
    """Writes the choice of a tool as OpenAI's older `function_call`."""
    if choice in _CHOICES:
        return choice
    return {"name": name(choice)}


def load_function_call(
    chat: DialectRecord, value: Any, fresh_ids: Iterator[str]
) -> list[ToolCallPart]:
    """Reads the older `function_call` of a message."""
    if not if_object(value).get("name"):
        return []
    call = tools.load_call(chat, {"type": "function", "function": value}, fresh_ids)
    return [replace(call, native=OWN.with_form(call.native, field="function_call"))]


def load_executed_tools(
    _: DialectRecord, value: Any, fresh_ids: Iterator[str]
) -> list[ToolCallPart | ToolResultPart]:
    """Reads from an OpenAI Chat Completions message the tools that the vendor ran (Groq's
    `executed_tools`): their calls and, if known, their results."""
    parts: list[ToolCallPart | ToolResultPart] = []
    for entry in if_objects(value):
        call, result = load_executed_tool(entry, fresh_ids)
        parts += [call] if result is None else [call, result]
    return parts


def load_executed_tool(
    entry: JsonMap, fresh_ids: Iterator[str]
) -> tuple[ToolCallPart, ToolResultPart | None]:
    """Reads one tool that the vendor of an OpenAI Chat Completions API ran."""
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
    """Writes a tool that the vendor of an OpenAI Chat Completions API ran, with its result if there
    is one."""
    arguments = arguments_json(call) if call.state == "complete" else call.raw or ""
    entry = merge_wire_fields(
        {"index": index, "type": call.name, "arguments": arguments}, OWN.fields(call.native)
    )
    if result is not None:
        entry["output"] = text_or_json(result.result)
        entry = merge_wire_fields(entry, OWN.fields(result.native))
    return entry
