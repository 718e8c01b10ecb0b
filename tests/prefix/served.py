"""Scenes whose requests come from clients of a server: of a gateway by each model wire, and of an
agent by each agent protocol."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec

from dragoman import Agent, Message, Settings, fold, serve
from dragoman.memory import Memory
from prefix.stage import TURNS, Stage, look, measure
from support.asgi import exchange
from support.gateway import AsgiTransport
from support.protocols import events_of, posted
from support.switching import PROVIDERS

BASES = {"google": "/v1beta", "ollama": "", "cohere": "/v2"}
"""Wire → where its API is on the server."""


async def gateway(stage: Stage, wire: str, *, changes: bool = False) -> None:
    """A client of this wire, which runs its own tools, before a gateway to the provider. `changes`:
    its system text changes."""
    provider = stage.model.partition(":")[0]
    app = serve.app(
        gateway=serve.Gateway(
            {"fast": stage.model},
            base_urls={provider: stage.url},
            keys={provider: "none"},
            settings=Settings(reasoning="high", max_tokens=32_000),
        ),
        store="memory:",
    )
    known = PROVIDERS[wire]
    record = msgspec.structs.replace(
        known, name="gate", chat_model="fast", base_url=f"http://127.0.0.1{BASES.get(wire, '/v1')}"
    )
    options: Any = {"transport": AsgiTransport(app), "api_key": "none"}
    history: list[Message] = []
    for turn in range(TURNS):
        system = f"You dig. It is day {turn // 4 if changes else 0}."
        async with Agent(record, system=system, tools=[look, measure], **options) as agent:
            result = await stage.ask(agent, f"turn {turn} tools {turn % 2}", history=history)
            history += result.messages


async def client_of_agent(stage: Stage, wire: str) -> None:
    """A client that keeps its own copy of the conversation, before an agent behind a protocol."""
    async with stage.agent(system="You dig.", tools=[look, measure]) as agent:
        app = serve.app(agent, store="memory:")
        async with app.router.lifespan_context(app):
            copy: list[Message] = []
            for turn in range(TURNS):
                prompt = Message.user(f"turn {turn} tools {turn % 2}").replace(id=f"u{turn}")
                copy.append(prompt)
                answer = await posted(app, wire, "t", copy)
                copy += fold(events_of(wire, answer))


async def client_of_a2a(stage: Stage) -> None:
    """A client that sends each question alone, in one context."""
    async with stage.agent(
        system="You dig.", tools=[look, measure], memory=Memory(last_messages=1000)
    ) as agent:
        app = serve.app(agent, store="memory:")
        async with app.router.lifespan_context(app):
            for turn in range(TURNS):
                message = {
                    "messageId": f"m{turn}",
                    "role": "ROLE_USER",
                    "contextId": "t",
                    "parts": [{"text": f"turn {turn} tools {turn % 2}"}],
                }
                body = {
                    "jsonrpc": "2.0",
                    "id": turn,
                    "method": "SendStreamingMessage" if stage.is_streamed else "SendMessage",
                    "params": {"message": message},
                }
                answer = await exchange(app, "POST", "/a2a", body)
                assert answer.status == 200, answer.body


SERVED: dict[str, Callable[[Stage], Awaitable[None]]] = {
    **{f"gateway, {wire}": partial(gateway, wire=wire) for wire in PROVIDERS},
    "behind AG-UI": partial(client_of_agent, wire="ag_ui"),
    "behind AI SDK": partial(client_of_agent, wire="ai_sdk"),
    "behind A2A": client_of_a2a,
}
CHANGED: dict[str, Callable[[Stage], Awaitable[None]]] = {
    f"gateway, {wire}, changing system": partial(gateway, wire=wire, changes=True)
    for wire in ("anthropic", "openai_chat", "google")
}
