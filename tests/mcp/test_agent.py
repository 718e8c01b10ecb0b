"""Agents with MCP servers: approval in another process, names that meet, changes between steps,
synchronous calls."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dragoman import Agent, dump_messages, load_messages
from dragoman.errors import SettingsError, ToolError
from dragoman.mcp import hints, mcp
from dragoman.testing import ScriptedModel
from dragoman.testing import call as calls
from support import mcp_program, mcp_server


def program(log: Path) -> list[str]:
    return [sys.executable, "-S", mcp_program.__file__, str(log)]


@pytest.mark.anyio
async def test_a_call_that_was_approved_runs_in_another_process(tmp_path: Path):
    def agent() -> Agent[None]:
        server = mcp(
            program(tmp_path / "log"),
            requires_approval=lambda tool: not hints(tool).idempotent_hint,
        )
        return Agent(model, tools=[server])

    model = ScriptedModel([calls("add", a=1, b=2), "Three."])
    first = await agent().send("Add.")
    assert not (tmp_path / "log").exists()
    (wait,) = first.pending
    assert wait.reason == "approval"
    history = load_messages(dump_messages(first.messages))
    result = await agent().send(None, history=history, resume=[wait.approve()])
    assert result.output == "Three."
    assert (tmp_path / "log").read_text() == "add\n"


@pytest.mark.anyio
async def test_two_servers_with_tools_of_one_name_are_both_named():
    agent = Agent(
        ScriptedModel(["Hi."]), tools=[mcp(mcp_server.server("one")), mcp(mcp_server.server("two"))]
    )
    with pytest.raises(ToolError, match=r"'add'.* one .*two"):
        await agent.send("Hi.")
    apart = [mcp(mcp_server.server("one"), prefix="a_"), mcp(mcp_server.server("two")).prefix("b_")]
    model = ScriptedModel([[calls("a_add", a=1, b=2), calls("b_add", a=2, b=2)], "Done."])
    result = await Agent(model, tools=apart).send("Add.")
    assert [one.result for message in result.messages for one in message.tool_results] == ["3", "4"]


@pytest.mark.anyio
async def test_a_tool_that_is_added_is_offered_in_the_next_step():
    model = ScriptedModel([calls("more_tools"), calls("slow", seconds=0), "Done."])
    await Agent(model, tools=[mcp(mcp_server.server(), protocol="legacy")]).send("Go.")
    assert "extra" not in {tool.name for tool in model.requests[0].tools}
    assert "extra" in {tool.name for tool in model.requests[2].tools}


@pytest.mark.anyio
async def test_a_server_that_cannot_be_listed_ends_the_run():
    agent = Agent(ScriptedModel(["Hi."]), tools=[mcp("dragoman-has-no-such-program", name="clock")])
    with pytest.raises(ToolError, match="clock"):
        await agent.send("Hi.")


def test_it_works_from_synchronous_code(tmp_path: Path):
    model = ScriptedModel([calls("add", a=1, b=2), "Three.", calls("add", a=1, b=2), "Three."])
    with Agent(model, tools=[mcp(program(tmp_path / "log"))]) as agent:
        assert agent.send_sync("Add.").output == "Three."
        assert agent.send_sync("Add.").output == "Three."
    assert (tmp_path / "log").read_text() == "add\nadd\n"


def test_the_library_is_loaded_when_it_is_needed():
    code = "import sys; from dragoman.mcp import mcp; mcp('x'); assert not {'mcp', 'pydantic', 'httpx2'} & {*sys.modules}"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.anyio
async def test_without_the_library_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch):
    for name in [
        name for name in sys.modules if name == "mcp" or name.startswith(("mcp.", "dragoman.mcp."))
    ]:
        if name not in (
            "dragoman.mcp.toolset",
            "dragoman.mcp.options",
            "dragoman.mcp.sessions",
            "dragoman.mcp.toolset",
        ):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(SettingsError, match=r"pip install '\.\[mcp\]' in "):
        await mcp("x").list_tools()
