"""Calls and results ⇄ data parts. Arguments and results stand there as texts, which no peer
changes.

Read are also the lists `tool_calls` and `tool_results` under which older agents put them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from dragoman.codec.json_values import first_text, if_list, if_object, if_text, text_or_json
from dragoman.codec.media import media_label
from dragoman.fold import arguments_text, parse_call
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import TextPart, ToolCallPart, ToolResultPart
from dragoman.wires.a2a.quirks import text_of

__all__ = [
    "CALL",
    "RESULT",
    "TOOL_CALLS_KEY",
    "TOOL_RESULTS_KEY",
    "dump_call",
    "dump_result",
    "load_call",
    "load_result",
    "load_tools",
    "result_text",
]

CALL = "tool-call"
RESULT = "tool-result"
TOOL_CALLS_KEY = "tool_calls"
"""Key of the calls in a data part of an older agent."""
TOOL_RESULTS_KEY = "tool_results"
"""Key of the results in a data part of an older agent."""
_IDS = ("toolCallId", "call_id", "id")
_TOOL_NAMES = ("toolCallName", "name")


def dump_call(call: ToolCallPart) -> Json:
    """Returns the value of an A2A data part for a tool call."""
    if call.state == "complete":
        arguments = arguments_text(call)
    else:
        arguments = call.raw or ""
    data: Json = {
        "type": CALL,
        "toolCallId": call.id,
        "toolCallName": call.name,
        "arguments": arguments,
    }
    if call.run_by != "agent":
        data["runBy"] = call.run_by
    if call.state != "complete":
        data["state"] = call.state
    return data


def load_call(data: JsonMap) -> ToolCallPart:
    """Returns the tool call in an A2A data part.

    Older agents name the fields `call_id` or `id`, and `name`. Arguments may be an object.
    """
    function = if_object(data.get("function"))
    id_ = first_text(data, *_IDS)
    name = first_text(data, *_TOOL_NAMES) or if_text(function.get("name"))
    arguments: Any = data.get("arguments", function.get("arguments"))
    run_by = data.get("runBy")
    call = ToolCallPart(id_, name, run_by=run_by if run_by in ("client", "provider") else "agent")
    if data.get("state") == "cut" and not isinstance(arguments, dict):
        return msgspec.structs.replace(call, raw=if_text(arguments), state="cut")
    text = if_text(arguments)
    if arguments and isinstance(arguments, dict):
        text = text_of(arguments)
    return parse_call(call, text) if text else call


def result_text(result: ToolResultPart) -> str:
    """Returns a tool result as text for A2A, in which files are named only."""
    if not result.is_content:
        return text_or_json(result.result)
    texts = [
        piece.text if isinstance(piece, TextPart) else f"[{media_label(piece)}]"
        for piece in result.result
    ]
    return "".join(texts)


def dump_result(result: ToolResultPart) -> Json:
    """Returns the value of an A2A data part for a tool result."""
    data: Json = {"type": RESULT, "toolCallId": result.id}
    if result.name:
        data["toolCallName"] = result.name
    data["content"] = result_text(result)
    if result.is_error:
        data["isError"] = True
    if result.denied:
        data["denied"] = True
    return data


def load_result(data: JsonMap) -> ToolResultPart:
    """Returns the tool result in an A2A data part. Older agents name the fields `call_id`, and
    `output` or `result`."""
    return ToolResultPart(
        first_text(data, *_IDS),
        first_text(data, *_TOOL_NAMES),
        next((data[key] for key in ("content", "output", "result") if key in data), None),
        is_error=data.get("isError") is True,
        denied=data.get("denied") is True,
    )


def load_tools(data: JsonMap) -> list[ToolCallPart | ToolResultPart] | None:
    """Returns the calls and results in an A2A data part, or None if it holds other data."""
    load = _LOADS.get(if_text(data.get("type")))
    if load is not None and isinstance(data.get("toolCallId"), str):
        return [load(data)]
    if TOOL_CALLS_KEY not in data and TOOL_RESULTS_KEY not in data:
        return None
    return [
        load(if_object(entry))
        for key, load in ((TOOL_CALLS_KEY, load_call), (TOOL_RESULTS_KEY, load_result))
        for entry in if_list(data.get(key))
        if isinstance(entry, dict)
    ]


_LOADS: Mapping[str, Callable[[JsonMap], ToolCallPart | ToolResultPart]] = {
    CALL: load_call,
    RESULT: load_result,
}
