"""A server whose streams go on for minutes. python ending_app.py prints its URL, and serves until it is terminated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from dragoman import Agent, Event, PartDelta, serve
from dragoman.testing import ScriptedModel


async def slowly(request: Any, following: Any) -> AsyncIterator[Event]:
    """A word, now and then."""
    async for event in following(request):
        yield event
        if isinstance(event, PartDelta):
            await asyncio.sleep(0.2)


async def main() -> None:
    model = ScriptedModel(lambda _: "word " * 2000, chunks=512)
    app = serve.app(Agent(model, middleware=[slowly]))
    await serve.serve_http(app, port=0, drain_seconds=1.0, ready=lambda url: print(url, flush=True))


if __name__ == "__main__":
    asyncio.run(main())
