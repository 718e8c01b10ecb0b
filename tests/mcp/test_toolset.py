"""Tools of MCP servers as agents have them: what is listed, what is called, what comes back (D-160
to D-163)."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from dragoman import DataPart, LinkPart, TextPart, ToolContext
from dragoman.errors import SettingsError, ToolError
from dragoman.mcp import MCPToolset, ToolHints, hints, mcp
from support import mcp_program, mcp_server

pytestmark = pytest.mark.anyio
PROTOCOLS = ["auto", "legacy"]


@pytest.fixture(params=PROTOCOLS)
def server(request: pytest.FixtureRequest) -> MCPToolset:
    """A server in this process, of the protocol's version of today and of before."""
    return mcp(mcp_server.server(), protocol=request.param)


async def test_tools_keep_their_names_descriptions_and_schemas(server: MCPToolset):
    async with server:
        tools = {tool.name: tool for tool in await server.list_tools()}
    assert tools["add"].description == "Adds."
    assert tools["add"].input_schema["properties"].keys() == {"a", "b"}
    assert tools["add"].idempotent
    assert not tools["fail"].idempotent
    assert hints(tools["add"]) == ToolHints(
        title="Add two numbers", read_only_hint=True, destructive_hint=False
    )
    assert hints(tools["fail"]) == ToolHints()


async def test_d161_a_name_goes_before_descriptions_and_a_prefix_before_names():
    server = mcp(mcp_server.server(), name="calc", prefix="c_")
    async with server:
        tools = {tool.name: tool for tool in await server.list_tools()}
        assert tools["c_add"].description == "calc: Adds."
        assert await tools["c_add"].run(call("c_add", a=1, b=2), ToolContext(None)) == "3"


def call(name: str, **arguments: Any) -> Any:
    from dragoman import ToolCallPart

    return ToolCallPart("1", name, arguments)


async def test_the_same_tools_are_the_same_objects(server: MCPToolset):
    async with server:
        before = await server.list_tools()
        assert all(a is b for a, b in zip(before, await server.list_tools(), strict=True))
    async with server:  # a new session
        assert all(a is b for a, b in zip(before, await server.list_tools(), strict=True))


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_change_of_the_list_shows(protocol: str):
    async with mcp(mcp_server.server(), protocol=protocol) as server:
        names = {tool.name for tool in await server.list_tools()}
        assert "extra" not in names
        await server.call_tool("more_tools")
        async with asyncio.timeout(30):
            while "extra" not in {tool.name for tool in await server.list_tools()}:  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0.01)
        assert await server.call_tool("extra") == "extra"


async def test_arguments_are_checked_before_they_are_sent(server: MCPToolset):
    async with server:
        tools = {tool.name: tool for tool in await server.list_tools()}
        with pytest.raises(ToolError, match="b: is required"):
            await tools["add"].run(call("add", a=1), ToolContext(None))


async def test_results_are_text_json_or_parts(server: MCPToolset):
    async with server:
        assert await server.call_tool("add", {"a": 1, "b": 2}) == "3"
        assert await server.call_tool("point", {"x": 1, "y": 2}) == {"x": 1, "y": 2}
        assert await server.call_tool("words") == ["a", "b"]
        assert await server.call_tool("nothing") == {}
        assert await server.call_tool("picture") == (DataPart(mcp_server.PIXEL, "image/png"),)


async def test_everything_in_a_result_is_kept(server: MCPToolset):
    async with server:
        text, image, audio, memo, data, link, other, structured = await server.call_tool("mixed")
    assert (text, image) == (TextPart("look"), DataPart(mcp_server.PIXEL, "image/png"))
    assert audio == DataPart(b"RIFF", "audio/wav")
    assert memo == TextPart("a memo", {"mcp": {"uri": "memo://1", "mimeType": "text/plain"}})
    assert data == DataPart(
        b"\0\1", "application/octet-stream", "data.bin", {"mcp": {"uri": "file:///x/data.bin"}}
    )
    assert link == LinkPart("https://example.com/a.png", "image/png", "pic")
    assert other.text == "memo://2 (The memo, more)"
    assert other.native["mcp"]["uri"] == "memo://2"
    assert structured == TextPart('{"n":1}')


async def test_an_error_keeps_its_parts(server: MCPToolset):
    async with server:
        with pytest.raises(ToolError, match="look") as failed:
            await server.call_tool("mixed", {"fails": True})
        assert failed.value.content[1] == DataPart(mcp_server.PIXEL, "image/png")
        with pytest.raises(ToolError, match="no luck") as failed:
            await server.call_tool("fail")
        assert failed.value.content is None
        with pytest.raises(ToolError, match=r"Unknown tool|not found|unknown"):
            await server.call_tool("there_is_none")


async def test_results_are_bounded():
    server = mcp(mcp_server.server(), max_result=1000)
    async with server:
        assert len(await server.call_tool("big", {"size": 1000})) == 1000
        with pytest.raises(ToolError, match="1,001 bytes"):
            await server.call_tool("big", {"size": 1001})


async def test_resources_are_listed_and_read_as_parts(server: MCPToolset):
    async with server:
        listed = {one.uri: one for one in await server.list_resources()}
        hello = listed["memo://hello"]
        assert (hello.name, hello.title, hello.mime_type) == ("hello", "Hello", "text/plain")
        (text,) = await server.read_resource("memo://hello")
        assert text == TextPart("hello", {"mcp": {"uri": "memo://hello", "mimeType": "text/plain"}})
        (image,) = await server.read_resource("memo://pixel")
        assert (image.data, image.mime_type) == (mcp_server.PIXEL, "image/png")
        (template,) = await server.list_resource_templates()
        assert template.uri == "memo://user/{who}"
        with pytest.raises(ToolError, match="memo://none"):
            await server.read_resource("memo://none")


async def test_prompts_are_messages(server: MCPToolset):
    async with server:
        (prompt,) = await server.list_prompts()
        assert (prompt.name, prompt.title) == ("review", "Review")
        assert [(one.name, one.required) for one in prompt.arguments] == [
            ("code", True),
            ("style", False),
        ]
        (message,) = await server.prompt("review", code="x = 1")
        assert (message.role, message.text) == ("user", "Review this, kind: x = 1")
        with pytest.raises(ToolError):
            await server.prompt("review")


async def test_whether_a_call_needs_approval_may_depend_on_the_tool():
    server = mcp(mcp_server.server(), requires_approval=lambda tool: not hints(tool).read_only_hint)
    async with server:
        tools = {tool.name: tool for tool in await server.list_tools()}
    assert not tools["add"].requires_approval
    assert tools["fail"].requires_approval is True


@pytest.mark.parametrize(
    ("server", "options", "words"),
    [
        ("", {}, "needs a command"),
        ([], {}, "needs a command"),
        ("run 'it", {}, "no command line"),
        ("run it", {"headers": {"a": "b"}}, "with env="),
        ("https://example.com", {"env": {"a": "b"}}, "headers="),
        ("https://example.com", {"cwd": "/tmp"}, "headers="),
    ],
)
def test_settings_that_do_not_fit_are_refused(server: Any, options: dict[str, Any], words: str):
    with pytest.raises(SettingsError, match=words):
        mcp(server, **options)


@pytest.mark.parametrize(
    ("server", "name"),
    [
        ("npx -y @scope/server --token=s3cret", "npx server"),
        (["/usr/bin/python", "-m", "thing", "s3cret"], "python thing"),
        ("https://user:s3cret@example.com/mcp?key=s3cret", "example.com"),
    ],
)
def test_no_key_stands_in_what_errors_call_a_server(server: Any, name: str):
    assert mcp(server).name == name


async def test_a_program_that_is_not_there_is_said_so():
    with pytest.raises(ToolError, match="dragoman-has-no-such-program"):
        await mcp("dragoman-has-no-such-program").list_tools()


async def test_what_a_program_wrote_last_is_in_the_error():
    with pytest.raises(ToolError, match="no config here"):
        await mcp([sys.executable, "-c", "import sys; sys.exit('no config here')"]).list_tools()


@pytest.mark.slow
async def test_a_program_that_does_not_answer_is_given_up():
    with pytest.raises(ToolError, match=r"did not answer within 0\.5 seconds"):
        await mcp(
            [sys.executable, "-c", "import sys; sys.stdin.read()"], connect_timeout=0.5
        ).list_tools()


async def test_a_program_gets_few_variables_of_ours(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "s3cret")
    async with mcp([sys.executable, "-S", mcp_program.__file__], env={"MINE": "yes"}) as server:
        assert await server.call_tool("environment", {"name": "OPENAI_API_KEY"}) == "(not set)"
        assert await server.call_tool("environment", {"name": "MINE"}) == "yes"
