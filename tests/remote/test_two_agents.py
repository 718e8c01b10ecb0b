"""The seeds' two agents (T-72: a weather agent and a personal assistant), as users run them: three
programs' worth over sockets."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from dragoman import Message, ModelRequest, ToolCallPart
from dragoman.request import ToolSpec
from support.llm_server import Llm

EXAMPLE = Path(__file__).parents[2] / "examples" / "two_agents.py"


def reply(request: ModelRequest) -> Message:
    """Both agents' model: it does with its tools what it is asked for."""
    tools = [tool.name for tool in request.tools if isinstance(tool, ToolSpec)]
    results = [
        str(result.result) for message in request.messages for result in message.tool_results
    ]
    if tools == ["weather"]:
        return Message.model(
            results[-1] if results else ToolCallPart("w1", "weather", {"city": "Oslo"})
        )
    steps: list[Any] = [
        ToolCallPart("f1", "forecaster", {"prompt": "Oslo?"}),
        ToolCallPart("n1", "note", {"text": results[0]}) if results else "",
        "; ".join(results),
    ]
    return Message.model(steps[len(results)])


def test_an_assistant_asks_another_agent_and_its_client_approves(
    llm: Llm, capsys: pytest.CaptureFixture[str]
) -> None:
    """T-60 to T-70 in one conversation: cards, streamed tasks, a task that waits for its client, a
    hand-off by URL."""
    llm.reply = reply
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        "approved: note",
        "18 degrees and sun in Oslo; noted: 18 degrees and sun in Oslo",
    ]
    assert len(llm.requests) == 5
