"""llama.cpp, with the embedded model, behind a gateway: a client of each API gets text, streams and
tool calls of a real model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from dragoman import ModelRequest, ToolSpec, fold, serve, wires
from dragoman.event import Event, RunError
from dragoman.message import FinishReason, Message
from dragoman.request import Settings
from support.asgi import exchange

pytestmark = [pytest.mark.anyio, pytest.mark.service, pytest.mark.timeout(180)]
WIRES = wires.names("model")
BASES = {
    "google": "/v1beta",
    "mistral": "/mistral/v1",
    "ollama": "",
    "cohere": "/v2",
    "bedrock_converse": "",
}
"""Where the wires' paths begin, where that is not `/v1`."""
TOOL = ToolSpec(
    "weather",
    "The weather of a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}},
)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def app(anyio_backend: str) -> AsyncIterator[Any]:
    made = serve.app(gateway=serve.Gateway({"m": "local"}))
    async with made.router.lifespan_context(made):
        yield made


async def asked(app: Any, wire: str, *, stream: bool = False, **how: Any) -> list[Event]:
    """A question by a client of that API → what it reads."""
    request = ModelRequest("m", (Message.user("Say hello."),), stream=stream, **how)
    http = wires.get(wire).dump_http(request)
    path = f"{BASES.get(wire, '/v1')}{http.path}"
    answer = await exchange(app, "POST", path, http.body, headers=dict(http.headers))
    assert answer.status == 200, (path, answer.body[:500])
    decoder = wires.get(wire).decoder()
    events = [*decoder.feed(answer.body), *decoder.close()]
    assert not [event for event in events if isinstance(event, RunError)], answer.body[-500:]
    return events


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_client_of_each_api_hears_the_model(app: Any, wire: str, stream: bool) -> None:
    [message] = fold(
        await asked(app, wire, stream=stream, settings=Settings(max_tokens=12, seed=1))
    )
    assert message.text.strip()
    assert message.finish_reason in (FinishReason.stop, FinishReason.length)
    assert message.usage is None or (message.usage.output_tokens or 1) > 0


@pytest.mark.parametrize("wire", WIRES)
async def test_a_clients_tool_is_called(app: Any, wire: str) -> None:
    """The embedded model calls a tool for whatever it is asked."""
    [message] = fold(
        await asked(app, wire, tools=(TOOL,), settings=Settings(max_tokens=200, seed=1))
    )
    assert [call.name for call in message.tool_calls] == ["weather"]
    assert message.finish_reason is FinishReason.tool_calls
