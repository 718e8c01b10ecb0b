"""A server with a store on disk and an agent that has tools. python chaos_app.py STORE prints its URL, and serves until it is terminated."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from dragoman import Agent, Message, ToolCallPart, serve, tool
from dragoman.testing import ScriptedModel


@tool
async def look() -> str:
    """Looks."""
    await asyncio.sleep(0.001)
    return "a cat"


def reply(request: Any) -> Message:
    """Calls its tool after every other question, and then has much to say."""
    asked = len(request.messages) % 4 == 1
    return (
        Message.model(ToolCallPart(f"c{len(request.messages)}", "look", {})) if asked else Message.model("word " * 3000)
    )


async def main() -> None:
    limits = serve.ServerLimits(body_seconds=1.0, write_seconds=1.0, keep_seconds=2.0)
    app = serve.app(Agent(ScriptedModel(reply, chunks=2048), tools=[look]), store=sys.argv[1], limits=limits)
    await serve.serve_http(app, port=0, drain_seconds=10.0, ready=lambda url: print(url, flush=True))


if __name__ == "__main__":
    asyncio.run(main())
