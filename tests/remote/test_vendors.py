"""Agents that others wrote, with others' libraries: asked like models, as tools, and one by the
other."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, FinishReason, Message, PartDelta, ToolCallPart, remote_agent, tool
from dragoman.errors import ProviderError
from dragoman.testing import ScriptedModel
from support.apps import AppTransport
from support.sdk_agent import CANCELLED, sdk_app

pytestmark = pytest.mark.anyio

HOST = "sdk.example"
CACHE = Path(__file__).parents[2] / ".cache"
BINDINGS: dict[str, Any] = {
    "jsonrpc": ([("JSONRPC", "1.0")], True),
    "rest": ([("HTTP+JSON", "1.0")], True),
    "0.3": ([("JSONRPC", "0.3")], True),
    "whole": ([("JSONRPC", "1.0")], False),
}


@asynccontextmanager
async def clerk(kind: str) -> AsyncGenerator[tuple[Agent[None], AppTransport]]:
    """The SDK's agent, and one of ours that asks it."""
    bindings, streaming = BINDINGS[kind]
    transport = AppTransport({HOST: sdk_app(f"http://{HOST}/", *bindings, streaming=streaming)})
    yield Agent(f"a2a:http://{HOST}", transport=transport), transport
    await transport.close()


@pytest.mark.parametrize("kind", BINDINGS)
async def test_an_agent_of_the_official_sdk(kind: str) -> None:
    async with clerk(kind) as (agent, transport):
        first = await agent.send("Hello there.")
        assert first.output == "1: Hello there. "
        assert first.finish_reason is FinishReason.stop
        second = await agent.send("And again.", history=first.messages)
        assert second.output == "2: And again. "
        waits = await agent.send("Please pay.", history=[*first.messages, *second.messages])
        [asks] = waits.pending
        assert (asks.reason, asks.message) == ("input", "Shall I pay?")
        history = [*first.messages, *second.messages, *waits.messages]
        done = await agent.send(None, history=history, resume=[asks.answer("yes, do")])
        assert done.output == "4: yes, do "
        assert done.pending == ()
        with pytest.raises(ProviderError, match="on fire"):
            await agent.send("It is broken.")
    methods = [request.method for request in transport.requests]
    assert methods == ["GET", *["POST"] * 5]


@pytest.mark.parametrize("kind", ["jsonrpc", "rest", "0.3"])
async def test_it_streams_and_is_cancelled_when_it_is_left(kind: str) -> None:
    CANCELLED.clear()
    async with clerk(kind) as (agent, _), agent.run("A long story.") as run:
        seen = 0
        async for event in run:
            seen += isinstance(event, PartDelta) and event.delta == "story. "
            if seen == 3:
                break
    assert len(CANCELLED) == 1


async def test_it_is_a_tool_of_an_agent_here() -> None:
    """A hand-off between agents of two vendors: what the one waits for, the other's client is
    asked."""

    def here(request: Any) -> Any:
        results = [r for m in request.messages for r in m.tool_results]
        return (
            str(results[-1].result)
            if results
            else Message.model(ToolCallPart("t1", "clerk", {"prompt": "Please pay."}))
        )

    async with clerk("jsonrpc") as (_, transport):
        agent = Agent(
            ScriptedModel(here),
            tools=[remote_agent(f"http://{HOST}", "clerk", transport=transport)],
        )
        waits = await agent.send("Pay.")
        [asks] = waits.pending
        assert (asks.parent, asks.message) == (("t1",), "Shall I pay?")
        done = await agent.send(None, history=waits.messages, resume=[asks.answer("yes")])
    assert done.output == "2: yes "


@pytest.fixture(scope="module")
def pydantic_ai_url() -> Iterator[str]:
    if not (CACHE / "pydantic_ai" / ".done").exists():
        pytest.skip("pydantic-ai is not installed: make service")
    python = CACHE / "pydantic_ai" / "bin" / "python"
    program = Path(__file__).with_name("pydantic_ai_app.py")
    with subprocess.Popen([python, program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


@pytest.mark.service
async def test_an_agent_of_pydantic_ai(pydantic_ai_url: str) -> None:
    """Its own tool, a tool of this side, three turns; then the SDK's agent hears of it."""

    @tool
    def weather(city: str) -> str:
        """The weather of a city."""
        return f"sun over {city}"

    async with Agent(f"ag-ui:{pydantic_ai_url}", tools=[weather]) as agent:
        first = await agent.send("Please roll.")
        assert first.output == "Asked 1 times. {'roll': 4}"
        second = await agent.send("Now the weather.", history=first.messages)
        assert second.output == "Asked 2 times. {'weather': 'sun over Rome'}"
        history = [*first.messages, *second.messages]
        third = await agent.send("And then?", history=history)
        assert third.output == "Asked 3 times. {}"
    async with clerk("jsonrpc") as (other, _):
        heard = await other.send("What did it say?", history=[*history, *third.messages])
    assert "sun over Rome" in heard.output
    assert "What did it say?" in heard.output


@pytest.mark.slow
def test_none_of_it_is_ours() -> None:
    program = "import sys; sys.path.insert(0, 'tests'); import support.sdk_agent; print('dragoman' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "False"
