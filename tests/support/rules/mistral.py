"""What Mistral's Chat API takes, for all of its models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mistralai.client.models.chatcompletionrequest import ChatCompletionRequestTypedDict

from support.rules.media import data_problems
from support.rules.pairing import Turn, misnamed, unpaired, unread
from support.rules.typed import faults

_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def problems(body: dict[str, Any]) -> Iterator[str]:
    yield from faults(body, ChatCompletionRequestTypedDict, "body")
    messages = body["messages"]
    calls = [call for message in messages for call in message.get("tool_calls") or []]
    yield from misnamed("the id", [str(call.get("id")) for call in calls], "[a-zA-Z0-9]{9}")
    declared = [tool["function"]["name"] for tool in body.get("tools", [])]
    names = [call["function"]["name"] for call in calls]
    yield from misnamed("the name", [*names, *declared], "[a-zA-Z0-9_-]{1,64}")
    yield from (f"{name} is called and not declared" for name in names if name not in declared)
    for call in calls:
        if isinstance(arguments := call["function"]["arguments"], str):
            yield from unread(call["function"]["name"], arguments)
    yield from unpaired([_turn(message) for message in messages])
    roles = [message["role"] for message in messages]
    if roles[-1:] not in (["user"], ["tool"]):
        yield "the last message is not the user's or a tool's"
    if roles != sorted(roles, key=lambda role: role != "system"):
        yield "a system message stands after others"
    for place, message in enumerate(messages):
        yield from (f"[{place}]: {problem}" for problem in _of_message(message))
        if message["role"] == "user" and place and roles[place - 1] == "tool":
            yield f"[{place}]: a user's message follows a tool's"


def _turn(message: dict[str, Any]) -> Turn:
    if message["role"] == "tool":
        return Turn("tool", results=[message.get("tool_call_id", "")], says=False)
    return Turn(message["role"], [call.get("id", "") for call in message.get("tool_calls") or []])


def _of_message(message: dict[str, Any]) -> Iterator[str]:
    content = message.get("content")
    if message["role"] == "assistant" and not content and not message.get("tool_calls"):
        yield "it has no content and no calls"
    if message["role"] in ("user", "system") and not content:
        yield "it is empty"
    for chunk in content if isinstance(content, list) else []:
        if chunk["type"] == "text" and not chunk["text"]:
            yield "a text is empty"
        if chunk["type"] == "image_url":
            told = chunk["image_url"]
            yield from data_problems(told if isinstance(told, str) else told["url"], _IMAGES)
        if message["role"] == "assistant" and chunk["type"] not in (
            "text",
            "thinking",
            "reference",
        ):
            yield f"the model says a {chunk['type']}"
        if message["role"] == "tool" and chunk["type"] != "text":
            yield f"a tool says a {chunk['type']}"
