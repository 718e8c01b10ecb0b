"""An API's tools in runs: on four wires, streamed and whole."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

import pytest

from dragoman import Agent, ToolCallPart, wires
from dragoman.event import Event
from dragoman.openapi import openapi
from dragoman.request import ModelRequest
from dragoman.testing import ScriptedServer
from support.model import says
from support.net import NAMES as WIRES
from support.openapi import document, json_body, operation, parameter, serving

pytestmark = pytest.mark.anyio
NODE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "next": {"$ref": "#/components/schemas/Node"}},
}
DOCUMENT = document(
    {
        "/echo/{id}": {
            "parameters": [parameter("id", "path")],
            "put": operation(
                parameter("X-Dry", "header", {"type": "boolean"}),
                operationId="nodes.put",
                requestBody=json_body({"$ref": "#/components/schemas/Node"}),
            ),
        }
    },
    components={
        "schemas": {"Node": NODE},
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
    },
    security=[{"key": []}],
)


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    with serving() as (url, _):
        yield url


async def whole(request: ModelRequest, next: Any) -> AsyncIterator[Event]:
    """A middleware that asks for the answer in one piece."""
    async with aclosing(next(request.replace(stream=False))) as events:
        async for event in events:
            yield event


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("layers", [(), (whole,)], ids=["streamed", "whole"])
async def test_a_model_calls_an_api_whose_key_it_never_sees(
    base_url: str, wire: str, layers: tuple[Any, ...]
) -> None:
    arguments = {"id": "a b", "X-Dry": True, "body": {"name": "x", "next": {"name": "y"}}}
    answers = [says(ToolCallPart("c1", "api.nodes.put", arguments)), says("Done.")]
    server = ScriptedServer(wires.get(wire), lambda _: answers.pop(0))
    tools = openapi(DOCUMENT, base_url=base_url, api_key=lambda context: context.deps).prefix(
        "api."
    )
    async with Agent(
        f"{WIRES[wire]}:m", transport=server, api_key="none", tools=[tools], middleware=layers
    ) as agent:
        result = await agent.send("hi", deps="sesame")
    assert result.output == "Done."
    got = result.messages[2].tool_results[0].result
    assert (got["method"], got["path"], got["body"]) == (
        "PUT",
        "/echo/a%20b",
        '{"name":"x","next":{"name":"y"}}',
    )
    assert (got["headers"]["x-dry"], got["headers"]["x-key"]) == ("true", "sesame")
    told = [str(one.body) for one in server.sent]
    assert not any("X-Key" in each for each in told)
    assert "sesame" not in told[0]
    assert "next" in told[0]
