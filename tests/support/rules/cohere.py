"""What Cohere's Chat API, version 2, takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cohere.types import ToolV2
from cohere.types.chat_message_v2 import ChatMessageV2

from support.rules.media import data_problems
from support.rules.pairing import Turn, misnamed, unpaired, unread
from support.rules.typed import faults

_FIELDS = {
    "model",
    "messages",
    "tools",
    "stream",
    "tool_choice",
    "thinking",
    "response_format",
    "max_tokens",
}
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def problems(body: dict[str, Any]) -> Iterator[str]:
    yield from (f"there is no field {name}" for name in body.keys() - _FIELDS)
    yield from faults(_with_data(body["messages"]), list[ChatMessageV2], "messages")
    yield from faults(body.get("tools", []), list[ToolV2], "tools")
    messages = body["messages"]
    calls = [call for message in messages for call in message.get("tool_calls") or []]
    yield from misnamed("the id", [call["id"] for call in calls], "[a-zA-Z0-9_-]{1,64}")
    declared = [tool["function"]["name"] for tool in body.get("tools", [])]
    names = [call["function"]["name"] for call in calls]
    yield from misnamed("the name", [*names, *declared], "[a-zA-Z0-9_-]{1,64}")
    yield from (f"{name} is called and not declared" for name in names if name not in declared)
    for call in calls:
        yield from unread(call["function"]["name"], call["function"]["arguments"])
    yield from unpaired([_turn(message) for message in messages])
    for place, message in enumerate(messages):
        yield from (f"[{place}]: {problem}" for problem in _of_message(message))


def _with_data(value: Any) -> Any:
    """The same with objects as the data of documents, where the API takes texts too (recorded)."""
    if isinstance(value, list):
        return [_with_data(each) for each in value]
    if not isinstance(value, dict):
        return value
    text = value.keys() == {"data"} and isinstance(value["data"], str)
    return {"data": {}} if text else {key: _with_data(each) for key, each in value.items()}


def _turn(message: dict[str, Any]) -> Turn:
    if message["role"] == "tool":
        return Turn("tool", results=[message.get("tool_call_id", "")], says=False)
    return Turn(message["role"], [call["id"] for call in message.get("tool_calls") or []])


def _of_message(message: dict[str, Any]) -> Iterator[str]:
    content = message.get("content")
    if not content and not message.get("tool_calls") and message["role"] != "tool":
        yield "it says nothing"
    for block in content if isinstance(content, list) else []:
        if block["type"] in ("text", "thinking") and not block[block["type"]]:
            yield "a text is empty"
        if block["type"] == "image_url":
            yield from data_problems(block["image_url"]["url"], _IMAGES)
