"""What Anthropic's Messages API takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from anthropic.types.beta.message_create_params import MessageCreateParamsNonStreaming

from support.rules.media import base64_problems
from support.rules.pairing import Turn, merged, misnamed, unpaired
from support.rules.typed import faults

_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def problems(body: dict[str, Any]) -> Iterator[str]:
    yield from faults(body, MessageCreateParamsNonStreaming, "body")
    messages = [message for message in body["messages"] if message["role"] != "system"]
    if not messages or messages[0]["role"] != "user":
        yield "the first message is not the user's"
    blocks = [block for message in messages for block in _blocks(message)]
    calls = [block for block in blocks if block["type"] == "tool_use"]
    yield from misnamed("the id", [call["id"] for call in calls], "[a-zA-Z0-9_-]+")
    if len({call["id"] for call in calls}) < len(calls):
        yield "an id of a call stands twice"
    declared = [
        tool["name"] for tool in body.get("tools", []) if tool.get("type", "custom") == "custom"
    ]
    yield from misnamed(
        "the name", [*declared, *(call["name"] for call in calls)], "[a-zA-Z0-9_-]{1,64}"
    )
    yield from (
        f"{call['name']} is called and not declared"
        for call in calls
        if call["name"] not in declared
    )
    turns = [_turn(message) for message in messages]
    yield from unpaired(merged(turns))
    for place, message in enumerate(messages):
        yield from (f"[{place}]: {problem}" for problem in _of_message(message))
    if messages and messages[-1]["role"] == "assistant":
        last = _blocks(messages[-1])[-1]
        if last["type"] == "text" and last["text"] != last["text"].rstrip():
            yield "the last message is the model's and ends with white space"
    if not isinstance(body.get("system", ""), str) and not body["system"]:
        yield "the system prompt is empty"
    for text in [b["text"] for b in _blocks({"content": body.get("system", "-")})]:
        if not text.strip():
            yield "a text of the system prompt is blank"


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _turn(message: dict[str, Any]) -> Turn:
    blocks = _blocks(message)
    calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    return Turn(message["role"], calls, results, len(blocks) > len(results) + len(calls))


def _of_message(message: dict[str, Any]) -> Iterator[str]:
    blocks, kinds = _blocks(message), [block["type"] for block in _blocks(message)]
    if not blocks:
        yield "it is empty"
    if "tool_result" in kinds and kinds != sorted(kinds, key=lambda kind: kind != "tool_result"):
        yield "something stands before a result"
    if "tool_use" in kinds and kinds != sorted(kinds, key=lambda kind: kind == "tool_use"):
        yield "something stands after a call"
    held = [block.get("content") for block in blocks if block["type"] == "tool_result"]
    inner = [block for content in held if isinstance(content, list) for block in content]
    for block in [*blocks, *inner]:
        if block["type"] == "text" and not block["text"].strip():
            yield "a text is blank"
        if block["type"] == "thinking" and not block.get("signature"):
            yield "thinking has no signature"
        source = block.get("source")
        if isinstance(source, dict) and source["type"] == "base64":
            kinds_ = _IMAGES if block["type"] == "image" else ("application/pdf",)
            if source["media_type"] not in kinds_:
                yield f"{source['media_type']} is none of {kinds_}"
            yield from base64_problems(source["data"])
    if message["role"] == "assistant" and set(kinds) & {"image", "document", "tool_result"}:
        yield "the model says media or results"
