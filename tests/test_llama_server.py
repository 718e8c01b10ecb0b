"""llama.cpp's own server, which nobody here wrote: the same conversation with tools over its two endpoints, streamed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from dragoman import Agent, Message, ToolCallPart, ToolResultPart, fold, providers, tool
from dragoman.errors import ContextLengthError, SettingsError
from dragoman.message import FinishReason, Role
from dragoman.providers.local import base_url
from dragoman.providers.local_models import DEFAULT
from dragoman.request import Settings

pytestmark = [pytest.mark.anyio, pytest.mark.service, pytest.mark.timeout(180)]


@pytest.fixture(params=["openai_chat", "anthropic"])
async def agent(request: pytest.FixtureRequest) -> AsyncIterator[Agent[Any]]:
    """An agent that reaches the embedded server by one of its wires, as it would any other server."""
    try:
        url = await base_url(DEFAULT)
    except SettingsError as missing:
        pytest.skip(f"no embedded model here: {missing}")
    kind = "llamacpp" if request.param == "openai_chat" else "anthropic"
    provider = msgspec.structs.replace(providers.get(kind), base_url=url, chat_model=DEFAULT)
    settings = Settings(temperature=0.0, max_tokens=24)
    async with Agent(provider, api_key="none", tools=[get_weather], settings=settings) as a:
        yield a


@tool
async def get_weather(city: str) -> str:
    """Tells the weather in a city."""
    return f"It is raining in {city}."


async def test_a_conversation_with_tools_goes_on(agent: Agent[Any]) -> None:
    history = [
        Message.user("What is the weather in Oslo?"),
        Message.model("I will look.", ToolCallPart("call_1", "get_weather", {"city": "Oslo"})),
        Message.user(ToolResultPart("call_1", "get_weather", "It is raining in Oslo.")),
    ]
    async with agent.run(None, history=history) as run:
        events = [event async for event in run]
        result = await run.result()
    assert tuple(fold(events)) == result.messages
    assert result.messages[0].role is Role.MODEL
    assert result.output
    assert result.finish_reason in (FinishReason.stop, FinishReason.length)
    assert result.usage is not None
    assert result.usage.input_tokens
    assert result.usage.output_tokens


async def test_it_streams(agent: Agent[Any]) -> None:
    chunks = [chunk.output async for chunk in agent.send_stream("Count from one to ten.") if chunk.output]
    assert len(chunks) > 3


async def test_a_conversation_that_is_too_long_is_named_so(agent: Agent[Any]) -> None:
    with pytest.raises(ContextLengthError):
        await agent.send("word " * 40_000)
