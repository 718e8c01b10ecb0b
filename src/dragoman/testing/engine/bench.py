"""`EngineBench`, which the checks of an engine work with: a log, processes that work on it, and an
agent whose tools write down what they did."""

from __future__ import annotations

import asyncio
import pickle
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from dragoman.agent import Agent
from dragoman.event import Event
from dragoman.json_bytes import Json
from dragoman.message import Message, Role, ToolCallPart
from dragoman.request import ModelRequest
from dragoman.runs.engines import DEFAULT_QUEUES, Engine, Limit
from dragoman.runs.log import RunLog
from dragoman.runs.log_by_url import open_log
from dragoman.runs.runs import Runs
from dragoman.runtime import new_id
from dragoman.testing.check import Bench, check_maker
from dragoman.testing.scripted import ScriptedModel
from dragoman.tools.context import ToolContext
from dragoman.tools.definition import Tool, tool

__all__ = [
    "AGENT",
    "SECONDS",
    "Acts",
    "EngineBench",
    "EngineFactory",
    "Site",
    "engine_check",
    "work",
]

AGENT = "kit"
"""Name of the agent of the checks."""
SECONDS = 30.0
"""Seconds that a run may take until it is over."""
_LEASE_SECONDS = 2.0
_PLAN = (
    (
        "I look and write.",
        ToolCallPart("l1", "look", {}),
        ToolCallPart("w1", "write", {}),
        ToolCallPart("w2", "write", {}),
    ),
    ("And once more.", ToolCallPart("w3", "write", {}), ToolCallPart("l2", "look", {})),
    ("Done.",),
)
"""What the model says: the first, second and third time."""


class EngineFactory(msgspec.Struct, frozen=True):
    """Makes the engine that is checked, and names it."""

    make: Callable[[RunLog], Engine]
    """Returns an engine for a log, as each process has one."""
    url: Callable[[], str]
    """Returns the URL of an empty log."""
    name: str
    """The engine's name in reports."""


class Acts:
    """What tools did, over all processes of a check."""

    def __init__(self, path: Path, seconds: float = 0.0) -> None:
        """`path`: a file that gets a line for each act at once. `seconds`: how long an act takes."""
        self._path, self.seconds = path, seconds
        self.running, self.peak = 0, 0
        """Acts of this process that are under way, and the most that ever were."""

    async def act(self, context: ToolContext[Any]) -> str:
        """Does something, and returns what."""
        with self._path.open("ab", buffering=0) as file:
            file.write(f"{context.run_id} {context.call_id}\n".encode())
        self.running += 1
        self.peak = max(self.peak, self.running)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.running -= 1
        return f"did {context.call_id}"

    def list_acts(self) -> list[tuple[str, str]]:
        """Returns the runs and calls that acted, in order."""
        text = self._path.read_text() if self._path.exists() else ""
        acts = [line.rpartition(" ") for line in text.split("\n")[:-1]]
        return [(run_id, call) for run_id, _, call in acts]

    def counts(self, run_id: str) -> Counter[str]:
        """Returns how often each call of a run has acted."""
        return Counter(call for acting, call in self.list_acts() if acting == run_id)

    def agent(self) -> Agent[None]:
        """Returns an agent that follows the plan. Its `look` is idempotent, its `write` is not."""

        @tool(idempotent=True)
        async def look(context: ToolContext[Any]) -> str:
            """Looks."""
            return await self.act(context)

        @tool
        async def write(context: ToolContext[Any]) -> str:
            """Writes."""
            return await self.act(context)

        return _follow(_PLAN, [look, write])

    def one_act_agent(self) -> Agent[None]:
        """Returns an agent that acts once."""

        @tool
        async def act(context: ToolContext[Any]) -> str:
            """Acts."""
            return await self.act(context)

        return _follow(((ToolCallPart("a1", "act", {}),), ("Done.",)), [act])


def _follow(plan: Sequence[Sequence[Any]], tools: Sequence[Tool[Any]]) -> Agent[None]:
    """Returns an agent whose model says what stands at its place in the plan: the number of its
    messages in the conversation."""

    def answer(request: ModelRequest) -> Message:
        turn = sum(message.role is Role.MODEL for message in request.messages)
        return Message.model(*plan[turn]).replace(id=new_id())

    return Agent(ScriptedModel(answer), tools=tools)


class Site:
    """A log with an engine, and what the tools of its runs did."""

    def __init__(self, factory: EngineFactory, url: str, log: RunLog, folder: Path) -> None:
        self.log, self.acts = log, Acts(folder / "acts")
        self._factory, self._url, self._folder = factory, url, folder

    @asynccontextmanager
    async def engine(self) -> AsyncGenerator[Engine, None]:
        """Opens the engine of a process."""
        engine = self._factory.make(self.log)
        try:
            yield engine
        finally:
            if (close := getattr(engine, "close", None)) is not None:
                await close()

    @asynccontextmanager
    async def process(
        self, agents: Mapping[str, Agent[Any]] | None = None
    ) -> AsyncGenerator[Runs, None]:
        """Opens the runs of a process. `agents`: its agents; `None`: the one of the checks."""
        agents = agents or {AGENT: self.acts.agent()}
        lease: Json = {"lease_seconds": _LEASE_SECONDS, "poll_seconds": 0.05}
        async with (
            self.engine() as engine,
            Runs(self.log, engine=engine, agents=agents, **lease) as runs,
        ):
            yield runs

    @asynccontextmanager
    async def worker(
        self,
        agents: Mapping[str, Agent[Any]] | None = None,
        queues: Mapping[str, Limit] = DEFAULT_QUEUES,
    ) -> AsyncGenerator[Runs, None]:
        """Opens the runs of a process that works until the block is left."""
        async with self.process(agents) as runs, work(runs, queues):
            yield runs

    def start_process(self) -> BaseProcess:
        """Starts a process of the operating system that works, and whose tools are slow."""
        process = get_context("spawn").Process(
            target=_work, args=(self._factory, self._url, self._folder), daemon=True
        )
        process.start()
        return process

    async def read(self, run_id: str) -> list[Event]:
        """Returns the events of a run that is over."""
        events: list[Event] = []
        while page := await self.log.read(run_id, len(events)):
            events += page
        return events


@asynccontextmanager
async def work(
    runs: Runs, queues: Mapping[str, Limit] = DEFAULT_QUEUES
) -> AsyncGenerator[None, None]:
    """Lets a process work until the block is left."""
    working = asyncio.create_task(runs.work(queues=queues))
    try:
        yield
    finally:
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


class EngineBench(Bench):
    """Opens logs with an engine for the checks.

    Args:
        factory: makes an engine.
        priorities: True if runs of a lower priority number come first.
        shared_limits: True if limits hold over all processes.
    """

    def __init__(
        self, factory: EngineFactory, *, priorities: bool = False, shared_limits: bool = False
    ) -> None:
        self.factory, self.name = factory, factory.name
        self._has = {"priorities": priorities, "shared_limits": shared_limits}

    def find_skip_reason(self, needs: tuple[str, ...], *, live: bool) -> str | None:  # noqa: ARG002 - an engine has no model
        """See `Bench`."""
        for need in needs:
            if not self._has.get(need, True):
                return f"the engine has no {need.replace('_', ' ')}"
        if "processes" not in needs:
            return None
        if self.factory.url() == "memory:":
            return "a log in memory is of one process"
        try:
            pickle.dumps(self.factory)
        except (pickle.PicklingError, AttributeError):
            return "another process must be able to import `make` and `url`"
        return None

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Site, None]:
        """Opens an empty log, with an engine for each of its processes."""
        url = self.factory.url()
        with TemporaryDirectory(prefix="dragoman-kit-") as folder:
            async with open_log(url) as log:
                yield Site(self.factory, url, log, Path(folder))


engine_check = check_maker(EngineBench, "engine ")
"""Decorator that makes a check from a function of an `EngineBench`."""


def _work(factory: EngineFactory, url: str, folder: Path) -> None:
    """Works until it is killed, in a process of its own."""

    async def main() -> None:
        async with open_log(url) as log:
            site = Site(factory, url, log, folder)
            site.acts.seconds = 0.2
            async with site.process() as runs:
                await runs.work()

    asyncio.run(main())
