"""What Ollama's chat API takes: its server reads a fixed set of fields, some newer than its
client's types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NotRequired

from ollama._types import ChatRequest
from typing_extensions import TypedDict

from support.rules.media import base64_problems
from support.rules.pairing import Turn, unpaired
from support.rules.typed import faults


class _Function(TypedDict):
    name: str
    arguments: dict[str, Any]
    index: NotRequired[int]


class _Call(TypedDict):
    function: _Function
    id: NotRequired[str]
    type: NotRequired[str]


class _Message(TypedDict):
    role: str
    content: str
    thinking: NotRequired[str]
    images: NotRequired[list[str]]
    tool_name: NotRequired[str]
    tool_call_id: NotRequired[str]
    tool_calls: NotRequired[list[_Call]]


def problems(body: dict[str, Any]) -> Iterator[str]:
    ChatRequest.model_validate({**body, "messages": []})
    yield from (
        f"there is no field {name}" for name in body.keys() - ChatRequest.model_fields.keys()
    )
    messages = body["messages"]
    yield from faults(messages, list[_Message], "messages")
    declared = [tool["function"]["name"] for tool in body.get("tools", [])]
    for place, message in enumerate(messages):
        if message["role"] not in ("system", "user", "assistant", "tool"):
            yield f"[{place}]: there is no role {message['role']!r}"
        for image in message.get("images", []):
            yield from base64_problems(image)
        for call in message.get("tool_calls", []):
            if call["function"]["name"] not in declared:
                yield f"{call['function']['name']} is called and not declared"
            if call.get("id") == "":
                yield f"[{place}]: a call has an empty id"
    yield from unpaired(list(_turns(messages)))


def _turns(messages: list[dict[str, Any]]) -> Iterator[Turn]:
    """Where no ids are told, a result belongs to the first call of its name that waits."""
    waiting: list[tuple[str, str]] = []
    for place, message in enumerate(messages):
        if message["role"] == "tool":
            id_, name = message.get("tool_call_id"), message.get("tool_name")
            found = next(
                (w for w in waiting if (w[0] == id_ if id_ else w[1] == name or not name)),
                (str(id_ or name), ""),
            )
            if found in waiting:
                waiting.remove(found)
            yield Turn("tool", results=[found[0]], says=False)
            continue
        calls = message.get("tool_calls", [])
        waiting = [
            (call.get("id") or f"#{place}.{n}", call["function"]["name"])
            for n, call in enumerate(calls)
        ]
        yield Turn(message["role"], [id_ for id_, _ in waiting])
