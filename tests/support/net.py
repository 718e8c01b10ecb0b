"""Several scripted providers behind one transport: each request goes to the one whose base URL it
has."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec

from dragoman import Agent, Message, ModelRequest, providers, wires
from dragoman.errors import DragomanError
from dragoman.event import Event
from dragoman.message import Origin, Usage
from dragoman.model.middleware import Next
from dragoman.request import HttpRequest
from dragoman.testing import Answer, ScriptedServer

__all__ = ["CUT", "FOUR", "KEYS", "NAMES", "Net", "agent", "target", "used", "whole"]

NAMES = {
    "openai_chat": "openai",
    "openai_responses": "openai-responses",
    "anthropic": "anthropic",
    "google": "google",
}
"""Wire → the provider whose own API it is."""
FOUR = list(NAMES)
"""The wires on which all that stands around a run is tried."""
KEYS = {name: "none" for each in NAMES.values() for name in providers.get(each).key_names}
Reply = Message | DragomanError | Answer
CUT = Answer(content=Message.model("Once upon a time there was a king who had"), cut=True)


class Net:
    """A `Transport`. `replies`: a wire's name → what it answers, one after another; the last one
    for ever."""

    def __init__(
        self, **replies: Reply | Sequence[Reply] | Callable[[ModelRequest], Reply]
    ) -> None:
        self.asked: list[str] = []
        self.retries: list[int | None] = []
        self.servers: dict[str, ScriptedServer] = {}
        for wire, given in replies.items():
            url = providers.get(NAMES[wire]).base_url
            self.servers[wire] = ScriptedServer(
                wires.get(wire), _function(given), base_url=str(url), remembers=True
            )

    async def send(self, request: HttpRequest) -> Any:
        for wire, server in self.servers.items():
            base = str(providers.get(NAMES[wire]).base_url)
            is_responses = request.path.endswith("/responses")
            if request.path.startswith(base) and (wire == "openai_responses") == is_responses:
                self.asked.append(wire)
                self.retries.append(request.retries)
                return await server.send(request)
        raise AssertionError(f"nobody is at {request.path}")

    async def close(self) -> None:
        pass

    @property
    def open(self) -> int:
        """Answers that nobody has closed."""
        return sum(server.open for server in self.servers.values())

    def sent(self, wire: str) -> ModelRequest:
        """What a provider was asked last."""
        return self.servers[wire].requests[-1]


def agent(net: Net, model: Any, **how: Any) -> Agent[Any]:
    """An agent that talks to these providers; `model`: names of wires stand for their providers."""
    return Agent(model, transport=net, environment=KEYS, environment_only=True, **how)


async def whole(request: ModelRequest, following: Next) -> AsyncIterator[Event]:
    """Middleware: asks for the answer in one piece."""
    async for event in following(request.replace(stream=False)):
        yield event


def used(message: Message, tokens: int) -> Message:
    """The message, which took so many tokens."""
    return message.replace(usage=Usage(input_tokens=0, output_tokens=tokens, total_tokens=tokens))


def _function(given: Any) -> Callable[[ModelRequest], Reply]:
    if callable(given) and not isinstance(given, msgspec.Struct):
        return given
    left = [given] if isinstance(given, Message | DragomanError | Answer) else list(given)
    return lambda request: left.pop(0) if len(left) > 1 else left[0]


def target(request: ModelRequest) -> Origin | None:
    """Whom a request goes to: a `Target` of providers that nobody registered."""
    provider, _, model = request.model.partition(":")
    return Origin(provider, f"https://{provider}", model) if provider else None
