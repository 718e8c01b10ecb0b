"""An agent with tools of an MCP server, on each provider's wire, streamed and whole."""

from __future__ import annotations

import pytest

from dragoman import Agent, DataPart
from dragoman.mcp import mcp
from dragoman.message import Content, ToolResultPart
from dragoman.request import ModelRequest
from dragoman.testing import ScriptedModel
from dragoman.testing import call as calls
from support import mcp_server
from support.net import NAMES as WIRES

pytestmark = pytest.mark.anyio


def files(request: ModelRequest) -> list[bytes]:
    """The files in a request, those in results too."""
    found: list[Content] = [piece for message in request.messages for piece in message.content]
    for piece in list(found):
        if isinstance(piece, ToolResultPart) and piece.is_content:
            found += piece.result
    return [piece.data for piece in found if isinstance(piece, DataPart)]


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_tool_is_offered_and_run_and_its_results_go_back(wire: str, stream: bool):
    turn = [
        calls("add", a=1, b=2),
        calls("mixed", fails=True),
        calls("point", x=1, y=2),
        calls("picture"),
    ]
    model = ScriptedModel.like(WIRES[wire], [turn, "Done."], stream=stream)
    async with Agent(model, tools=[mcp(mcp_server.server())]) as agent:
        result = await agent.send("Go.")
    assert result.output == "Done."
    offered = {tool.name: tool for tool in model.requests[0].tools}
    assert offered["add"].description == "Adds."
    assert offered["add"].input_schema["required"] == ["a", "b"]
    results = {one.name: one for message in result.messages for one in message.tool_results}
    assert results["add"].result == "3"
    assert results["mixed"].is_error
    assert results["point"].result == {"x": 1, "y": 2}
    assert results["picture"].result == (DataPart(mcp_server.PIXEL, "image/png"),)
    assert files(model.requests[1]).count(mcp_server.PIXEL) == 2
    sent = model.sent[1].body
    assert b"memo://2" in (sent if isinstance(sent, bytes) else str(sent).encode())
