"""An application whose streams go on for minutes, for `dragoman serve ending_app:app`."""

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


app = serve.app(Agent(ScriptedModel(lambda _: "word " * 2000, chunks=512), middleware=[slowly]))
