"""A worker of a fleet, for its own process."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

from dragoman import Agent, Message, ToolCallPart, ToolContext, tool
from dragoman.message import Role
from dragoman.request import ModelRequest
from dragoman.runs import Limit, Runs, open_log
from dragoman.runtime import new_id
from dragoman.testing import ScriptedModel

FLEET_QUEUES = ("openai", "anthropic")
FLEET_LIMIT = 6


def fleet_worker(url: str, notes: str, lease_seconds: float, seconds: float) -> None:
    """A process that drives runs of two providers on DBOS until it is killed, and notes down when each
    model call begins and ends: `begin|end run queue time pid`. `seconds`: how long a call takes."""
    with Path(notes).open("ab", buffering=0) as file:

        def note(kind: str, run_id: str, queue: str) -> None:
            file.write(f"{kind} {run_id} {queue} {time.monotonic()} {os.getpid()}\n".encode())

        @tool
        async def write(context: ToolContext[Any]) -> str:
            """Writes."""
            file.write(f"act {context.run_id}/{context.call_id} - 0 {os.getpid()}\n".encode())
            return "written"

        async def answer(request: ModelRequest) -> Message:
            queue, _, run_id = request.messages[0].text.partition(" ")
            turn = sum(message.role is Role.MODEL for message in request.messages)
            note("begin", run_id, queue)
            try:
                await asyncio.sleep(seconds)
            finally:
                note("end", run_id, queue)
            said = ("Done.",) if turn == 2 else (ToolCallPart(f"w{turn}", "write", {}),)
            return Message.model(*said).replace(id=new_id())

        async def main() -> None:
            agents = {"a": Agent(ScriptedModel(answer), tools=[write])}
            async with (
                open_log(url) as log,
                Runs(log, engine="dbos", agents=agents, lease_seconds=lease_seconds) as runs,
            ):
                await runs.work(queues=dict.fromkeys(FLEET_QUEUES, Limit(runs=FLEET_LIMIT)))

        asyncio.run(main())
