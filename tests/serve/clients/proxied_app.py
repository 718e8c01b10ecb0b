"""The server that proxies stand before: its model says half, and the rest when somebody asks for it
at `/go`. Prints its URL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman import Agent, ModelRequest, serve
from dragoman.testing import ScriptedModel


def app() -> Any:
    """The application, with the name of the guide and a key."""
    go = asyncio.Semaphore(0)

    async def reply(request: ModelRequest) -> AsyncGenerator[str]:
        yield "Half "
        if request.messages[-1].text == "Hi.":
            await go.acquire()
        yield "and whole."

    async def goes(_: Request) -> Response:
        go.release()
        return Response(status_code=204)

    agent = Agent(ScriptedModel(reply, wire="openai_chat"), api_key="k")
    made = serve.app(agent, auth="one-secret-key", hosts=["llm.example.com"])
    made.router.routes.insert(0, Route("/go", goes, methods=["POST"]))
    return made


if __name__ == "__main__":
    asyncio.run(serve.serve_http(app(), port=0, ready=lambda url: print(url, flush=True)))
