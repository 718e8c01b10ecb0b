"""What a durable run costs, beside a run that nothing stores, a run in a log, and pydantic-ai on DBOS.

    python bench/durable_runs.py [--log postgresql://…] [--peer PYTHON]

Each row is a process of its own; they take turns, several rounds. A run has three model calls that
answer at once, and five tools that do nothing, in rounds of three and two. `--peer` names a Python with
`pydantic-ai-slim[dbos]`.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

ROUNDS, TOGETHER, ALONE = 3, 40, 8
ROWS = ("agent.run", "Runs.start", "enqueue, log", "enqueue, DBOS")
PEER_ROWS = ("pydantic-ai", "pydantic-ai on DBOS")

BARRIERS: list[float] = []
"""Seconds that rounds of tools waited until they were stored."""
Batch = Callable[[int], Awaitable[None]]


def make_agent() -> Any:
    from dragoman import Agent, Capability, Message, Provider, ToolCallPart, tool, unfold
    from dragoman.message import FinishReason, Role

    plan = (
        ("I look at three things at once.", *[ToolCallPart(f"a{n}", "look", {}) for n in range(3)]),
        ("And now at two more of them.", *[ToolCallPart(f"b{n}", "look", {}) for n in range(2)]),
        ("All of it is done, here is the end of it.",),
    )

    async def model(request: Any, _next: Any) -> AsyncIterator[Any]:
        turn = sum(message.role is Role.MODEL for message in request.messages)
        reason = FinishReason.stop if turn == 2 else FinishReason.tool_calls
        said = Message.model(*plan[turn]).replace(id=uuid4().hex, finish_reason=reason)
        for event in unfold([said]):
            yield event

    @tool
    async def look() -> str:
        """Looks."""
        return "seen"

    provider = Provider(
        name="bench",
        display_name="Bench",
        wire="openai_chat",
        base_url="http://127.0.0.1:9",
        chat_model="m",
        capabilities=frozenset({Capability.chat, Capability.tools, Capability.parallel_tools}),
    )
    return Agent(provider, middleware=[model], tools=[look])


@asynccontextmanager
async def opened(row: str, url: str) -> AsyncIterator[Batch]:
    """What carries out so many runs at once."""
    from dragoman.runs import Limit, Runs, driver, open_log

    a = make_agent()
    if row == "agent.run":

        async def plain(count: int) -> None:
            async def one() -> None:
                assert (await a.send("Go.")).output.endswith("of it.")

            await asyncio.gather(*[one() for _ in range(count)])

        yield plain
        return
    wait = driver.RunDriver.wait_until_stored

    async def timed(self: Any) -> None:
        began = time.perf_counter()
        await wait(self)
        BARRIERS.append(time.perf_counter() - began)

    driver.RunDriver.wait_until_stored = timed  # type: ignore[method-assign]
    engine = "dbos" if row.endswith("DBOS") else "log"
    async with open_log(url) as log, Runs(log, engine=engine, agents={"a": a}) as runs:
        worker = asyncio.create_task(runs.work(queues={engine: Limit(runs=TOGETHER)}))

        async def stored(count: int) -> None:
            async def one() -> None:
                if row.startswith("Runs.start"):
                    run_id = await runs.start(a, "Go.")
                else:
                    run_id = await runs.enqueue("a", "Go.", queue=engine)
                async for _ in runs.attach(run_id):
                    pass
                assert (await runs.status(run_id)).state == "success"

            await asyncio.gather(*[one() for _ in range(count)])

        yield stored
        worker.cancel()


async def serve(row: str, url: str) -> None:
    """Reads a number of runs a line, and tells the seconds and the CPU that they took."""
    async with opened(row, url) as batch:
        while line := await asyncio.to_thread(sys.stdin.readline):
            wall, cpu = time.perf_counter(), time.process_time()
            await batch(int(line))
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            barrier = median(BARRIERS) if BARRIERS else 0.0
            BARRIERS.clear()
            print(wall, cpu, barrier, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", help="URL of a log; by default a new one in SQLite")
    parser.add_argument("--peer", help="a Python with pydantic-ai-slim[dbos]")
    parser.add_argument("--row", help="serves one row")
    options = parser.parse_args()
    if options.row:
        asyncio.run(serve(options.row, options.log))
        return
    with tempfile.TemporaryDirectory() as folder:
        measure(options.log or f"sqlite:///{folder}/runs.db", options.peer, folder)


def measure(url: str, peer: str | None, folder: str) -> None:
    commands = {row: [sys.executable, __file__, "--row", row, "--log", url] for row in ROWS}
    if peer:
        script = str(Path(__file__).with_name("durable_peer.py"))
        peer_url = url if url.startswith("postgresql") else f"sqlite:///{folder}/peer.db"
        commands |= {row: [peer, script, row, peer_url] for row in PEER_ROWS}
    rows = {
        row: subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        for row, command in commands.items()
    }

    def ask(row: str, count: int) -> tuple[float, float, float]:
        process = rows[row]
        assert process.stdin is not None
        assert process.stdout is not None
        print(count, file=process.stdin, flush=True)
        wall, cpu, barrier = map(float, process.stdout.readline().split())
        return wall / count * 1000, cpu / count * 1000, barrier * 1000

    for row in rows:
        ask(row, TOGETHER)
    alone: dict[str, list[tuple[float, ...]]] = {row: [] for row in rows}
    together: dict[str, list[tuple[float, ...]]] = {row: [] for row in rows}
    for _ in range(ROUNDS):
        for row in rows:
            alone[row] += [ask(row, 1) for _ in range(ALONE)]
            together[row].append(ask(row, TOGETHER))
    for process in rows.values():
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
    print(f"{'ms a run':24} {'alone':>8} {f'of {TOGETHER}':>8} {'CPU':>8} {'barrier':>8}")
    for row in rows:
        wall, cpu, _ = map(min, zip(*together[row], strict=True))
        one, _, barrier = map(median, zip(*alone[row], strict=True))
        print(f"{row:24} {one:8.1f} {wall:8.1f} {cpu:8.1f} {barrier:8.2f}")


if __name__ == "__main__":
    main()
