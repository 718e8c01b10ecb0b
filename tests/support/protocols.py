"""A server with an agent that has a tool of its own and one that needs approval, and clients of
each agent protocol that keep their own copy."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from dragoman import Agent, Message, ToolCallPart, serve, tool, wires
from dragoman.event import Event
from dragoman.message import Role, ThinkingPart
from dragoman.testing import ScriptedModel
from support.asgi import Exchange, exchange

__all__ = [
    "BODIES",
    "PAID",
    "STREAMED",
    "events_of",
    "pay",
    "posted",
    "reply",
    "roll",
    "served_agent",
]

PAID: list[int] = []
"""What was paid."""


@tool
def roll() -> int:
    """Rolls a die."""
    return 4


@tool(requires_approval=True)
def pay(sum: int) -> str:
    """Pays."""
    PAID.append(sum)
    return f"paid {sum}"


def reply(request: Any) -> Message:
    """Does what the last question wants, once; then says how long the conversation is."""
    asks = [
        at
        for at, message in enumerate(request.messages)
        if message.role is Role.USER and message.text
    ]
    if not asks:
        return Message.model(f"Seen {len(request.messages)}.")
    last = asks[-1]
    done = [call.name for message in request.messages[last:] for call in message.tool_calls]
    wanted = request.messages[last].text
    signed = ThinkingPart("Hm.", {"anthropic": {"signature": "c2lnbmVk"}})
    for name, arguments in (("roll", {}), ("pay", {"sum": 3})):
        if name in wanted and name not in done:
            return Message.model(
                signed, "Let me.", ToolCallPart(f"{name}_{len(request.messages)}", name, arguments)
            )
    return Message.model(f"Seen {len(request.messages)}.")


@asynccontextmanager
async def served_agent(script: Any = reply, **how: Any) -> AsyncGenerator[Any]:
    """A server that runs."""
    PAID.clear()
    model = ScriptedModel(script, wire="anthropic")
    app = serve.app(Agent(model, tools=[roll, pay]), **how)
    async with app.router.lifespan_context(app):
        yield app


def _ag_ui(thread: str, messages: Sequence[Message], **more: Any) -> dict[str, Any]:
    listed = wires.get("ag_ui").dump_messages(messages)
    return {
        "threadId": thread,
        "runId": f"run-{len(messages)}",
        "protocolVersion": "1.0",
        "messages": listed,
        **more,
    }


def _ai_sdk(thread: str, messages: Sequence[Message], **more: Any) -> dict[str, Any]:
    return {
        "id": thread,
        "messages": wires.get("ai_sdk").dump_messages(messages),
        "trigger": "submit-message",
        **more,
    }


BODIES: dict[str, tuple[str, Any]] = {"ag_ui": ("/ag-ui", _ag_ui), "ai_sdk": ("/ai-sdk", _ai_sdk)}
"""Wire → path, and what makes a body of a thread and the client's copy of it."""


STREAMED: dict[str, tuple[str, dict[str, Any]]] = {
    **{wire: (path, body("t", [Message.user("Go.").replace(id="u")])) for wire, (path, body) in BODIES.items()},
    "a2a": (
        "/a2a",
        {
            "jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage",
            "params": {"message": {"messageId": "m", "role": "ROLE_USER", "contextId": "t", "parts": [{"text": "Go."}]}},
        },
    ),
    "chat": ("/v1/chat/completions", {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Go."}]}),
}  # fmt: skip
"""Protocol → path and body of a question that is answered by a stream."""


async def posted(
    app: Any, wire: str, thread: str, messages: Sequence[Message], key: str = "", **more: Any
) -> Exchange:
    """A run that a client asks for."""
    path, body = BODIES[wire]
    headers = {"authorization": f"Bearer {key}"} if key else {}
    return await exchange(app, "POST", path, body(thread, messages, **more), headers=headers)


def events_of(wire: str, answer: Exchange) -> list[Event]:
    """What a client reads."""
    assert answer.status == 200, answer.body
    decoder = wires.protocol(wire).decoder()
    return [*decoder.feed(answer.body), *decoder.close()]


def shown(value: Any) -> str:
    """JSON, for comparison."""
    return json.dumps(value, sort_keys=True)
