"""Models, and whole processes, for the tests of runs that outlive a connection."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

from dragoman import Agent, Limits, Message, ToolContext, tool
from dragoman.event import (
    Event,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
)
from dragoman.fold import unfold
from dragoman.message import FinishReason, Role, TextPart, ToolCallPart
from dragoman.request import ModelRequest
from dragoman.runs import Runs, open_log
from support.model import PROVIDER, agent, says


class Steps:
    """A model whose answer is as long as `words`, and which says a word whenever `gate` lets it;
    `None`: at once."""

    def __init__(self, words: int, gate: asyncio.Semaphore | None = None) -> None:
        self.words, self.gate = words, gate
        self.ended = 0

    async def __call__(self, request: ModelRequest, _next: Any) -> AsyncIterator[Event]:
        try:
            yield MessageStarted("m", Role.MODEL)
            yield PartStarted("m", 0, OpenText())
            for number in range(self.words):
                if self.gate is not None:
                    await self.gate.acquire()
                yield PartDelta("m", 0, f"{number} ")
            yield PartFinished("m", 0, TextPart(self.text))
            yield MessageFinished("m", FinishReason.stop)
        finally:
            self.ended += 1

    @property
    def text(self) -> str:
        return "".join(f"{number} " for number in range(self.words))


def speaker(words: int, gate: asyncio.Semaphore | None = None) -> tuple[Agent[Any], Steps]:
    """An agent whose model counts."""
    model = Steps(words, gate)
    return Agent(PROVIDER, middleware=[model]), model


@tool
async def lookup(number: int) -> str:
    """Looks something up.

    Args:
        number: of what.
    """
    await asyncio.sleep(0.001)
    return f"found {number}"


class Endless:
    """A model that talks and calls a tool, by turns, for ever."""

    async def __call__(self, request: ModelRequest, _next: Any) -> AsyncIterator[Event]:
        turn = len(request.messages)
        said = Message.model(
            f"turn {turn}: " + "words and words " * 5,
            ToolCallPart(f"c{turn}", "lookup", {"number": turn}),
        )
        for event in unfold([said.replace(id=f"m{turn}", finish_reason=FinishReason.tool_calls)]):
            if isinstance(event, PartDelta) and isinstance(event.delta, str):
                for place in range(0, len(event.delta), 4):
                    yield PartDelta(event.message_id, event.index, event.delta[place : place + 4])
                    await asyncio.sleep(0.001)
            else:
                yield event


def endless() -> Agent[Any]:
    return Agent(PROVIDER, middleware=[Endless()], tools=[lookup], limits=Limits(model_calls=None))


async def until(check: Callable[[], Awaitable[bool]]) -> None:
    """Waits until it is so."""
    for _ in range(10_000):
        if await check():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came")


def drive(url: str, place: str, lease_seconds: float, runs: int = 1, prefix: str = "run-") -> None:
    """A process that drives runs, and writes down what a reader in it has seen: `run offset`, a
    line for each event.

    A reader sees only what is stored.
    """

    async def main() -> None:
        with open(place, "ab", buffering=0) as acknowledged:  # noqa: ASYNC230, PTH123 - a line is written at once

            async def read(run_id: str) -> None:
                async with aclosing(there.attach(run_id)) as events:
                    async for offset, _ in events:
                        acknowledged.write(f"{run_id} {offset}\n".encode())

            async with (
                open_log(url) as log,
                Runs(log, lease_seconds=lease_seconds, poll_seconds=0.05) as there,
            ):
                ids = [
                    await there.start(endless(), "go", run_id=f"{prefix}{number}")
                    for number in range(runs)
                ]
                await asyncio.gather(*map(read, ids))

    asyncio.run(main())


def acknowledged(place: str | Path) -> dict[str, int]:
    """Of each run, how many events were."""
    path = Path(place)
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return {
        run_id: int(offset) + 1 for run_id, _, offset in (line.partition(" ") for line in lines)
    }


def succeed(url: str, lease_seconds: float, runs: int) -> None:
    """A process that waits until those runs are over, and ends those that nobody drives."""

    async def main() -> None:
        async with (
            open_log(url) as log,
            Runs(log, lease_seconds=lease_seconds, poll_seconds=0.05) as there,
        ):
            await there.list()
            for number in range(runs):
                async with aclosing(there.attach(f"run-{number}")) as events:
                    async for _ in events:
                        pass

    asyncio.run(main())


def kill_at_a_tools_start(url: str, acts: str, run_id: str) -> None:
    """A process that kills itself as soon as a tool of its run begins. Each call that begins writes
    its id down."""

    @tool
    async def transfer(context: ToolContext[Any]) -> str:
        """Transfers money."""
        with open(acts, "ab", buffering=0) as file:  # noqa: ASYNC230, PTH123 - written at once
            file.write(f"{context.call_id}\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)
        return "done"

    calls = [ToolCallPart(f"c{number}", "transfer", {}) for number in range(3)]
    a, _ = agent(says("I transfer.", *calls), says("Done."), tools=[transfer])

    async def main() -> None:
        async with open_log(url) as log, Runs(log) as runs:
            await runs.start(a, "go", run_id=run_id)
            await runs.idle()

    asyncio.run(main())
