"""What OpenAI's Chat Completions takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming

from support.rules.media import data_problems
from support.rules.pairing import Turn, misnamed, unpaired, unread
from support.rules.typed import faults

_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def problems(body: dict[str, Any]) -> Iterator[str]:
    yield from faults(body, CompletionCreateParamsNonStreaming, "body")
    messages = body["messages"]
    calls = [call for message in messages for call in message.get("tool_calls") or []]
    yield from misnamed("the id", [str(call.get("id")) for call in calls], "[^ ]{1,40}")
    names = [
        call["function"]["name"] if "function" in call else call["custom"]["name"] for call in calls
    ]
    declared = [tool["function"]["name"] for tool in body.get("tools", [])]
    yield from misnamed("the name", [*names, *declared], "[a-zA-Z0-9_-]{1,64}")
    yield from (f"{name} is called and not declared" for name in names if name not in declared)
    for call in calls:
        if "function" in call:
            yield from unread(call["function"]["name"], call["function"]["arguments"])
    yield from unpaired([_turn(message) for message in messages])
    for place, message in enumerate(messages):
        yield from (f"[{place}]: {problem}" for problem in _of_content(message))


def _turn(message: dict[str, Any]) -> Turn:
    if message["role"] == "tool":
        return Turn("tool", results=[message.get("tool_call_id", "")], says=False)
    return Turn(message["role"], [call.get("id", "") for call in message.get("tool_calls") or []])


def _of_content(message: dict[str, Any]) -> Iterator[str]:
    content = message.get("content")
    if content is None and not (
        message.get("tool_calls") or message.get("refusal") or message.get("audio")
    ):
        yield "it has no content and no calls"
    if content == []:
        yield "its content is an empty list"
    for block in content if isinstance(content, list) else []:
        if block["type"] == "image_url":
            yield from data_problems(block["image_url"]["url"], _IMAGES)
        if block["type"] == "file" and "file_data" in block["file"]:
            yield from data_problems(block["file"]["file_data"], ("application/pdf",))
