"""Durable runs for tests: an agent whose model follows the conversation, and what its tools did. The
laws of their logs are the kit's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from dragoman import Agent, Message, ToolContext, Usage, tool, unfold
from dragoman.event import Event, PartDelta
from dragoman.message import FinishReason, Role, ToolCallPart
from dragoman.request import ModelRequest
from dragoman.runs.memory_log import MemoryLog
from dragoman.testing.engine import laws
from dragoman.testing.engine.laws import check_open
from dragoman.testing.engine.laws import list_begun_calls as begun
from dragoman.testing.engine.laws import list_unknown_outcomes as outcome_unknown
from support.model import PROVIDER

__all__ = [
    "PLAN",
    "RUN",
    "Acts",
    "Follower",
    "begun",
    "call",
    "check_laws",
    "check_open",
    "dead_log",
    "durable_agent",
    "expire",
    "outcome_unknown",
]

RUN = "r"


class Follower:
    """A model that says what stands at its place in a plan: the place is the number of its messages
    in the conversation. Its words come in pieces."""

    def __init__(self, plan: Sequence[Sequence[Any]], seconds: float = 0.0, shift: int = 0) -> None:
        """`shift`: messages of a model that the conversation had before the run."""
        self.plan, self.seconds, self.shift = plan, seconds, shift
        self.asked = 0

    async def __call__(self, request: ModelRequest, _next: Any) -> AsyncIterator[Event]:
        self.asked += 1
        place = sum(message.role is Role.MODEL for message in request.messages)
        place -= self.shift
        said = Message.model(*self.say(place, request))
        said = said.replace(
            id=f"m{place}-{self.asked}-{id(self)}",
            finish_reason=FinishReason.tool_calls
            if any(isinstance(part, ToolCallPart) for part in said.content)
            else FinishReason.stop,
            usage=Usage(input_tokens=10, output_tokens=1, total_tokens=11),
        )
        for event in unfold([said]):
            if isinstance(event, PartDelta) and isinstance(event.delta, str):
                for start in range(0, len(event.delta), 9):
                    yield PartDelta(event.message_id, event.index, event.delta[start : start + 9])
                    await asyncio.sleep(self.seconds)
            else:
                yield event

    def say(self, place: int, request: ModelRequest) -> Sequence[Any]:
        """What the model says at its place."""
        return self.plan[place]


def call(name: str, call_id: str, **arguments: Any) -> ToolCallPart:
    return ToolCallPart(call_id, name, arguments)


PLAN: Sequence[Sequence[Any]] = (
    ("I look and write.", call("look", "l1"), call("write", "w1"), call("write", "w2")),
    ("And once more.", call("write", "w3"), call("look", "l2")),
    ("Now all of it is done.",),
)


class Acts:
    """What tools did. `path`: a file that gets each act at once; `None`: a list alone."""

    def __init__(self, path: Path | None = None, seconds: float = 0.0) -> None:
        self.path, self.seconds = path, seconds
        self.done: list[str] = []

    async def act(self, call_id: str) -> str:
        self.done.append(call_id)
        if self.path is not None:
            with self.path.open("ab", buffering=0) as file:
                file.write(f"{call_id}\n".encode())
        await asyncio.sleep(self.seconds)
        return f"did {call_id}"

    def tools(self) -> list[Any]:
        @tool(idempotent=True)
        async def look(context: ToolContext[Any]) -> str:
            """Looks."""
            return await self.act(context.call_id)

        @tool
        async def write(context: ToolContext[Any]) -> str:
            """Writes."""
            await context.progress(1, 2)
            await context.state.patch([{"op": "add", "path": f"/{context.call_id}", "value": 1}])
            return await self.act(context.call_id)

        return [look, write]


def durable_agent(
    acts: Acts,
    plan: Sequence[Sequence[Any]] = PLAN,
    seconds: float = 0.0,
    shift: int = 0,
    **how: Any,
) -> tuple[Agent[Any], Follower]:
    model = how.pop("model", Follower)(plan, seconds, shift)
    tools = [*acts.tools(), *how.pop("tools", ())]
    return Agent(how.pop("provider", PROVIDER), middleware=[model], tools=tools, **how), model


async def dead_log(
    log: MemoryLog, events: Sequence[Event], request: Any, *, agent: str = "a", lost: int = 1
) -> None:
    """Fills a log with a run whose process died after these events."""
    await log.enqueue(RUN, agent, request, thread_id=request.thread_id)
    lease = None
    for _ in range(lost):
        lease = await log.lease(RUN, "dead", 60)
        expire(log)
    if lease is not None and events:
        log._ledger.lease_ends[RUN] = float("inf")
        await log.append(RUN, 0, events, lease=lease)
        expire(log)


def expire(log: MemoryLog, run_id: str = RUN) -> None:
    """Lets the lease of a run expire, as if its owner were dead."""
    log._ledger.lease_ends[run_id] = 1e-9


def check_laws(events: Sequence[Event], run_id: str = RUN) -> list[Message]:
    """Checks what holds for the log of every run that is over. Returns its messages."""
    return laws.check_laws(events, run_id)
