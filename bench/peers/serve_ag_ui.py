"""An agent behind AG-UI for `bench/goals.py`, in an environment that has what is served: its model
says numbers at a rate.

PYTHON bench/peers/serve_ag_ui.py by_hand|pydantic_ai|agno PORT EVENTS RATE
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import uvicorn

Words = AsyncIterator[str]


async def numbers(events: int, rate: float) -> Words:
    """What the model says."""
    begun = time.monotonic()
    for number in range(events):
        yield f"<{number}>"
        await asyncio.sleep(max(0.0, begun + (number + 1) / rate - time.monotonic()))


def by_hand(events: int, rate: float) -> Any:
    """Events that are written as bytes, without a framework."""
    heads = [(b"content-type", b"text/event-stream")]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        asked = json.loads((await receive())["body"])
        ids = {"threadId": asked["threadId"], "runId": asked["runId"]}

        async def write(event: dict[str, Any], more: bool = True) -> None:
            data = b"data: %b\n\n" % json.dumps(event).encode()
            await send({"type": "http.response.body", "body": data, "more_body": more})

        await send({"type": "http.response.start", "status": 200, "headers": heads})
        await write({"type": "RUN_STARTED", **ids})
        await write({"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"})
        async for text in numbers(events, rate):
            await write({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": text})
        await write({"type": "TEXT_MESSAGE_END", "messageId": "m"})
        await write({"type": "RUN_FINISHED", **ids}, more=False)

    return app


def pydantic_ai(events: int, rate: float) -> Any:
    """An agent whose model is a function."""
    from pydantic_ai import Agent
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.ui.ag_ui import AGUIAdapter
    from starlette.applications import Starlette
    from starlette.routing import Route

    agent = Agent(FunctionModel(stream_function=lambda *_: numbers(events, rate)))

    async def run(request: Any) -> Any:
        return await AGUIAdapter.dispatch_request(request, agent=agent)

    return Starlette(routes=[Route("/ag-ui", run, methods=["POST"])])


def agno(events: int, rate: float) -> Any:
    """An agent whose model streams numbers."""
    from agno.agent import Agent
    from agno.models.base import Model
    from agno.models.response import ModelResponse
    from agno.os import AgentOS
    from agno.os.interfaces.agui import AGUI

    class Numbers(Model):
        def invoke(self, *args: Any, **how: Any) -> Any:
            raise NotImplementedError

        async def ainvoke(self, *args: Any, **how: Any) -> Any:
            raise NotImplementedError

        def invoke_stream(self, *args: Any, **how: Any) -> Any:
            raise NotImplementedError

        async def ainvoke_stream(self, *args: Any, **how: Any) -> AsyncIterator[Any]:
            async for text in numbers(events, rate):
                yield ModelResponse(content=text)

        def _parse_provider_response(self, response: Any, **how: Any) -> Any:
            return response

        def _parse_provider_response_delta(self, response: Any, **how: Any) -> Any:
            return response

    agent = Agent(model=Numbers(id="numbers"), telemetry=False)
    system = AgentOS(agents=[agent], interfaces=[AGUI(agent=agent)], telemetry=False)
    served = system.get_app()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        """Names its path as the others do."""
        if scope["type"] == "http":
            scope = {**scope, "path": "/agui", "raw_path": b"/agui"}
        await served(scope, receive, send)

    return app


if __name__ == "__main__":
    name, port, count, pace = sys.argv[1:]
    made = {"by_hand": by_hand, "pydantic_ai": pydantic_ai, "agno": agno}[name]
    served = made(int(count), float(pace))
    uvicorn.run(served, port=int(port), log_level="warning", access_log=False, backlog=4096)
