"""An agent and tools as an MCP server, with the official client in memory: lists, results,
progress, errors, cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from mcp import MCPError
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel

from dragoman import (
    Agent,
    DataPart,
    FilePart,
    Limits,
    LinkPart,
    Message,
    TextPart,
    Tool,
    ToolContext,
    tool,
)
from dragoman.errors import AuthenticationError, SettingsError, ToolError
from dragoman.event import Event, RunError
from dragoman.hooks import Hooks
from dragoman.mcp import mcp, server
from dragoman.orchestration import DefaultStreamingOrchestrator
from dragoman.testing import ScriptedModel
from dragoman.tools import Toolset, handoff
from support.mcp import DECLINED, ERAS, Told, User, connected, text
from support.model import agent, call, says

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("era", ERAS)]


@tool
async def add(ctx: ToolContext[Any], a: int, b: int) -> dict[str, int]:
    """Adds two numbers.

    Args:
        a: The one.
        b: The other.
    """
    await ctx.progress(1, 2, "half")
    await ctx.progress(2, 2)
    return {"sum": a + b}


@tool(requires_approval=True, idempotent=True)
def drop(path: str) -> str:
    """Drops a file."""
    return f"{path} dropped"


class City(BaseModel):
    name: str
    people: int


async def test_tools_are_listed_with_their_schemas_and_hints(era: str) -> None:
    async with connected(server([add, drop, lambda_free]), era) as client:
        listed = {one.name: one for one in (await client.list_tools()).tools}
    assert list(listed) == ["add", "drop", "lambda_free"]
    assert listed["add"].description == "Adds two numbers."
    assert listed["add"].annotations is None
    schema = listed["add"].input_schema
    assert schema["type"] == "object"
    assert schema["required"] == ["a", "b"]
    assert schema["properties"]["a"]["description"] == "The one."
    hints = listed["drop"].annotations
    assert hints is not None
    assert (hints.destructive_hint, hints.idempotent_hint) == (True, True)


async def test_what_a_tool_says_of_itself_for_clients_is_told(era: str) -> None:
    @tool(
        native={
            "mcp": {"title": "Look", "annotations": {"readOnlyHint": True, "idempotentHint": False}}
        },
        idempotent=True,
    )
    def look() -> None:
        """Looks."""

    inner = server([look, add])
    async with connected(server([mcp(inner, prefix="x_")]), era) as client:
        listed = {one.name: one for one in (await client.list_tools()).tools}
        added = await client.call_tool("x_add", {"a": 1, "b": 2})
    hints = listed["x_look"].annotations
    assert hints is not None
    assert (hints.read_only_hint, hints.idempotent_hint, listed["x_look"].title) == (
        True,
        False,
        "Look",
    )
    assert listed["x_add"].annotations is None
    assert added.structured_content == {"sum": 3}


def lambda_free() -> None:
    """A plain function."""


async def test_an_agent_is_a_tool_that_takes_a_prompt(era: str) -> None:
    mine, script = agent(says("It is\nsunny."), display_name="Weather & more")
    async with connected(server(mine, description="Knows the weather."), era) as client:
        (listed,) = (await client.list_tools()).tools
        result = await client.call_tool("Weather_more", {"prompt": "And today?"})
    assert (listed.name, listed.title, listed.description) == (
        "Weather_more",
        "Weather & more",
        "Knows the weather.",
    )
    assert text(result) == "It is\nsunny."
    assert not result.is_error
    assert script.requests[0].messages[-1].text == "And today?"


@pytest.mark.parametrize(
    ("expose", "names"),
    [("agent", ["Me"]), ("tools", ["add", "drop"]), ("both", ["Me", "add", "drop"])],
)
async def test_what_of_an_agent_is_shown_is_chosen(era: str, expose: Any, names: list[str]) -> None:
    mine, _ = agent(says("hello"), display_name="Me", tools=[add, drop])
    async with connected(server(mine, expose=expose), era) as client:
        assert [one.name for one in (await client.list_tools()).tools] == names
        with pytest.raises(MCPError, match="there is no tool named 'other'"):
            await client.call_tool("other", {})
        if expose == "agent":
            with pytest.raises(MCPError, match="there is no tool named 'add'"):
                await client.call_tool("add", {"a": 1, "b": 2})


async def test_tools_that_nobody_here_runs_are_not_shown(era: str) -> None:
    other, _ = agent(says("x"), display_name="other")
    async with connected(server([add, Tool("theirs"), handoff(other)]), era) as client:
        assert [one.name for one in (await client.list_tools()).tools] == ["add"]
        with pytest.raises(MCPError, match="there is no tool named 'theirs'"):
            await client.call_tool("theirs", {})


async def test_an_object_is_structured_content_and_anything_else_is_text(era: str) -> None:
    def of(value: Any) -> Callable[[], Any]:
        return lambda: value

    values = {"object": {"a": [1]}, "text": "hello", "number": 3, "list": [1, "x"], "nothing": None}
    tools = [Tool(name, handler=of(value)) for name, value in values.items()]
    async with connected(server(tools), era) as client:
        results = {name: await client.call_tool(name, {}) for name in values}
    assert results["object"].structured_content == {"a": [1]}
    assert {name: text(one) for name, one in results.items()} == {
        "object": '{"a":[1]}',
        "text": "hello",
        "number": "3",
        "list": '[1,"x"]',
        "nothing": "null",
    }
    assert all(one.structured_content is None for name, one in results.items() if name != "object")


async def test_parts_are_content_of_their_kind(era: str) -> None:
    @tool
    def show() -> list[Any]:
        return [
            TextPart("see"),
            DataPart(b"\x89PNG", "image/png"),
            DataPart(b"RIFF", "audio/wav"),
            LinkPart("https://example.com/a", "text/html", "a page"),
            DataPart(b"a,b", "text/csv", "my table.csv"),
            DataPart(b"\xff\xfe", "text/plain"),
            DataPart(b"%PDF", "application/pdf", "p.pdf"),
            FilePart("file_1"),
        ]

    async with connected(server([show]), era) as client:
        content = (await client.call_tool("show", {})).content
    said, image, audio, link, table, broken, pdf, file = content
    assert isinstance(said, TextContent)
    assert said.text == "see"
    assert isinstance(image, ImageContent)
    assert (image.data, image.mime_type) == ("iVBORw==", "image/png")
    assert isinstance(audio, AudioContent)
    assert isinstance(link, ResourceLink)
    assert (link.uri, link.name, link.mime_type) == ("https://example.com/a", "a page", "text/html")
    assert isinstance(table, EmbeddedResource)
    assert isinstance(table.resource, TextResourceContents)
    assert (table.resource.text, table.resource.uri) == ("a,b", "attachment:///my%20table.csv")
    assert isinstance(broken, EmbeddedResource)
    assert isinstance(broken.resource, BlobResourceContents)
    assert isinstance(pdf, EmbeddedResource)
    assert isinstance(pdf.resource, BlobResourceContents)
    assert isinstance(file, TextContent)
    assert "file_1" in file.text


async def test_what_the_model_made_follows_what_it_said(era: str) -> None:
    mine, _ = agent(says("Here.", DataPart(b"\x89PNG", "image/png")), display_name="painter")
    async with connected(server(mine), era) as client:
        said, image = (await client.call_tool("painter", {"prompt": "a cat"})).content
    assert isinstance(said, TextContent)
    assert isinstance(image, ImageContent)


@pytest.mark.parametrize(
    ("output_type", "said", "structured"),
    [
        (City, '{"name": "Bern", "people": 3}', {"name": "Bern", "people": 3}),
        (int, '{"result": 5}', {"result": 5}),
        (list[str], '{"result": ["a"]}', {"result": ["a"]}),
    ],
)
async def test_typed_output_is_structured_content(
    era: str, output_type: Any, said: str, structured: Any
) -> None:
    mine, _ = agent(says(said), display_name="me")
    told = Told()
    async with connected(server(mine, output_type=output_type), era) as client:
        (listed,) = (await client.list_tools()).tools
        result = await client.call_tool("me", {"prompt": "which"}, progress_callback=told)
    assert told.all == []
    assert listed.output_schema is not None
    assert set(listed.output_schema["properties"]) == set(structured)
    assert result.structured_content == structured
    assert not result.is_error


async def test_the_progress_of_a_tool_is_that_of_its_call(era: str) -> None:
    told = Told()
    async with connected(server([add]), era) as client:
        result = await client.call_tool("add", {"a": 1, "b": 2}, progress_callback=told)
    assert told.all == [(1, 2, "half"), (2, 2, None)]
    assert result.structured_content == {"sum": 3}


async def test_the_progress_of_an_agent_is_what_it_says_and_does(era: str) -> None:
    told = Told()
    mine, _ = agent(
        says("First\nI add.", call("add", a=1, b=2)),
        says("It is 3."),
        tools=[add],
        display_name="me",
    )
    async with connected(server(mine), era) as client:
        result = await client.call_tool("me", {"prompt": "1 + 2?"}, progress_callback=told)
    assert told.words == ["First", "I add.", "calls add", "add 1/2: half", "add 2/2", "It is 3."]
    assert [done for done, _, _ in told.all] == [1, 2, 3, 4, 5, 6]
    assert text(result) == "First\nI add.\nIt is 3."


async def test_progress_that_goes_back_is_not_told(era: str) -> None:
    @tool
    async def wander(ctx: ToolContext[Any]) -> None:
        for done in (1, 3, 2, 3, 4):
            await ctx.progress(done)

    told = Told()
    async with connected(server([wander]), era) as client:
        await client.call_tool("wander", {}, progress_callback=told)
    assert [done for done, _, _ in told.all] == [1, 3, 4]


async def test_what_does_not_fit_or_fails_is_an_error_result(era: str) -> None:
    @tool
    def fail() -> None:
        raise ValueError("no luck")

    mine, _ = agent(says("hello"), display_name="me", tools=[add, fail])
    async with connected(server(mine, expose="both"), era) as client:
        wrong = await client.call_tool("add", {"a": "x"})
        failed = await client.call_tool("fail", {})
        empty = await client.call_tool("me", {"prompt": " "})
        missing = await client.call_tool("me", {})
    assert wrong.is_error
    assert "a: " in text(wrong)
    assert "b: is required" in text(wrong)
    assert wrong.structured_content is None
    assert failed.is_error
    assert text(failed) == "no luck"
    assert empty.is_error
    assert missing.is_error
    assert "prompt" in text(missing)


async def test_a_model_that_fails_is_an_error_result_without_the_key(era: str) -> None:
    mine, _ = agent(
        AuthenticationError("the key is wrong"), display_name="me", api_key="sk-very-secret"
    )
    async with connected(server(mine), era) as client:
        result = await client.call_tool("me", {"prompt": "hello"})
    assert result.is_error
    assert "the key is wrong" in text(result)
    assert "sk-very" not in text(result)


async def test_code_of_the_users_that_fails_does_not_tell_the_client_what_it_knows(
    era: str,
) -> None:
    async def broken(_request: Any, _next: Any) -> AsyncIterator[Event]:
        raise RuntimeError("postgres://admin:pw@db")
        yield RunError(AuthenticationError(""))

    async with connected(
        server(Agent("openai:x", middleware=[broken], display_name="me")), era
    ) as client:
        result = await client.call_tool("me", {"prompt": "hello"})
    assert result.is_error
    assert "RuntimeError" in text(result)
    assert "admin" not in text(result)


async def test_calls_run_side_by_side_each_on_its_own(era: str) -> None:
    both = asyncio.Barrier(2)
    seen: list[tuple[str, str]] = []

    @tool
    async def meet(ctx: ToolContext[Any], name: str) -> str:
        await both.wait()
        seen.append((ctx.run_id, ctx.thread_id))
        return name

    async with connected(server([meet]), era) as client:
        results = await asyncio.gather(
            *(client.call_tool("meet", {"name": name}) for name in ("a", "b"))
        )
    assert [text(one) for one in results] == ["a", "b"]
    assert len({run for run, _ in seen}) == 2
    assert len({thread for _, thread in seen}) == 2


class Slow:
    """A tool that never ends by itself."""

    def __init__(self) -> None:
        self.began, self.ended = asyncio.Event(), asyncio.Event()
        self.tool = Tool("wait", handler=self.wait)

    async def wait(self) -> None:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()


@pytest.mark.parametrize("asked", ["wait", "me"])
async def test_a_client_that_cancels_ends_the_run(era: str, asked: str) -> None:
    slow = Slow()
    mine, script = agent(says(call("wait")), says("done"), display_name="me", tools=[slow.tool])
    async with connected(server(mine, expose="both"), era) as client:
        task = asyncio.create_task(
            client.call_tool(asked, {"prompt": "x"} if asked == "me" else {})
        )
        await slow.began.wait()
        task.cancel()
        await slow.ended.wait()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [one.name for one in (await client.list_tools()).tools] == ["me", "wait"]
    assert len(script.requests) == (asked == "me")


async def test_a_client_that_leaves_ends_the_run(era: str) -> None:
    slow = Slow()
    connection = connected(server([slow.tool]), era)
    client = await connection.__aenter__()
    task = asyncio.create_task(client.call_tool("wait", {}))
    await slow.began.wait()
    task.cancel()
    await connection.__aexit__(None, None, None)
    await slow.ended.wait()
    await asyncio.gather(task, return_exceptions=True)


async def test_an_agents_own_orchestrator_is_not_asked_for_a_call_of_a_tool(era: str) -> None:
    class Strange(DefaultStreamingOrchestrator):
        async def initialize(self, state: Any) -> None:
            raise AssertionError("asked")

    mine, _ = agent(says("x"), tools=[add], orchestrator=Strange)
    async with connected(server(mine, expose="tools"), era) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"sum": 3}


async def test_hooks_and_limits_of_the_agent_hold_for_calls_of_its_tools(era: str) -> None:
    ends: list[str] = []
    hooks = Hooks(
        run_end=lambda end: ends.append(end.outcome),
        tool_end=lambda end: ends.append(end.start.call.name),
        model_start=lambda _: ends.append("a model is asked"),
    )
    mine, _ = agent(says("x"), tools=[add], hooks=hooks)
    strict, _ = agent(says("x"), tools=[add], limits=Limits(tool_calls=0))
    async with connected(server(mine, expose="tools"), era) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"sum": 3}
    assert ends == ["add", "success"]
    async with connected(server(strict, expose="tools"), era) as client:
        result = await client.call_tool("add", {"a": 1, "b": 2})
    assert result.is_error
    assert "tool" in text(result)


async def test_the_options_of_runs_may_depend_on_the_request(era: str) -> None:
    @tool
    def whose(ctx: ToolContext[Any]) -> str:
        return f"{ctx.resource_id}: {ctx.deps}"

    served = server([whose], options=lambda request: {"resource_id": request.method, "deps": "d"})
    async with connected(served, era) as client:
        assert text(await client.call_tool("whose", {})) == "tools/call: d"


async def test_a_large_argument_is_an_argument(era: str) -> None:
    @tool
    def length(value: str) -> int:
        return len(value)

    async with connected(server([length]), era) as client:
        assert text(await client.call_tool("length", {"value": "x" * 3_000_000})) == "3000000"


async def test_what_cannot_be_served_is_told_when_the_server_is_made(era: str) -> None:
    with pytest.raises(ToolError, match="two tools are named 'add'"):
        server([add, tool(name="add")(lambda_free)])
    with pytest.raises(TypeError):
        server([3])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        server(3)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="32"):
        server([add], key="short")


WIRES = ("openai_chat", "anthropic", "google", "openai_responses")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire", WIRES)
async def test_an_agent_answers_on_every_wire(era: str, wire: str, stream: bool) -> None:
    model = ScriptedModel(
        [
            Message.model("I add.", call("add", a=1, b=2), call("drop", id="c2", path="x")),
            "It is 3.",
        ],
        wire=wire,
        stream=stream,
    )
    told = Told()
    async with connected(
        server(Agent(model, tools=[add, drop]), name="me"), era, User(DECLINED)
    ) as client:
        result = await client.call_tool("me", {"prompt": "1 + 2?"}, progress_callback=told)
    assert text(result) == "I add.\nIt is 3."
    assert {"I add.", "calls add", "add 1/2: half", "calls drop"} < set(told.words)
    added, dropped = model.requests[1].messages[-1].tool_results
    assert added.result == {"sum": 3} or '{"sum":3}' in str(added.result)
    assert "denied" in str(dropped.result)
    model.assert_exhausted()


async def test_a_toolset_is_entered_while_the_server_is_up_and_asked_at_each_call(era: str) -> None:
    class Changing(Toolset):
        name = "changing"

        def __init__(self) -> None:
            self.tools, self.entered, self.most, self.seen = [add], 0, 0, set[Any]()

        async def list_tools(self, context: ToolContext[Any]) -> list[Tool]:
            self.seen.add(context.deps)
            return [*self.tools, Tool("theirs")]

        async def __aenter__(self) -> Any:
            self.entered += 1
            self.most = max(self.most, self.entered)
            return self

        async def __aexit__(self, *_: object) -> None:
            self.entered -= 1

    mine = Changing()
    async with connected(
        server([mine.prefix("x_"), drop], options={"deps": 7}), era, User(DECLINED)
    ) as client:
        assert mine.entered == 1
        assert [one.name for one in (await client.list_tools()).tools] == ["x_add", "drop"]
        assert (await client.call_tool("x_add", {"a": 1, "b": 2})).structured_content == {"sum": 3}
        mine.tools = []
        with pytest.raises(MCPError, match="'x_add'"):
            await client.call_tool("x_add", {"a": 1, "b": 2})
    assert (mine.entered, mine.most) == (0, 2)
    assert mine.seen == {7}
