"""What OpenAI's Responses API takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

from support.rules.media import data_problems
from support.rules.pairing import misnamed, unread
from support.rules.typed import faults

_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


_FILES = ("application/pdf", "text/csv", "text/plain", "application/json")


def problems(body: dict[str, Any]) -> Iterator[str]:
    yield from faults(_detailed(body), ResponseCreateParamsNonStreaming, "body")
    items = body["input"] if isinstance(body["input"], list) else []
    if not body["input"] and "previous_response_id" not in body:
        yield "there is no input"
    calls = [
        item for item in items if str(item.get("type")).endswith("_call") and "call_id" in item
    ]
    functions = [item for item in calls if item["type"] == "function_call"]
    yield from misnamed("the id", [call["call_id"] for call in calls], "[^ ]{1,64}")
    declared = [tool["name"] for tool in body.get("tools", []) if tool["type"] == "function"]
    yield from misnamed(
        "the name", [*declared, *(call["name"] for call in functions)], "[a-zA-Z0-9_-]{1,64}"
    )
    yield from (
        f"{call['name']} is called and not declared"
        for call in functions
        if call["name"] not in declared
    )
    for call in functions:
        yield from unread(call["name"], call["arguments"])
    yield from _unpaired(items)
    twice = [
        id_
        for id_, times in Counter(item["id"] for item in items if item.get("id")).items()
        if times > 1
    ]
    yield from (f"the item {id_} stands twice" for id_ in twice)
    for place, item in enumerate(items):
        yield from (f"[{place}]: {problem}" for problem in _of_content(item))
        if item.get("type") == "reasoning" and (
            place + 1 == len(items) or _is_of_user(items[place + 1])
        ):
            yield f"[{place}]: reasoning has nothing after it that came of it"


def _unpaired(items: list[dict[str, Any]]) -> Iterator[str]:
    waiting: list[str] = []
    for place, item in enumerate(items):
        kind, id_ = str(item.get("type")), str(item.get("call_id"))
        if kind.endswith("_call") and "call_id" in item:
            if id_ in waiting:
                yield f"[{place}]: the id {id_!r} waits for an answer already"
            waiting.append(id_)
        elif kind.endswith("_call_output"):
            if id_ not in waiting:
                yield f"[{place}]: the result {id_!r} has no call, or its call is answered"
            else:
                waiting.remove(id_)
        elif _is_of_user(item) and waiting:
            yield f"[{place}]: {waiting} are not answered before it"
            waiting = []
    if waiting:
        yield f"at the end: {waiting} are not answered"


def _is_of_user(item: dict[str, Any]) -> bool:
    return item.get("role") in ("user", "system", "developer")


def _of_content(item: dict[str, Any]) -> Iterator[str]:
    content = item.get(
        "content", item.get("output") if item.get("type") == "function_call_output" else "-"
    )
    if item.get("role") == "assistant" and not content:
        yield "it is empty"
    for block in content if isinstance(content, list) else []:
        if block["type"] == "input_image" and "image_url" in block:
            yield from data_problems(block["image_url"], _IMAGES)
        if block["type"] == "input_file" and "file_data" in block:
            yield from data_problems(block["file_data"], _FILES)


def _detailed(body: dict[str, Any]) -> dict[str, Any]:
    """The same with the images' `detail`, which the client's types demand and the API does not
    (recorded)."""
    body = deepcopy(body)
    for item in body["input"] if isinstance(body["input"], list) else []:
        content = item.get("content", item.get("output"))
        for block in content if isinstance(content, list) else []:
            if block.get("type") == "input_image":
                block.setdefault("detail", "auto")
    return body
