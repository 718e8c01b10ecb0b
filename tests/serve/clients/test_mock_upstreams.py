"""Gateways before aimock, a mock of providers that nobody here wrote, for clients of all wires:
text, tools, and its faults."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import product
from typing import Any

import pytest

from dragoman import Message, ToolResultPart, serve
from dragoman.errors import DragomanError, RateLimitError
from dragoman.event import Event, RunError
from dragoman.fold import fold
from dragoman.message import FinishReason
from dragoman.model import ChatModel
from dragoman.model.middleware import Next
from dragoman.request import ModelRequest, ToolSpec
from dragoman.transport import AiohttpTransport
from support.aimock import Aimock, aimock
from support.gateway import MODEL, AsgiTransport, answered, client_of
from support.switching import PROVIDERS

pytestmark = [pytest.mark.anyio, pytest.mark.service]

KEY = "sk-upstream-secret"
UPSTREAMS = {
    "openai:gpt-4o": "v1",
    "openai-responses:gpt-5": "v1",
    "anthropic:claude-sonnet-4-6": "v1",
    "google:gemini-3.5-flash": "v1beta",
    "ollama:qwen3": "",
    "cohere:command-a-03-2025": "v2",
}
"""Model string → where its API stands below aimock's root."""
PAIRS = pytest.mark.parametrize(("client", "upstream"), list(product(PROVIDERS, UPSTREAMS)))
TOOL = ToolSpec(
    "get_weather", "Weather.", {"type": "object", "properties": {"location": {"type": "string"}}}
)
CUT = "This answer is never finished, because the line goes dead long before its end, which nobody will ever read."


@pytest.fixture(scope="module")
def server() -> Iterator[Aimock]:
    with aimock() as running:
        yield running


def whole(request: ModelRequest, following: Next) -> AsyncIterator[Event]:
    """Sends the whole conversation: aimock takes `previous_response_id`, and knows nothing of what
    it names."""
    return following(request.replace(options={"store": False}, wire="openai_responses"))


@asynccontextmanager
async def before(
    server: Aimock, client: str, upstream: str
) -> AsyncGenerator[tuple[ChatModel, AsgiTransport]]:
    """A client of a wire, at a gateway that asks aimock once for each request."""
    provider = upstream.partition(":")[0]
    network = AiohttpTransport()
    place = f"{server.url}/{UPSTREAMS[upstream]}".rstrip("/")
    gateway = serve.Gateway(
        {MODEL: upstream},
        base_urls={provider: place},
        keys={provider: KEY},
        transport=network,
        retries=0,
        middleware=[whole] if provider == "openai-responses" else [],
    )
    server.chaos()
    try:
        yield client_of(client, serve.app(gateway=gateway))
    finally:
        server.chaos()
        await network.close()


def asked(*messages: Message, stream: bool, tools: tuple[ToolSpec, ...] = ()) -> ModelRequest:
    return ModelRequest(MODEL, messages, tools, stream=stream)


@PAIRS
async def test_text_and_parallel_calls(server: Aimock, client: str, upstream: str) -> None:
    async with before(server, client, upstream) as (model, transport):
        for stream in (False, True):
            [hello] = fold(await answered(model, asked(Message.user("hello"), stream=stream)))
            assert hello.text == "Hello there, friend!"
            assert hello.finish_reason is FinishReason.stop
            question = Message.user("What is the weather?")
            [first] = fold(await answered(model, asked(question, stream=stream, tools=(TOOL,))))
            assert [call.arguments for call in first.tool_calls] == [
                {"location": "Oakland"},
                {"location": "Bergen"},
            ]
            assert len({call.id for call in first.tool_calls}) == 2
            results = Message.user(
                *[ToolResultPart(call.id, call.name, "sunny") for call in first.tool_calls]
            )
            [last] = fold(
                await answered(model, asked(question, first, results, stream=stream, tools=(TOOL,)))
            )
            assert last.text == "It is sunny, 72F."
        assert transport.statuses == [200] * 6


@PAIRS
async def test_a_line_that_goes_dead_is_an_error_after_what_came(
    server: Aimock, client: str, upstream: str
) -> None:
    async with before(server, client, upstream) as (model, transport):
        events = await answered(model, asked(Message.user("cut"), stream=True))
    assert isinstance(events[-1], RunError)
    text = "".join(message.text for message in fold(events[:-1]))
    assert text
    assert CUT.startswith(text)
    assert KEY.encode() not in transport.bodies[0]


@PAIRS
@pytest.mark.parametrize("fault", ["dropRate", "disconnectRate", "rateLimitRate", "malformedRate"])
async def test_faults_come_as_errors_of_the_clients_wire(
    server: Aimock, client: str, upstream: str, fault: str
) -> None:
    for stream in (False, True):
        async with before(server, client, upstream) as (model, transport):
            server.chaos(**{fault: 1.0})
            events = await answered(model, asked(Message.user("hello"), stream=stream))
        [failed] = [event for event in events if isinstance(event, RunError)]
        error: Any = failed.error
        assert events[-1] is failed
        assert isinstance(error, DragomanError)
        assert not [
            word for word in (KEY, server.url, "127.0.0.1:") if word.encode() in transport.bodies[0]
        ]
        if fault == "rateLimitRate":
            assert isinstance(error, RateLimitError)
            assert transport.statuses == [429]
            assert int(transport.headers[0]["retry-after"]) > 0
        else:
            assert transport.statuses[0] >= 500
