"""What a model reads: of the library's prompts, and of messages of ours, in the same words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman.message import (
    DataPart,
    FilePart,
    LinkPart,
    Message,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

__all__ = ["of_messages", "of_prompt"]


def of_prompt(prompt: Iterable[Any]) -> list[Any]:
    """Of a prompt in the provider's interface, which all versions have nearly alike."""
    found: list[Any] = []
    for message in prompt:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        pieces = [_of_part(part) for part in parts]
        found += _joined(message["role"] if message["role"] != "tool" else "user", pieces)
    return found


def of_messages(messages: Iterable[Message]) -> list[Any]:
    """Of messages."""
    found: list[Any] = []
    roles = {Role.SYSTEM: "system", Role.USER: "user", Role.MODEL: "assistant"}
    for message in messages:
        pieces = [_of_piece(piece) for piece in message.content]
        found += _joined(roles[message.role], pieces)
    return found


def _joined(role: str, pieces: Iterable[Any]) -> list[Any]:
    return [(role, *each) for each in pieces if each]


def _of_part(part: dict[str, Any]) -> Any:
    match part["type"]:
        case "text":
            return ("text", part["text"]) if part["text"] else None
        case "tool-call":
            return "call", part["toolCallId"], part["toolName"], part.get("input", part.get("args"))
        case "tool-result":
            output = part.get("output", {"value": part.get("result")})
            return "result", part["toolCallId"], output.get("value", output.get("reason"))
        case "file" | "image":
            return ("file",)
        case _:
            return None


def _of_piece(piece: Any) -> Any:
    match piece:
        case TextPart():
            return "text", piece.text
        case ToolCallPart():
            return "call", piece.id, piece.name, piece.arguments
        case ToolResultPart():
            return "result", piece.id, piece.result
        case DataPart() | LinkPart() | FilePart():
            return ("file",)
        case _:
            return None
