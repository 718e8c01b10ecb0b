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
from ag_ui_apps import APPS


async def numbers(events: int, rate: float) -> AsyncIterator[str]:
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


def rename(app: Any, path: str) -> Any:
    """Returns an app that answers at the path of the others."""

    async def renamed(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope = {**scope, "path": path, "raw_path": path.encode()}
        await app(scope, receive, send)

    return renamed


def serve(name: str, port: int, events: int, rate: float) -> None:
    """Serves one until it is stopped."""
    if name == "by_hand":
        app = by_hand(events, rate)
    else:
        app = rename(*APPS[name](lambda: numbers(events, rate)))
    uvicorn.run(app, port=port, log_level="warning", access_log=False, backlog=4096)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
