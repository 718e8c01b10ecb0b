"""Message contents in the JSON form of the conventions.

The functions return attributes of spans, or values for them. In the conventions the results of
tools have the role `tool` and messages of their own, so `_dump_message` splits a user message that
holds some. Marks are left out, because no model receives them. Calls and results that the
provider ran have types of their own. Values that JSON does not have are written as text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from dragoman.json_bytes import Json
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    MarkPart,
    Message,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.request import ServerTool, ToolSpec

__all__ = [
    "dump_answer",
    "dump_input",
    "dump_conversation",
    "dump_json",
    "dump_result",
    "dump_tools",
]

_MOST_BYTES = 4096
"""Bytes of a file that a span has whole."""
_ROLES = {Role.SYSTEM: "system", Role.USER: "user", Role.MODEL: "assistant"}


def dump_json(value: Any) -> str:
    """Returns a value as JSON, as span attributes have it."""
    try:
        return msgspec.json.encode(value, enc_hook=str).decode()
    except UnicodeEncodeError:
        # Half of a surrogate pair, which only an escape can hold.
        return json.dumps(msgspec.to_builtins(value, enc_hook=str))


def dump_input(messages: Sequence[Message]) -> dict[str, str]:
    """Returns messages as telemetry attributes with content: system instructions at their head, and
    the rest."""
    head = next(
        (index for index, message in enumerate(messages) if message.role is not Role.SYSTEM),
        len(messages),
    )
    attributes: dict[str, str] = {}
    if head:
        parts = [_dump_part(part) for message in messages[:head] for part in message.content]
        attributes["gen_ai.system_instructions"] = dump_json(parts)
    if messages[head:]:
        attributes["gen_ai.input.messages"] = dump_json(dump_conversation(messages[head:]))
    return attributes


def dump_conversation(messages: Iterable[Message]) -> list[Json]:
    """Returns messages with the conventions' roles and parts. Results of tools are messages of
    their own there."""
    return [dumped_message for message in messages for dumped_message in _dump_message(message)]


def dump_answer(message: Message, finish_reason: str | None) -> str:
    """Returns for telemetry what a model said, as the only choice that it gave, with the reason why
    it stopped."""
    return dump_json(
        [
            {**dumped_message, "finish_reason": finish_reason or "stop"}
            for dumped_message in dump_conversation([message])
        ]
    )


def dump_result(part: ToolResultPart) -> Any:
    """Returns for telemetry the content that a tool gave: JSON, or parts."""
    if not part.is_content:
        return part.result
    return [_dump_part(piece) for piece in part.result]


def dump_tools(tools: Iterable[ToolSpec | ServerTool]) -> list[Json]:
    """Returns the tools that a model may call."""
    return [_dump_tool(tool) for tool in tools]


def _dump_tool(tool: ToolSpec | ServerTool) -> Json:
    """Returns a tool's definition in the form of the conventions."""
    if not isinstance(tool, ToolSpec):
        return {"type": "builtin", "name": tool.name}
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
    }


def _dump_message(message: Message) -> list[Json]:
    """Returns a message in the form of the conventions, with tool results as messages of their
    own."""
    dumped: list[Json] = []
    for part in message.content:
        if isinstance(part, MarkPart):
            continue
        role = _ROLES[message.role]
        # The conventions have a role for results; in dragoman they are in a user's message.
        if isinstance(part, ToolResultPart) and part.run_by != "provider":
            role = "tool"
        if not dumped or dumped[-1]["role"] != role:
            dumped.append({"role": role, "parts": []})
        dumped[-1]["parts"].append(_dump_part(part))
    return dumped


def _dump_part(part: Content) -> Json:
    """Returns a piece of content in the form of the conventions."""
    match part:
        case TextPart():
            return {"type": "text", "content": part.text}
        case ThinkingPart():
            return {"type": "reasoning", "content": part.text}
        case ToolCallPart(run_by="provider"):
            call = {"type": part.name, "arguments": part.arguments}
            return {
                "type": "server_tool_call",
                "id": part.id,
                "name": part.name,
                "server_tool_call": call,
            }
        case ToolCallPart():
            return {
                "type": "tool_call",
                "id": part.id,
                "name": part.name,
                "arguments": part.arguments,
            }
        case ToolResultPart(run_by="provider"):
            answer = {"type": part.name or "result", "result": part.result}
            return {
                "type": "server_tool_call_response",
                "id": part.id,
                "server_tool_call_response": answer,
            }
        case ToolResultPart():
            return {"type": "tool_call_response", "id": part.id, "response": dump_result(part)}
        case DataPart():
            return {**_dump_file(part.mime_type), "type": "blob", **_dump_data(part)}
        case LinkPart():
            return {**_dump_file(part.mime_type), "type": "uri", "uri": part.url}
        case FilePart():
            return {**_dump_file(part.mime_type), "type": "file", "file_id": part.id}
        case ProviderPart() | MarkPart():
            return {"type": part.kind}


def _dump_data(part: DataPart) -> Json:
    """Returns for telemetry the bytes of a small file. Of a larger one it returns the size and a
    digest, since each request of a conversation has it again."""
    if len(part.data) <= _MOST_BYTES:
        return {"content": part.data}
    return {"content": "", "size": len(part.data), "digest": part.digest}


def _dump_file(mime_type: str | None) -> dict[str, str | None]:
    """Returns for telemetry the media type and the modality of a file."""
    media_type = (mime_type or "").partition("/")[0]
    return {
        "mime_type": mime_type,
        "modality": media_type if media_type in ("image", "audio", "video") else "document",
    }
