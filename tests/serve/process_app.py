"""An agent that says which process answers, for `dragoman serve process_app:agent --processes 2`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from typing import Any

from dragoman import Agent
from dragoman.testing import ScriptedModel

if os.environ.get("PROCESS_APP") == "cannot start":
    sys.exit("it cannot start")


async def answer(request: Any) -> AsyncGenerator[str]:
    """The process; slowly, or never to the end, if the client asks for that."""
    said = request.messages[-1].text
    yield f"process {os.getpid()}. "
    if said == "die":
        os._exit(7)
    for _ in range({"slow": 10, "never": 10_000}.get(said, 0)):
        await asyncio.sleep(0.1)
        yield "word "


agent = Agent(ScriptedModel(answer))
