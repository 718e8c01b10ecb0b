"""Calls and results ⇄ data parts. Arguments and results stand there as texts, which no peer changes.

Read are also the lists `tool_calls` and `tool_results` under which older agents put them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.json_values import if_list, if_object, if_text, text_or_json
from dragoman.codec.media import label
from dragoman.fold import arguments_text, parse_call
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
"""Under which a data part of an older agent has its calls."""
TOOL_RESULTS_KEY = "tool_results"
"""And the results."""


def dump_call(call: ToolCallPart) -> dict[str, Any]:
    """A call → the value of a data part."""
    arguments = arguments_text(call) if call.state == "complete" else call.raw or ""
    data: dict[str, Any] = {
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


def load_call(data: Mapping[str, Any]) -> ToolCallPart:
    """The inverse, and the names of older agents: `call_id` or `id`, `name`; arguments may be an object."""
    id_ = next(
        (each for key in ("toolCallId", "call_id", "id") if (each := if_text(data.get(key)))), ""
    )
    function = if_object(data.get("function"))
    name = next((each for key in ("toolCallName", "name") if (each := if_text(data.get(key)))), "")
    arguments: Any = data.get("arguments", function.get("arguments"))
    run_by, state = data.get("runBy"), data.get("state")
    call = ToolCallPart(
        id_,
        name or if_text(function.get("name")),
        run_by="client" if run_by == "client" else "provider" if run_by == "provider" else "agent",
    )
    if isinstance(arguments, dict):
        return parse_call(call, text_of(arguments)) if arguments else call
    text = if_text(arguments)
    if state == "cut":
        return ToolCallPart(id_, call.name, raw=text, state="cut", run_by=call.run_by)
    return parse_call(call, text) if text else call


def result_text(result: ToolResultPart) -> str:
    """What a tool returned, as a text. Files in it are named, and sent beside it."""
    if not result.is_content:
        return text_or_json(result.result)
    return "".join(
        [each.text if isinstance(each, TextPart) else f"[{label(each)}]" for each in result.result]
    )


def dump_result(result: ToolResultPart) -> dict[str, Any]:
    """A result → the value of a data part."""
    data: dict[str, Any] = {"type": RESULT, "toolCallId": result.id}
    if result.name:
        data["toolCallName"] = result.name
    data["content"] = result_text(result)
    if result.is_error:
        data["isError"] = True
    if result.denied:
        data["denied"] = True
    return data


def load_result(data: Mapping[str, Any]) -> ToolResultPart:
    """The inverse, and the names of older agents: `call_id`, `output` or `result`."""
    id_ = next(
        (each for key in ("toolCallId", "call_id", "id") if (each := if_text(data.get(key)))), ""
    )
    name = next((each for key in ("toolCallName", "name") if (each := if_text(data.get(key)))), "")
    result = next((data[key] for key in ("content", "output", "result") if key in data), None)
    return ToolResultPart(
        id_, name, result, is_error=data.get("isError") is True, denied=data.get("denied") is True
    )


def load_tools(data: Mapping[str, Any]) -> list[ToolCallPart | ToolResultPart] | None:
    """The calls and results that a data part holds; `None`: it is data of another kind."""
    kind = data.get("type")
    if kind == CALL and isinstance(data.get("toolCallId"), str):
        return [load_call(data)]
    if kind == RESULT and isinstance(data.get("toolCallId"), str):
        return [load_result(data)]
    if TOOL_CALLS_KEY not in data and TOOL_RESULTS_KEY not in data:
        return None
    calls = [
        load_call(if_object(each))
        for each in if_list(data.get(TOOL_CALLS_KEY))
        if isinstance(each, dict)
    ]
    results = [
        load_result(if_object(each))
        for each in if_list(data.get(TOOL_RESULTS_KEY))
        if isinstance(each, dict)
    ]
    return [*calls, *results]
