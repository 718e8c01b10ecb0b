"""What an AG-UI endpoint costs for each event, beside those of pydantic-ai and agno: CPU of the
whole server, in process, without sockets.

python bench/ag_ui_server.py [dragoman|pydantic_ai|agno] [EVENTS]      in an environment that has what is measured
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

from peers.ag_ui_apps import APPS

WORD = "word "
ROUNDS = 5
BODY = {
    "threadId": "t",
    "runId": "r",
    "messages": [{"id": "u", "role": "user", "content": "hi"}],
    "tools": [],
    "context": [],
    "state": {},
    "forwardedProps": {},
}


def of_dragoman(events: int) -> Any:
    """An agent whose model is a middleware, so that none is asked."""
    from dragoman import Agent, serve
    from dragoman.event import (
        MessageFinished,
        MessageStarted,
        OpenText,
        PartDelta,
        PartFinished,
        PartStarted,
    )
    from dragoman.message import FinishReason, Role, TextPart
    from dragoman.testing import ScriptedModel

    async def words(request: Any, following: Any) -> AsyncIterator[Any]:
        yield MessageStarted("m", Role.MODEL)
        yield PartStarted("m", 0, OpenText())
        for _ in range(events):
            yield PartDelta("m", 0, WORD)
        yield PartFinished("m", 0, TextPart(WORD * events))
        yield MessageFinished("m", FinishReason.stop)

    return serve.app(Agent(ScriptedModel([]), middleware=[words])), "/ag-ui"


async def say(events: int) -> AsyncIterator[str]:
    """What the model of another library says."""
    for _ in range(events):
        yield WORD


async def exchange(app: Any, path: str) -> tuple[int, int]:
    """One request → how many events came, and bytes."""
    body: bytes | None = json.dumps(BODY).encode()
    pieces: list[bytes] = []
    gone = asyncio.Event()

    async def receive() -> dict[str, Any]:
        nonlocal body
        if body is not None:
            data, body = body, None
            return {"type": "http.request", "body": data, "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        pieces.append(message.get("body", b""))

    headers = [
        (b"host", b"127.0.0.1"),
        (b"content-type", b"application/json"),
        (b"accept", b"text/event-stream"),
    ]
    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1", "method": "POST", "scheme": "http", "path": path,
        "raw_path": path.encode(), "query_string": b"", "root_path": "", "headers": headers, "client": ("127.0.0.1", 9), "server": ("127.0.0.1", 80),
        "state": {},
    }  # fmt: skip
    await app(scope, receive, send)
    gone.set()
    data = b"".join(pieces)
    return data.count(b"TEXT_MESSAGE_CONTENT"), len(data)


async def measure(name: str, events: int) -> None:
    if name == "dragoman":
        app, path = of_dragoman(events)
    else:
        app, path = APPS[name](lambda: say(events))
    async with app.router.lifespan_context(app):
        await exchange(app, path)
        best = float("inf")
        for _ in range(ROUNDS):
            gc.collect()
            start = time.process_time()
            count, size = await exchange(app, path)
            best = min(best, (time.process_time() - start) / max(count, 1))
    print(
        json.dumps(
            {"server": name, "events": count, "bytes": size, "us_an_event": round(best * 1e6, 2)}
        )
    )


if __name__ == "__main__":
    asyncio.run(
        measure(
            sys.argv[1] if len(sys.argv) > 1 else "dragoman",
            int(sys.argv[2]) if len(sys.argv) > 2 else 5000,
        )
    )
