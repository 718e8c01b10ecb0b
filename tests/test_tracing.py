"""`trace()` prints runs as a tree, whatever they do and however they end."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from io import StringIO
from itertools import chain, pairwise, permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from dragoman import Agent, Settings, ToolContext, tool, trace
from dragoman.errors import DragomanError, ProviderConnectionError
from dragoman.hooks import ModelEnd, ModelStart, RunEnd, RunStart, ToolEnd, ToolStart
from dragoman.message import Origin, ToolCallPart, ToolResultPart
from dragoman.request import ModelRequest, RunInfo
from dragoman.result import ChatResult
from dragoman.testing import ScriptedModel, call

pytestmark = pytest.mark.anyio
HOSTILE = "[red]x[/red]\x1b[2J\u202e\r\nnew"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@tool
async def look(city: str) -> str:
    """Looks."""
    return f"{city}: rain"


def mask(text: str) -> list[str]:
    """The lines of a trace, without its numbers."""
    text = re.sub(r"\d+\.\d\d s|\d\d s", "T", text)
    return re.sub(r"\d+( → \d+)? tokens", "N tokens", text).splitlines()


async def test_a_run_is_a_tree() -> None:
    stream = StringIO()
    model = ScriptedModel([call("look", city="Oslo"), "It rains."])
    agent = Agent(model, tools=[look], hooks=[trace(stream)], display_name="weather")
    await agent.send("Weather?")
    assert mask(stream.getvalue()) == [
        "weather  scripted:scripted-1",
        "├ model call 1  scripted:scripted-1  N tokens  T  first token T",
        '├ look {"city":"Oslo"}  → "Oslo: rain"  T',
        "├ model call 2  scripted:scripted-1  N tokens  T  first token T",
        "└ success  T  2 model calls  N tokens",
    ]


def asking(inner: Agent[None], name: str) -> Any:
    @tool(name=name)
    async def ask(question: str, context: ToolContext) -> str:
        """Asks another agent."""
        return (await context.send(inner, question)).output

    return ask


async def test_agents_side_by_side_stand_below_their_tools() -> None:
    stream = StringIO()

    def answer(request: ModelRequest) -> Any:
        return call("look", city="Oslo") if len(request.messages) == 1 else "It rains."

    inner = Agent(ScriptedModel(answer), tools=[look], display_name="expert")
    model = ScriptedModel(
        [[call("ask", question="1"), call("ask", question="2"), call("look", city="Rom")], "Done."]
    )
    outer = Agent(
        model, tools=[asking(inner, "ask"), look], hooks=[trace(stream)], display_name="boss"
    )
    await outer.send("Go.")
    lines = [
        re.sub(r"(call \d|success|→|expert|boss).*", r"\1", line)
        for line in mask(stream.getvalue())
    ]
    tree = [
        "│ ├ expert",
        "│ │ ├ model call 1",
        '│ │ ├ look {"city":"Oslo"}  →',
        "│ │ ├ model call 2",
        "│ │ └ success",
        "│ └ →",
    ]
    first, last = ["boss", "├ model call 1"], ["├ model call 2", "└ success"]
    asked = [[f'├ ask {{"question":"{number}"}}', *tree] for number in "12"]
    beside = ['├ look {"city":"Rom"}  →']
    # Which tool's lines come first depends on the machine; that they are together does not.
    orders = permutations([*asked, beside])
    assert lines in [[*first, *chain(*order), *last] for order in orders]


async def test_retries_fallbacks_losses_and_errors_have_their_lines() -> None:
    stream = StringIO()

    def fail(request: ModelRequest) -> Any:
        raise ProviderConnectionError(f"refused {HOSTILE}")

    agent = Agent(
        [ScriptedModel(fail, name="first"), ScriptedModel(["Hi."], name="second")],
        hooks=[trace(stream)],
        settings=Settings(temperature=0.5),
    )
    await agent.send("x")
    text = stream.getvalue()
    assert "is asked" in text and "refused" in text
    assert text.splitlines()[-1].startswith("└ success")
    assert "\x1b" not in text and "\u202e" not in text
    assert "[red]x[/red]" in text


async def test_it_ends_cleanly_if_a_run_fails_is_cancelled_or_left() -> None:
    stream, started = StringIO(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Waits."""
        started.set()
        await asyncio.sleep(60)
        return "never"

    hooks = trace(stream)
    failing = Agent(ScriptedModel(["one"]), hooks=[hooks])
    await failing.send("x")
    with pytest.raises(DragomanError):
        await failing.send("y")
    assert "└ error" in stream.getvalue().splitlines()[-1]

    inner = Agent(ScriptedModel([call("wait")]), tools=[wait], display_name="inner")
    outer = Agent(
        ScriptedModel([call("ask", question="1")]),
        tools=[asking(inner, "ask")],
        hooks=[hooks],
        display_name="outer",
    )
    async with outer.run("Go.") as run:
        task = asyncio.create_task(run.result())
        await started.wait()
        run.cancel()
        await task
    lines = mask(stream.getvalue())
    assert lines[-1].startswith("└ cancelled")
    assert "│ │ ├ wait {}  asks a person, or was stopped  T" in lines
    assert any(line.startswith("│ └ ") for line in lines)
    tracer = hooks.run_start.__self__  # type: ignore[union-attr]
    assert (tracer._runs, tracer._tools) == ({}, {})


async def test_a_console_of_rich_takes_the_trace() -> None:
    stream = StringIO()
    console = Console(file=stream, force_terminal=True, width=40, color_system="standard")
    await Agent(ScriptedModel(["Hi."]), hooks=[trace(console)], display_name="a").send("x")
    lines = stream.getvalue().splitlines()
    assert "\x1b[1m" in lines[0]
    # Lines are not broken at the width of the terminal, which would hide the tree.
    assert len(lines) == 3


async def test_standard_error_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    hooks = trace()
    await Agent(ScriptedModel(["Hi."]), hooks=[hooks]).send("x")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1].startswith("└ success")
    assert "\x1b" not in err


class Script:
    """Hooks as runs call them: a run that calls tools side by side, agents in some of them."""

    def __init__(self, choose: Callable[[Sequence[Any]], Any]) -> None:
        self.choose = choose
        self.stream = StringIO()
        self.hooks = trace(self.stream)
        self.number = 0

    async def run(self, depth: int, parent: str | None = None) -> None:
        self.number += 1
        run_id = f"{self.number:08}"
        info = RunInfo(run_id, parent_run_id=parent, agent=f"agent{run_id}")
        start = RunStart(info, "m")
        self.hooks.run_start(start)  # type: ignore[misc]
        for _ in range(self.choose([1, 2])):
            await asyncio.sleep(0)
            self.hooks.model_end(
                ModelEnd(ModelStart(info, Origin("p", model="m"), "w", ModelRequest("m")), 0.1)
            )  # type: ignore[misc]
            if depth:
                async with asyncio.TaskGroup() as group:
                    for _ in range(self.choose([0, 1, 2, 3])):
                        group.create_task(self.tool(info, depth))
        self.hooks.run_end(RunEnd(start, 0.1, "success", ChatResult("")))  # type: ignore[misc]

    async def tool(self, run: RunInfo, depth: int) -> None:
        self.number += 1
        name = f"tool{self.number:08}"
        part = ToolCallPart(name, name, {})
        start = ToolStart(run, part)
        self.hooks.tool_start(start)  # type: ignore[misc]
        for _ in range(self.choose([0, 1, 2])):
            await self.run(depth - 1, run.run_id)
        await asyncio.sleep(0)
        self.hooks.tool_end(ToolEnd(start, 0.1, ToolResultPart(name, name, "x")))  # type: ignore[misc]


@given(st.data())
def test_every_line_stands_below_the_one_it_belongs_to(data: st.DataObject) -> None:
    script = Script(lambda options: data.draw(st.sampled_from(options)))
    asyncio.run(script.run(2))
    lines = script.stream.getvalue().splitlines()
    depths = [len(re.match(r"[│├└ ]*", line)[0]) // 2 for line in lines]  # type: ignore[index]
    names = [name for line in lines for name in re.findall(r"(?:agent|tool)\d{8}", line)]
    # All is told, each agent and tool once, and no line stands deeper than what it is below.
    assert len(set(names)) == len(names) == script.number
    assert depths[0] == 0
    assert all(after <= before + 1 for before, after in pairwise(depths))
    assert all(depth > 0 for depth in depths[1:])
    # A branch ends with its own last line: what follows stands no deeper than its title.
    for position, line in enumerate(lines[:-1]):
        if "└" in line:
            assert depths[position + 1] < depths[position]
