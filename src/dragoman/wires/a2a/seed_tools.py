"""Tools and events of clients as the documents of the year 2025 convert them: MCP ⇄ OpenAI, and what a client of A2A yields."""

from __future__ import annotations

import json
from typing import Any, cast

from dragoman.codec.json_values import if_text, text_or_json
from dragoman.wires.a2a.seed_values import field, text_in, tool_results_of

__all__ = [
    "convert_mcp_tool_to_openai",
    "convert_openai_tool_call_to_mcp",
    "convert_tool_result_to_openai",
    "extract_event_data",
    "extract_task_from_event",
    "extract_task_from_tuple",
    "extract_user_text_and_tool_results",
]

Json = dict[str, Any]


def extract_user_text_and_tool_results(message: Any) -> tuple[str, list[Any]]:
    """All text of a message, joined, and the results of all its parts."""
    return text_in(message) or "", tool_results_of(message) or []


def convert_mcp_tool_to_openai(tool: Any) -> Json:
    """A tool as MCP lists it → as Chat Completions takes it."""
    schema = field(tool, "inputSchema", "input_schema")
    function: Json = {
        "name": field(tool, "name"),
        "description": field(tool, "description") or "",
        "parameters": {} if schema is None else schema,
    }
    return {"type": "function", "function": function}


def convert_openai_tool_call_to_mcp(call: Any) -> Json:
    """A call of Chat Completions, a dictionary or an object → its id, its name and its arguments. Text that is no JSON is no arguments."""
    function = field(call, "function")
    arguments = field(function, "arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            arguments = {}
    return {
        "call_id": field(call, "id"),
        "name": field(function, "name"),
        "arguments": {} if arguments is None else arguments,
    }


def convert_tool_result_to_openai(result: Any) -> Json:
    """A result of an A2A message → the message of a tool.

    Raises:
        ValueError: it does not say which call it answers, or has no output.
    """
    call_id, output = field(result, "call_id", "toolCallId"), field(result, "output", "content")
    if not if_text(call_id):
        raise ValueError("a tool result names the call that it answers; send its call_id")
    if output is None:
        raise ValueError(f"the tool result of call {call_id!r:.100} has no output; send one")
    return {"role": "tool", "tool_call_id": call_id, "content": text_or_json(output)}


def extract_event_data(event: Any) -> Any:
    """What an event of a client holds: of a pair the second, of a tuple of one that one, of anything else itself."""
    if not isinstance(event, tuple):
        return event
    held = cast("tuple[Any, ...]", event)
    return held[1] if len(held) == 2 else held[0] if len(held) == 1 else held


def extract_task_from_tuple(event: Any) -> Any:
    """The task that stands first in a tuple; `None`: there is none."""
    held = cast("tuple[Any, ...]", event) if isinstance(event, tuple) else ()
    return held[0] if held and _is_task(held[0]) else None


def extract_task_from_event(event: Any) -> Any:
    """The task in an event: a tuple's, a member's (`task`, `result`), or the event itself; `None`: there is none."""
    if isinstance(event, tuple):
        return extract_task_from_tuple(event)
    if _is_task(event):
        return event
    for name in ("task", "result", "root"):
        inner = field(event, name)
        if inner is not None and (found := extract_task_from_event(inner)) is not None:
            return found
    return None


def _is_task(value: Any) -> bool:
    return field(value, "status") is not None and isinstance(field(value, "id"), str)
