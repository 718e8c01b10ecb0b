"""pydantic-ai, with and without DBOS, for `durable_runs.py`: the same model, tools and protocol."""

from __future__ import annotations

import asyncio
import sys
import time
from uuid import uuid4

from dbos import DBOS, SetWorkflowID
from pydantic_ai import Agent
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel


def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    turn = sum(isinstance(message, ModelResponse) for message in messages)
    if turn == 0:
        calls = [ToolCallPart("look", {}, f"a{n}") for n in range(3)]
        return ModelResponse([TextPart("I look at three things at once."), *calls])
    if turn == 1:
        calls = [ToolCallPart("look", {}, f"b{n}") for n in range(2)]
        return ModelResponse([TextPart("And now at two more of them."), *calls])
    return ModelResponse([TextPart("All of it is done, here is the end of it.")])


async def main(row: str, url: str) -> None:
    durable = row.endswith("DBOS")
    agent = Agent(
        FunctionModel(answer), name="bench", capabilities=[DBOSDurability()] if durable else []
    )

    @agent.tool_plain
    @DBOS.step()
    async def look() -> str:
        """Looks."""
        return "seen"

    @DBOS.workflow()
    async def run() -> str:
        return (await agent.run("Go.")).output

    async def one() -> None:
        if not durable:
            await agent.run("Go.")
            return
        with SetWorkflowID(uuid4().hex):
            await run()

    if durable:
        DBOS(config={"name": "peer", "system_database_url": url, "log_level": "ERROR"})
        DBOS.launch()
    while line := await asyncio.to_thread(sys.stdin.readline):
        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*[one() for _ in range(int(line))])
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(wall, cpu, 0.0, flush=True)
    if durable:
        DBOS.destroy()


asyncio.run(main(sys.argv[1], sys.argv[2]))
