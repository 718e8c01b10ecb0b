"""The metadata field `canonical_type`, by which older agents tell which event of AG-UI a message is."""

from __future__ import annotations

from typing import Any

from dragoman.message import Message, Role
from dragoman.wires.a2a.seed_values import field, role_name, text_in, tool_calls_of, tool_results_of

__all__ = [
    "CHUNK",
    "END",
    "KINDS",
    "ARGS",
    "CONTENT",
    "RESULT",
    "START",
    "canonical_type",
    "get_agui_event_type_from_a2a_message",
]

CONTENT = "TextMessageContentEvent"
CHUNK = "TextMessageChunkEvent"
END = "TextMessageEndEvent"
START = "ToolCallStartEvent"
ARGS = "ToolCallArgsEvent"
RESULT = "ToolCallResultEvent"

KINDS = (CONTENT, CHUNK, END, START, ARGS, RESULT)
"""All types of messages."""


def canonical_type(message: Message) -> str:
    """Which event a message is."""
    if message.role is Role.MODEL:
        return START if message.tool_calls else END
    return RESULT if message.tool_results else CONTENT


def get_agui_event_type_from_a2a_message(message: Any) -> str:
    """The canonical type of a message: what its metadata says, else by its role and its parts."""
    named = field(field(message, "metadata"), "canonical_type")
    if isinstance(named, str) and named:
        return named
    role = role_name(message)
    has_text = text_in(message) is not None
    if role == "user" and tool_results_of(message) is not None:
        return RESULT
    if role == "agent" and tool_calls_of(message) is not None:
        return START
    return END if role == "agent" and has_text else CONTENT
