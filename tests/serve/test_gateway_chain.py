"""A gateway before a gateway: what a provider signed comes back to it through both, though neither
keeps anything."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from dragoman import Message, ToolCallPart, ToolResultPart, serve
from dragoman.fold import fold
from dragoman.message import TextPart
from dragoman.providers.provider import Provider
from dragoman.request import ModelRequest, ToolSpec
from dragoman.testing import ScriptedModel
from support.gateway import MODEL, AsgiTransport, answered, client_of
from support.gateway_cases import thought
from support.switching import PROVIDERS

pytestmark = pytest.mark.anyio

TOOLS = (ToolSpec("look"),)
SIGNATURE = "c2lnbmVk"
ROUNDS = 3
CHAINS: Sequence[tuple[str, ...]] = [
    ("openai_chat", "openai_chat", "anthropic"),
    ("openai_responses", "openai_responses", "google"),
    ("anthropic", "anthropic", "google"),
    ("google", "google", "anthropic"),
    ("openai_chat", "anthropic", "google"),
    ("anthropic", "openai_chat", "google"),
    ("anthropic", "anthropic", "anthropic", "google"),
    ("anthropic", "google", "google", "openai_chat", "anthropic"),
]
"""Wires: the client's, those between the gateways, the provider's."""


def signed(wire: str, request: Any) -> Message:
    """A round of a provider's, until there were enough."""
    done = sum(bool(message.tool_results) for message in request.messages)
    if done == ROUNDS:
        return Message.model("Done.")
    return Message.model(
        thought(wire), TextPart(f"Round {done}."), ToolCallPart(f"call_{done}", "look", {})
    )


def gateway(model: Provider, key: int, **how: Any) -> Any:
    made = serve.Gateway({MODEL: model}, seal_key=bytes([65 + key]) * 32, **how)
    return serve.app(gateway=made, store=None)


def chained(wires: Sequence[str], *, one_key: bool = False) -> tuple[ScriptedModel, Any]:
    """The provider at the end of a chain, and the application at its beginning. `one_key`: all
    gateways have the same."""
    upstream = ScriptedModel.like(
        PROVIDERS[wires[-1]], lambda asked: signed(wires[-1], asked), key_required=False
    )
    app = gateway(upstream, 0)
    for number, wire in enumerate(reversed(wires[1:-1]), 1):
        base = client_of(wire, app)[0].provider.base_url
        known = PROVIDERS[wire]
        record = Provider(
            name="before",
            display_name="Before",
            wire=wire,
            base_url=base,
            quirks=known.quirks,
            chat_model=MODEL,
            key_required=False,
            capabilities=known.capabilities,
        )
        app = gateway(record, 0 if one_key else number, transport=AsgiTransport(app))
    return upstream, app


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("one_key", [False, True], ids=["keys", "one key"])
@pytest.mark.parametrize("wires", CHAINS, ids="-".join)
async def test_signatures_come_back_through_all(
    wires: Sequence[str], one_key: bool, stream: bool
) -> None:
    upstream, app = chained(wires, one_key=one_key)
    client, _ = client_of(wires[0], app)
    talk = [Message.user("Look.")]
    for _ in range(ROUNDS + 1):
        [answer] = fold(
            await answered(client, ModelRequest(MODEL, tuple(talk), TOOLS, stream=stream))
        )
        results = [ToolResultPart(call.id, call.name, "done") for call in answer.tool_calls]
        talk += [answer, *([Message.user(*results)] if results else [])]
    assert talk[-1].text == "Done."
    bodies = [json.dumps(body) for body in upstream.bodies]
    assert [body.count(SIGNATURE) for body in bodies] == list(range(ROUNDS + 1))
    assert not any("dragoman" in body for body in bodies)


async def test_a_token_of_another_gateways_goes_to_no_provider() -> None:
    """It is within the token of the gateway that gave it, which opens beside its own words
    alone."""
    upstream, app = chained(("anthropic", "anthropic", "google"))
    client, _ = client_of("anthropic", app)
    [answer] = fold(await answered(client, ModelRequest(MODEL, (Message.user("Look."),), TOOLS)))
    changed = answer.replace(
        content=tuple(
            [
                TextPart("Other.") if isinstance(piece, TextPart) else piece
                for piece in answer.content
            ]
        )
    )
    results = Message.user(
        *[ToolResultPart(call.id, call.name, "done") for call in answer.tool_calls]
    )
    await answered(client, ModelRequest(MODEL, (Message.user("Look."), changed, results), TOOLS))
    assert SIGNATURE not in json.dumps(upstream.bodies[1]) and "dragoman" not in json.dumps(
        upstream.bodies[1]
    )
