"""llama.cpp's own server, which nobody here wrote: the same conversation with tools over its three
endpoints, streamed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from dragoman import Agent, Capability, Message, ToolCallPart, ToolResultPart, fold, providers, tool
from dragoman.errors import ContextLengthError, SettingsError
from dragoman.message import FinishReason, Role
from dragoman.providers.embedded import SERVERS
from dragoman.providers.local import base_url
from dragoman.providers.local_models import DEFAULT
from dragoman.request import Settings
from dragoman.wires.openai_responses import Quirks

pytestmark = [pytest.mark.anyio, pytest.mark.service, pytest.mark.timeout(180)]


RECORDS = {
    "openai_chat": providers.get("llamacpp"),
    "openai_responses": msgspec.structs.replace(
        providers.get("openai-responses"),
        quirks=Quirks(links=False, plain_thinking=True, listed=True),
    ),
    "anthropic": providers.get("anthropic"),
}
"""Wire → a record for this server, as a user would write it."""


@pytest.fixture(params=["openai_chat", "openai_responses", "anthropic"])
async def agent(request: pytest.FixtureRequest) -> AsyncIterator[Agent[Any]]:
    """An agent that reaches the embedded server by one of its wires, as it would any other
    server."""
    try:
        url = await base_url(DEFAULT)
    except SettingsError as missing:
        pytest.skip(f"no embedded model here: {missing}")
    provider = msgspec.structs.replace(RECORDS[request.param], base_url=url, chat_model=DEFAULT)
    settings = Settings(temperature=0.0, max_tokens=24)
    async with Agent(provider, api_key=SERVERS.key, tools=[get_weather], settings=settings) as a:
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
    chunks = [
        chunk.output async for chunk in agent.send_stream("Count from one to ten.") if chunk.output
    ]
    assert len(chunks) > 3


async def test_a_conversation_that_is_too_long_is_named_so(agent: Agent[Any]) -> None:
    with pytest.raises(ContextLengthError):
        await agent.send("word " * 40_000)


async def test_a_conversation_with_a_real_call_goes_on_over_every_endpoint(
    agent: Agent[Any],
) -> None:
    """The model calls the tool by constrained decoding, which the server's chat endpoint knows
    alone; the rest of the conversation is streamed over the others."""
    url = await base_url(DEFAULT)
    able = frozenset({Capability.chat, Capability.typed_output})
    calling = msgspec.structs.replace(
        RECORDS["openai_chat"],
        base_url=url,
        chat_model=DEFAULT,
        capabilities=able,
        headers={"authorization": f"Bearer {SERVERS.key}"},
    )
    first = await agent.send("What is the weather in Oslo?", model=calling)
    [call] = first.messages[1].tool_calls
    assert (call.name, call.arguments) == ("get_weather", {"city": "Oslo"})
    chunks = [
        chunk
        async for chunk in agent.send_stream("And what should I wear?", history=first.messages)
    ]
    said = "".join(chunk.output for chunk in chunks)
    assert said
    assert [
        message.text for chunk in chunks for message in chunk.messages if message.role is Role.MODEL
    ] == [said]
    assert (
        sum(chunk.usage.input_tokens or 0 for chunk in chunks if chunk.usage) > 40
    )  # the whole conversation was read


async def test_its_models_are_listed(agent: Agent[Any]) -> None:
    [model] = await agent.list_models()
    assert model.name.startswith(DEFAULT)
    assert model.kinds == ("chat",)
