"""The server that official clients are held against: a scripted agent with a tool of its own, or a
gateway before a scripted provider.

python scripted_app.py agent|gateway|sealing WIRE [open]     prints its URL, and serves until it is terminated

`sealing`: a gateway that keeps nothing, and seals what the provider signed.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from dragoman import (
    Agent,
    Capability,
    Message,
    Provider,
    ThinkingPart,
    ToolCallPart,
    serve,
    tool,
    wires,
)
from dragoman.errors import RateLimitError
from dragoman.message import Role
from dragoman.request import ModelRequest, ToolSpec
from dragoman.testing import ScriptedServer

BASE = "https://up.example"
KEY = "one-secret-key"
MODELS = ("gpt-4o-mini", "claude-test", "text-embedding-3-small", "m")


def provider(wire: str, model: str = "m") -> Provider:
    """A provider that speaks a wire, with this model."""
    capabilities = frozenset(Capability)
    return Provider(
        name="up",
        display_name="Up",
        wire=wire,
        base_url=BASE,
        chat_model=model,
        embeddings_model="e",
        capabilities=capabilities,
    )


def reply(request: ModelRequest) -> Any:
    """Calls what it can, once each; then says what it was given."""
    results = [result for message in request.messages for result in message.tool_results]
    text = request.messages[-1].text
    if "too many" in text:
        return RateLimitError("slow down, sk-upstream-secret", retry_after=7)
    if text == "What did you say?":
        return " ".join(
            [
                "I said:",
                *[each.text for each in request.messages if each.role is Role.MODEL and each.text],
            ]
        )
    if request.output_schema is not None:
        return '{"name": "Ada", "age": 36}'
    if text == "Think." or (results and request.messages[0].text == "Think."):
        return thinking(request, len(results))
    names = {spec.name for spec in request.tools if isinstance(spec, ToolSpec)}
    if "json" in names:  # so a client asks for an object, of models that it does not know
        return Message.model(ToolCallPart("c9", "json", {"name": "Ada", "age": 36}))
    called = {call.id: call.name for message in request.messages for call in message.tool_calls}
    done = {called.get(result.id, result.name) for result in results}
    if "roll" in names and "roll" not in done:
        return Message.model(ToolCallPart("c1", "roll", {}))
    if "get_weather" in names and "get_weather" not in done:
        places = (
            ["Oakland"]
            if any("Oakland" in message.text for message in request.messages)
            else ["Oakland", "Rome"]
        )
        return Message.model(
            *[
                ToolCallPart(f"c{at}", "get_weather", {"location": place})
                for at, place in enumerate(places, 2)
            ]
        )
    weather = [
        str(result.result)
        for result in results
        if called.get(result.id, result.name) == "get_weather"
    ]
    seen = [
        piece
        for message in request.messages
        for piece in message.parts
        if type(piece).__name__ == "DataPart"
    ]
    return f"Hello{' a picture' if seen else ''}{' ' + ' and '.join(weather) if weather else ''}."


SIGNED: dict[str, dict[str, str]] = {
    "anthropic": {"signature": "c2lnbmVk"},
    "google": {"thoughtSignature": "c2lnbmVk"},
}


def thinking(request: ModelRequest, rounds: int) -> Message:
    """Two rounds of signed thinking, each with a call; then how many of them came back, and how
    many as they were."""
    thoughts = [
        piece
        for message in request.messages
        for piece in message.content
        if isinstance(piece, ThinkingPart)
    ]
    if rounds < 2:
        native: Any = {
            wire: fields for wire, fields in SIGNED.items() if f"to {wire}" in request.model
        }
        call = ToolCallPart(f"c{rounds}", "get_weather", {"location": "Rome"})
        return Message.model(ThinkingPart(f"Hm {rounds}.", native), call)
    signed = [each.text for each in thoughts if "c2lnbmVk" in str(each.native)]
    return Message.model(f"{len(thoughts)} thoughts, signed: {' '.join(signed)}")


@tool
def roll() -> int:
    """Rolls a die."""
    return 4


def app(kind: str, wire: str, access: str = "") -> Any:
    """An agent, or a gateway. `access`: `open` for one that needs no key."""
    auth = None if access == "open" else KEY

    def vectors(asked: Any) -> Any:
        return [[0.25] * 8 for _ in asked.texts]

    server = ScriptedServer(wires.get(wire), reply, base_url=BASE, vectors=vectors, remembers=True)
    if kind == "agent":
        return serve.app(
            Agent(provider(wire), tools=[roll], transport=server, api_key="k"), auth=auth
        )
    if kind == "sealing":
        models = {"m": provider(wire, f"to {wire}")}
        gateway = serve.Gateway(models, keys={"up": "k"}, transport=server, seal_key=b"k" * 32)
        return serve.app(gateway=gateway, auth=auth, store=None)
    gateway = serve.Gateway(
        {name: provider(wire) for name in MODELS}, keys={"up": "k"}, transport=server
    )
    return serve.app(gateway=gateway, auth=auth)


if __name__ == "__main__":
    made = app(*sys.argv[1:])
    asyncio.run(serve.serve_http(made, port=0, ready=lambda url: print(url, flush=True)))
