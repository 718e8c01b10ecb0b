"""Durable runs for tests: an agent whose model follows the conversation, what its tools did, and the
laws that the log of a run must keep, however often its process died."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from dragoman import Agent, Message, ToolContext, Usage, fold, tool, unfold
from dragoman.event import (
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
    is_calls_begun,
    without_inner_runs,
)
from dragoman.message import FinishReason, Role, ToolCallPart
from dragoman.request import ModelRequest
from dragoman.runs.memory_log import MemoryLog
from support.model import PROVIDER

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


def begun(events: Iterable[Event]) -> list[str]:
    """Ids of the calls that have a mark, in order."""
    return [name for event in events if is_calls_begun(event) for name in event.value]  # type: ignore[union-attr]


def check_laws(events: Sequence[Event], run_id: str = RUN) -> list[Message]:
    """Checks what holds for the log of every run that is over. Returns its messages."""
    own = without_inner_runs(events)
    check_places(own, run_id)
    check_open(events)
    names = [event.name for event in own if isinstance(event, StepStarted)]
    assert len(names) == len(set(names)), names
    messages = fold(events)
    ids = [message.id for message in messages]
    assert len(ids) == len(set(ids)), ids
    for before, after in pairwise(messages):
        assert before.role != after.role, [message.role for message in messages]
        if before.role is Role.MODEL:
            check_pairs(before, after)
    return messages


def check_places(own: Sequence[Event], run_id: str) -> None:
    started = [event for event in own if isinstance(event, RunStarted)]
    assert [event.run_id for event in started] == [run_id]
    ends = [event for event in own if isinstance(event, RunFinished | RunError)]
    assert ends == list(own[-1:])


def check_pairs(asked: Message, answered: Message) -> None:
    """Each call of a message has one result in the next."""
    calls = Counter(piece.id for piece in asked.tool_calls)
    results = Counter(piece.id for piece in answered.tool_results)
    assert calls == results or not results, (calls, results)


def check_open(events: Sequence[Event]) -> None:
    """Messages, parts and steps are spoken of while they are open only, and all are closed."""
    messages: dict[str, set[int]] = {}
    steps: set[tuple[str, str | None]] = set()
    for event in events:
        if isinstance(event, MessageStarted):
            assert event.message_id not in messages, event
            messages[event.message_id] = set()
        elif isinstance(event, MessageFinished | MessageDropped):
            assert messages.pop(event.message_id, None) is not None, event
        elif isinstance(event, PartStarted):
            messages[event.message_id].add(event.index)
        elif isinstance(event, PartDelta | PartFinished):
            assert event.index in messages[event.message_id], event
        elif isinstance(event, StepStarted):
            steps.add((event.name, event.run_id))
        elif isinstance(event, StepFinished):
            steps.remove((event.name, event.run_id))
    assert not messages, messages
    assert not steps, steps


def outcome_unknown(messages: Iterable[Message]) -> list[str]:
    """Ids of the calls whose results say that nobody knows what they did."""
    return [
        part.id
        for message in messages
        for part in message.tool_results
        if part.is_error and "outcome unknown" in str(part.result)
    ]


Check = Callable[[Sequence[Event]], None]


def work(url: str, acts: str, lease_seconds: float, seconds: float, kills_at: str = "") -> None:
    """A process that drives durable runs until it is killed. `seconds`: for each piece of a word of
    its model, and for each tool. `kills_at`: id of a call at whose start it kills itself."""
    import os
    import signal

    from dragoman.runs import Runs, open_log

    class Deadly(Acts):
        async def act(self, call_id: str) -> str:
            if call_id != kills_at:
                return await super().act(call_id)
            self.seconds = 0.0
            await super().act(call_id)
            os.kill(os.getpid(), signal.SIGKILL)
            return ""

    a, _ = durable_agent(Deadly(Path(acts), seconds), seconds=seconds)

    async def main() -> None:
        async with (
            open_log(url) as log,
            Runs(log, agents={"a": a}, lease_seconds=lease_seconds, poll_seconds=0.05) as runs,
        ):
            await runs.work()

    asyncio.run(main())
