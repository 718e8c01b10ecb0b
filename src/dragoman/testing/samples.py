"""Sample messages of the checks: a conversation, one part of each type, and an answer with every
type of content."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import msgspec

from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    FinishReason,
    LinkPart,
    Message,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.request import ToolSpec

__all__ = [
    "ANSWER",
    "CONVERSATION",
    "PARTS",
    "PNG",
    "SCHEMA",
    "TEXT",
    "TOOLS",
    "USAGE",
    "extract_content",
    "parse_result",
    "simplify_messages",
]

TEXT = 'Grüße aus Åbo 🌍, "quoted",\nсловом 言葉 \\ and\ttab'
"""Text that exposes careless encoding: characters of two, three and four bytes, quotes, line
breaks."""
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000080000000808020000004b6d29dc000000114944415478da63f8cfc08015310c2d0900"
    "28ff3fc1ce77c84f0000000049454e44ae426082"
)
"""A complete image of eight by eight red pixels."""
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "A town."}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOLS = (
    ToolSpec("get_weather", "Tells the weather.", SCHEMA),
    ToolSpec(
        "get_time",
        "Tells the time.",
        {"type": "object", "properties": {}, "additionalProperties": False},
    ),
)
USAGE = Usage(
    input_tokens=50,
    output_tokens=20,
    total_tokens=70,
    cache_read_tokens=30,
    cache_write_tokens=10,
    reasoning_tokens=5,
)
CONVERSATION = (
    Message.system("Be brief."),
    Message.user(TEXT),
    Message.model("Hello."),
    Message.user("How is it in Oslo and Bergen?"),
    Message.model(
        "I will look.",
        ToolCallPart("call_one", "get_weather", {"city": "Oslo"}),
        ToolCallPart(
            "call_two",
            "get_weather",
            {"city": "Bergen", "when": {"day": [1, 2.5, None, True, "ü"]}},
        ),
    ),
    Message.user(
        ToolResultPart("call_one", "get_weather", "rain"),
        ToolResultPart("call_two", "get_weather", {"sky": "grey", "degrees": [7, 8]}),
    ),
    Message.model("Rain and grey."),
    Message.user("Thanks."),
)
"""Every role, a round of two calls, and text that needs care."""
ANSWER = Message.model(
    ThinkingPart("They want both. 🤔"),
    TEXT,
    ToolCallPart("call_one", "get_weather", {"city": "Åbo", "n": [1, {"a": None}]}),
    ToolCallPart("call_two", "get_time", {}),
).replace(finish_reason=FinishReason.tool_calls, usage=USAGE)
"""An answer with thinking, text and calls."""
PARTS: tuple[Content, ...] = (
    TextPart(TEXT),
    DataPart(PNG, "image/png", "red.png"),
    DataPart(b"RIFF\x24\x00\x00\x00WAVEfmt ", "audio/wav"),
    DataPart(b"%PDF-1.4\n%%EOF", "application/pdf", "empty.pdf"),
    DataPart(b"plain words", "text/plain", "words.txt"),
    LinkPart("https://files.conformance.invalid/red.png", "image/png"),
    FilePart("file-of-the-kit", "application/pdf"),
    ThinkingPart("A thought of the kit."),
    ProviderPart("kit_block", {"another_wire": {"type": "kit_block"}}),
)
"""One part of each type that a message may have outside of a tool call."""


def extract_content(part: Content) -> Any:
    """Returns what must survive of a sample's part: its text, bytes, address, or value."""
    match part:
        case TextPart(text=text) | ThinkingPart(text=text):
            return text
        case DataPart(data=data):
            return data
        case LinkPart(url=url):
            return url
        case FilePart(id=id_):
            return id_
        case ToolCallPart(name=name, arguments=arguments):
            return name, arguments
        case ToolResultPart(result=result):
            return parse_result(result)
        case _:
            return None


def parse_result(result: Any) -> Any:
    """Returns a sample's tool result without the difference between a JSON value and its text,
    which most formats do not keep."""
    if isinstance(result, str):
        try:
            return msgspec.json.decode(result)
        except msgspec.DecodeError:
            return result
    if isinstance(result, tuple):
        return [extract_content(part) for part in cast("tuple[Content, ...]", result)]
    return result


def simplify_messages(messages: Iterable[Message]) -> list[Any]:
    """Returns what must survive of the samples' messages: role and content of each, with call ids
    as numbers in order."""
    numbers: dict[str, int] = {}
    return [
        (
            message.role.value,
            [
                (
                    type(part).__name__,
                    extract_content(part),
                    numbers.setdefault(part.id, len(numbers)),
                )
                if isinstance(part, ToolCallPart | ToolResultPart)
                else (type(part).__name__, extract_content(part))
                for part in message.content
            ],
        )
        for message in messages
    ]
