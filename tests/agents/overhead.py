"""What a gateway costs for each request of a coding agent: CPU time, at 100 kB a request.

python tests/agents/overhead.py
"""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import Any

import msgspec

from dragoman import Message, ToolCallPart, serve
from dragoman.message import Role
from dragoman.request import HttpRequest, ModelRequest
from dragoman.testing import ScriptedModel
from support.gateway import AsgiTransport

__all__ = ["measure"]

WIRES = ("anthropic", "openai_chat", "openai_responses", "google")
TURNS = 20
_WORDS = "the quick brown fox jumps over the lazy dog and runs on to the river "


def _answer(request: ModelRequest) -> Message:
    number = sum(message.role is Role.MODEL for message in request.messages)
    return Message.model("I look.", ToolCallPart(f"call_{number}", "tool_1", {"path": "a.py"}))


def _make_tools() -> list[Any]:
    schema = {
        "type": "object",
        "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["path"],
        "additionalProperties": False,
    }
    return [
        {"name": f"tool_{number}", "description": _WORDS * 25, "input_schema": schema}
        for number in range(20)
    ]


async def _play(wire: str) -> list[float]:
    upstream = ScriptedModel(_answer, wire=wire)
    transport = AsgiTransport(serve.app(gateway=serve.Gateway({"m": upstream})))
    headers = {"content-type": "application/json", "authorization": "Bearer none"}
    messages: list[Any] = [{"role": "user", "content": _WORDS * 150}]
    spent: list[float] = []
    for _ in range(TURNS):
        body: dict[str, Any] = {
            "model": "m",
            "max_tokens": 999,
            "system": _WORDS * 150,
            "tools": _make_tools(),
            "messages": messages,
        }
        data = msgspec.json.encode(body)
        begun = time.process_time()
        response = await transport.send(HttpRequest("http://h/v1/messages", headers, data))
        answered = await response.read()
        spent.append(1000 * (time.process_time() - begun))
        content = msgspec.json.decode(answered)["content"]
        call = content[-1]["id"]
        result = {"type": "tool_result", "tool_use_id": call, "content": _WORDS * 40}
        messages += [
            {"role": "assistant", "content": content},
            {"role": "user", "content": [result]},
        ]
    return spent[2:]


def measure(wire: str) -> float:
    """Returns the median of the CPU time of a request to a provider of this API, in milliseconds."""
    return statistics.median(asyncio.run(_play(wire)))


if __name__ == "__main__":
    for wire_name in WIRES:
        print(f"{wire_name:17} {measure(wire_name):.2f} ms")
