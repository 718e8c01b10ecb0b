"""Scenes in which processes of durable runs are killed: which agent drives the run, what it is asked,
and what must have become of it, however often a process died."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from time import sleep
from typing import Any

import msgspec
from sqlalchemy import Engine, event

from dragoman import Agent, RunRequest, ToolContext, fold, tool
from dragoman.event import Event, RunFinished, RunStarted
from dragoman.memory import Memory
from dragoman.message import Message
from dragoman.request import ModelRequest
from dragoman.runs import Limit, Runs, open_log
from dragoman.tools import handoff
from support.durable import (
    PLAN,
    Acts,
    Follower,
    begun,
    call,
    check_laws,
    check_open,
    durable_agent,
    outcome_unknown,
)

KEY = "0123456789abcdef0123456789abcdef"
ASKED = "?"
"""What a call of a model writes among the acts."""


class World(msgspec.Struct):
    """Where a run happens."""

    log: str
    """URL of the log."""
    memory: str
    """URL of the memory."""
    acts: str
    """File to which each call of a tool or a model adds a line when it begins."""
    run_id: str
    seconds: float = 0.0
    """For each piece of a word of a model, and for each tool."""
    kills_at: str = ""
    """Id of the call at whose start the process kills itself."""
    kills_in: int = 0
    """Number of the commit in which the process kills itself; 0: none."""


class _Deadly(Acts):
    """Tools in a process that kills itself when a call begins."""

    def __init__(self, world: World) -> None:
        super().__init__(Path(world.acts), world.seconds)
        self.kills_at = world.kills_at

    async def act(self, call_id: str) -> str:
        if call_id == self.kills_at:
            self.seconds = 0.0
            await super().act(call_id)
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().act(call_id)


INNER = (
    ("Inner.", call("look", "l9"), call("write", "w9")),
    ("And again.", call("write", "w8")),
    ("Inner done.",),
)


class _Noted(Follower):
    """A model that writes down that it is asked."""

    acts = ""

    def say(self, place: int, request: ModelRequest) -> Sequence[Any]:
        with Path(self.acts).open("ab", buffering=0) as file:
            file.write(f"{ASKED}\n".encode())
        return super().say(place, request)


def _make(world: World, plan: Any, **how: Any) -> Agent[Any]:
    agent, model = durable_agent(_Deadly(world), plan, seconds=world.seconds, model=_Noted, **how)
    model.acts = world.acts  # type: ignore[attr-defined]
    return agent


def _plain(world: World) -> Agent[Any]:
    return _make(world, PLAN)


def _remembering(world: World) -> Agent[Any]:
    return _make(world, PLAN, memory=Memory(world.memory))


def _asking(world: World) -> Agent[Any]:
    """Has an agent in a tool, which has one in a tool of its own."""
    inner = _make(world, INNER)
    plan = (("Middle.", call("deep", "d1", prompt="x"), call("write", "w7")), ("Middle done.",))
    middle = _make(world, plan, tools=[inner.as_tool("deep")])
    plan = (("I ask.", call("ask", "a1", prompt="x"), call("write", "w1")), ("Done.",))
    return _make(world, plan, tools=[middle.as_tool("ask")])


def _handing_over(world: World) -> Agent[Any]:
    other = _make(world, INNER, shift=1)
    return _make(world, (("To b.", call("transfer_to_b", "t1")),), tools=[handoff(other, "b")])


def _paying(world: World) -> Agent[Any]:
    acts = _Deadly(world)

    @tool(requires_approval=True)
    async def pay(context: ToolContext[Any]) -> str:
        """Pays."""
        return await acts.act(context.call_id)

    plan = (("I pay.", call("pay", "w1")), ("And more.", call("write", "w2")), ("Paid.",))
    return _make(world, plan, tools=[pay], approval_key=KEY)


async def _ask(world: World) -> RunRequest:
    return RunRequest((Message.user("Do it."),), world.run_id, world.run_id)


async def _approve(world: World) -> RunRequest:
    """A request that allows a call."""
    agent = _paying(msgspec.structs.replace(world, acts=os.devnull, seconds=0.0))
    first = await agent.send("Pay.", thread_id=world.run_id)
    return RunRequest(
        first.messages, world.run_id, world.run_id, resume=(first.pending[0].approve(),)
    )


class Scene(msgspec.Struct, frozen=True):
    """What happens in a run."""

    name: str
    make: Callable[[World], Agent[Any]]
    calls: int
    """Model calls that it takes."""
    output: str
    tools: Sequence[str]
    """Ids of its calls, at whose start a process may be killed."""
    request: Any = _ask
    messages: int = 6


SCENES = {
    scene.name: scene
    for scene in (
        Scene(
            "plain",
            _plain,
            3,
            "I look and write.\nAnd once more.\nNow all of it is done.",
            ("l1", "w1", "w2", "w3", "l2"),
        ),
        Scene(
            "with a memory",
            _remembering,
            3,
            "I look and write.\nAnd once more.\nNow all of it is done.",
            ("w1", "w3"),
        ),
        Scene(
            "agents in tools",
            _asking,
            7,
            "I ask.\nDone.",
            ("w1", "l9", "w9", "w8", "w7"),
            messages=4,
        ),
        Scene(
            "hand-off",
            _handing_over,
            4,
            "To b.\nInner.\nAnd again.\nInner done.",
            ("l9", "w9", "w8"),
            messages=4,
        ),
        Scene("approved call", _paying, 2, "And more.\nPaid.", ("w1", "w2"), _approve, 5),
    )
}


def work_in(scene: str, world: World, lease_seconds: float) -> None:
    """A process that drives one run until it is killed, or kills itself."""
    if world.kills_in:
        _kill_in_commit(world.kills_in)

    async def main() -> None:
        agents = {"a": SCENES[scene].make(world)}
        async with (
            open_log(world.log) as log,
            Runs(log, agents=agents, lease_seconds=lease_seconds, poll_seconds=0.05) as runs,
        ):
            await runs.work(queues={world.run_id: Limit(runs=1)})

    asyncio.run(main())


def _kill_in_commit(number: int) -> None:
    """Kills this process while it commits for that time, at some moment of the commit."""
    count = 0

    def die() -> None:
        sleep(random.uniform(0.0, 0.002))
        os.kill(os.getpid(), signal.SIGKILL)

    @event.listens_for(Engine, "commit")
    def note_commit(_connection: Any) -> None:
        nonlocal count
        count += 1
        if count == number:
            threading.Thread(target=die).start()


async def check_run(scene: Scene, world: World, events: Sequence[Event], acts: list[str]) -> None:
    """Checks the log of a run that is over, and what its tools did."""
    if scene.request is _ask:
        messages = check_laws(events, world.run_id)
    else:
        check_open(events)
        messages = fold(events)
    last = events[-1]
    assert isinstance(last, RunFinished), last
    assert last.result == scene.output, last.result
    assert len(messages) == scene.messages, len(messages)
    # Nothing acted of which the log does not know.
    assert {*acts} <= {*begun(events)}, acts
    inner_ids = dict.fromkeys([each.run_id for each in events if isinstance(each, RunStarted)])
    inside = [message for inner in inner_ids for message in fold(events, inner)]
    everything = [*messages, *inside]
    unknown = outcome_unknown(everything)
    for part in [part for message in everything for part in message.tool_results]:
        if part.id[0] in "lw":
            known = part.result == f"did {part.id}" and part.id in acts
            assert known or part.id in unknown, part
    if scene.make is _remembering:
        page = await Memory(world.memory).recall(world.run_id)
        assert [each.id for each in page.items] == [each.id for each in messages]


def find_repeated(acts: list[str]) -> list[str]:
    """Returns the calls of tools that are not idempotent and were run more than once."""
    return [name for name, count in Counter(acts).items() if count > 1 and name.startswith("w")]
