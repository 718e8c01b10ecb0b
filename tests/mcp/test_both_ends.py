"""Our MCP client at our MCP server: an agent asks an agent elsewhere, which waits for somebody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from dragoman import Agent, DataPart, Message, ToolContext, dump_messages, load_messages, tool
from dragoman.event import Custom
from dragoman.mcp import mcp, server
from dragoman.request import ModelRequest
from dragoman.testing import ScriptedModel, call
from support.mcp import ERAS

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("era", ERAS)]


class Files:
    """A tool that leaves a trace, and agents that use it."""

    def __init__(self, *paths: str) -> None:
        self.dropped: list[str] = []
        self._paths = iter(paths)

        @tool(requires_approval=True, editable=True)
        async def drop(ctx: ToolContext[Any], path: str) -> str:
            await ctx.progress(1, 1, "dropping")
            self.dropped.append(path)
            return f"{path} is dropped"

        self.model = ScriptedModel(self._says)
        self.server = server(Agent(self.model, tools=[drop], display_name="files"))

    def _says(self, request: ModelRequest) -> Any:
        results = request.messages[-1].tool_results
        return str(results[0].result) if results else call("drop", path=next(self._paths))


def asks(name: str, **arguments: Any) -> Callable[[ModelRequest], Any]:
    """What an agent does that hands its task on."""

    def says(request: ModelRequest) -> Any:
        results = request.messages[-1].tool_results
        return f"They say: {results[0].result}" if results else call(name, **arguments)

    return says


def outer(files: Files, era: str) -> Agent[Any]:
    """As another process makes it."""
    model = ScriptedModel(asks("files", prompt="Drop it."))
    return Agent(model, tools=[mcp(files.server, protocol=era)], display_name="outer")


async def test_an_approval_two_agents_away_goes_on_where_it_waited(era: str) -> None:
    files = Files("a", "a")
    first = await outer(files, era).send("Go.")
    (wait,) = first.pending
    assert (wait.reason, wait.message) == ("input", 'May this be run? drop {"path":"a"}')
    assert files.dropped == []
    stored = load_messages(dump_messages(first.messages))
    result = await outer(files, era).send(
        None, history=stored, resume=[wait.answer({"approved": True})]
    )
    assert result.output == "They say: a is dropped"
    assert files.dropped == ["a"]
    assert len(files.model.requests) == (
        2 if era == "auto" else 3
    )  # of before 2026: the server began anew


async def test_what_was_allowed_is_run_and_nothing_else(era: str) -> None:
    files = Files("a", "b")
    first = await outer(files, era).send("Go.")
    answers = [wait.answer({"approved": True}) for wait in first.pending]
    result = await outer(files, era).send(None, history=first.messages, resume=answers)
    if era == "auto":
        assert files.dropped == ["a"]
    else:  # the server began anew, and its model wants something else now: somebody is asked again
        assert files.dropped == []
        assert result.pending[0].message == 'May this be run? drop {"path":"b"}'


async def test_what_was_denied_is_told_to_the_agent_that_wanted_it(era: str) -> None:
    files = Files("a", "a")
    first = await outer(files, era).send("Go.")
    answers = [wait.answer({"approved": False, "reason": "keep it"}) for wait in first.pending]
    result = await outer(files, era).send(None, history=first.messages, resume=answers)
    assert "keep it" in result.output
    assert files.dropped == []


async def test_an_approval_three_agents_away(era: str) -> None:
    files = Files("a", "a", "a")

    def middle() -> Any:
        model = ScriptedModel(asks("files", prompt="Drop it."))
        return server(
            Agent(model, tools=[mcp(files.server, protocol=era)], display_name="middle"),
            key="k" * 32,
        )

    def agent() -> Agent[Any]:
        return Agent(
            ScriptedModel(asks("middle", prompt="Have it dropped.")),
            tools=[mcp(middle(), protocol=era)],
        )

    first = await agent().send("Go.")
    (wait,) = first.pending
    assert wait.message == 'May this be run? drop {"path":"a"}'
    assert files.dropped == []
    result = await agent().send(
        None, history=first.messages, resume=[wait.answer({"approved": True})]
    )
    assert result.output == "They say: They say: a is dropped"
    assert files.dropped == ["a"]


async def test_progress_and_results_come_through(era: str) -> None:
    @tool
    async def draw(ctx: ToolContext[Any]) -> list[Any]:
        await ctx.progress(1, 2, "sketched")
        return [DataPart(b"\x89PNG", "image/png")]

    model = ScriptedModel([call("draw"), "Drawn."])
    events = [
        event
        async for event in Agent(model, tools=[mcp(server([draw]), protocol=era)]).send_events(
            "Go."
        )
    ]
    told = [event.value for event in events if isinstance(event, Custom)]
    assert [(each["done"], each["total"], each["message"]) for each in told] == [(1, 2, "sketched")]
    (result,) = [part for event in model.requests[1].messages for part in event.tool_results]
    assert "image/png" in repr(result) or any(
        isinstance(part, DataPart)
        for message in model.requests[1].messages
        for part in message.content
    )


async def test_the_end_of_a_run_ends_the_run_elsewhere(era: str) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    inner = server(Agent(ScriptedModel([call("wait")]), tools=[wait], display_name="inner"))
    agent = Agent(ScriptedModel([call("inner", prompt="x")]), tools=[mcp(inner, protocol=era)])
    task = asyncio.create_task(agent.send("Go."))
    await began.wait()
    task.cancel()
    await ended.wait()
    await asyncio.gather(task, return_exceptions=True)


async def test_an_error_elsewhere_is_an_error_result_here(era: str) -> None:
    inner = server(Agent(ScriptedModel([Message.model("x")]), limits=None, display_name="inner"))
    model = ScriptedModel([call("inner", prompt=""), "I see."])
    await Agent(model, tools=[mcp(inner, protocol=era)]).send("Go.")
    (result,) = model.requests[1].messages[-1].tool_results
    assert "invalid arguments" in str(result.result)
