"""The server that clients of agent protocols are held against: a scripted agent that runs tools of
its own, asks for approval, shares state.

python protocols_app.py     prints its URL, and serves until it is terminated
"""

from __future__ import annotations

import asyncio
from typing import Any

from dragoman import Agent, Message, ThinkingPart, ToolCallPart, ToolContext, serve, tool
from dragoman.message import Role
from dragoman.testing import ScriptedModel


@tool
def roll() -> int:
    """Rolls a die."""
    return 4


@tool(requires_approval=True)
def pay(sum: int) -> str:
    """Pays."""
    return f"paid {sum}"


@tool
async def note(ctx: ToolContext, text: str) -> str:
    """Keeps a note in the state that agent and client share."""
    await ctx.state.patch([{"op": "add", "path": "/note", "value": text}])
    await ctx.progress(1, 2, "half")
    return "noted"


def reply(request: Any) -> Message:
    """Does what the questions want, once each, with tools of its own and the client's."""
    wanted = " ".join([message.text for message in request.messages if message.role is Role.USER])
    done = [call.name for message in request.messages for call in message.tool_calls]
    own = {"roll": {}, "pay": {"sum": 3}, "note": {"text": "a note"}}
    for name in ("pay", "note"):
        if name in wanted and name not in done:
            return Message.model(
                ThinkingPart("Hm."), "Let me.", ToolCallPart(f"{name}_1", name, own[name])
            )
    for spec in request.tools:
        if spec.name not in own and spec.name not in done:
            return Message.model(ToolCallPart("client_1", spec.name, {"location": "Oakland"}))
    if "roll" not in done:
        return Message.model("Let me see.", ToolCallPart("roll_1", "roll", {}))
    return Message.model(ThinkingPart("Easy."), "It is four, and that is that.")


async def main() -> None:
    """Serves until it is ended."""
    app = serve.app(Agent(ScriptedModel(reply), tools=[roll, pay, note]))
    async with serve.serve_grpc(app):
        await serve.serve_http(app, port=0, ready=lambda url: print(url, flush=True))


if __name__ == "__main__":
    asyncio.run(main())
