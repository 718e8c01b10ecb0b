"""`ProviderBench`, which the checks of a provider work with: its record, and agents whose model is
scripted or real.

Scripted, a `ScriptedServer` answers with the wire's own encoder, so a check covers agent, model,
HTTP and decoder without a network. Live or with recordings the same checks run, but what a real
model says is only judged (`require_of_model`): it may err without a fault of the provider.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dragoman import providers, wires
from dragoman.agent import Agent
from dragoman.capability import Capability
from dragoman.errors import AuthenticationError, DragomanError, SettingsError, TypedOutputError
from dragoman.json_bytes import Json
from dragoman.loss import Loss
from dragoman.message import (
    FinishReason,
    Message,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.providers.provider import Provider
from dragoman.request import EmbeddingsRequest, ModelRequest, Settings, ToolSpec
from dragoman.result import Vector
from dragoman.testing.check import Bench, Inconclusive, check_maker, require
from dragoman.testing.samples import SCHEMA
from dragoman.testing.scripted_answer import Answer
from dragoman.testing.server import ScriptedServer
from dragoman.testing.wire.bench import make_signed_thinking
from dragoman.tools import Tool
from dragoman.transport.base import Transport
from dragoman.transport.player import Player

__all__ = [
    "KEY",
    "ProviderBench",
    "Reply",
    "make_call",
    "reply_with_value",
    "load_player",
    "provider_check",
    "make_reply",
    "make_weather_tool",
]

KEY = "kit-secret-key"
"""The key of scripted requests."""
_ELSEWHERE = "https://api.conformance.invalid/v1"

Reply = (
    Message | DragomanError | Answer | Callable[[ModelRequest], Message | DragomanError | Answer]
)


class ProviderBench(Bench):
    """Makes agents of a provider for the checks.

    Without `live`, `transport` or `recordings` the agents talk to a `ScriptedServer` that answers
    as each check says. With one of them, checks that need a server to fail on purpose are skipped.

    Args:
        provider: a record, or the name of a registered provider.
        live: use the network.
        transport: use this transport in place of the network.
        recordings: a folder of exchanges with a real server, as `transport.Recorder` writes
            them, if neither of the above is given. Each check replays them and needs no key.
        model: replaces the provider's default model.
        api_key, base_url, headers, environment: as for `Agent`.
        signed: as for `WireBench`.

    Raises:
        SettingsError: the folder has no recordings.
        DecodeError: a file in the folder is not a recording.
    """

    def __init__(
        self,
        provider: Provider | str,
        *,
        live: bool = False,
        transport: Transport | None = None,
        recordings: Path | str | None = None,
        model: str | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        signed: ThinkingPart | None = None,
    ) -> None:
        """Creates the bench of a provider's checks. `live`: ask the real API instead of a scripted
        one."""
        self.provider = providers.get(provider) if isinstance(provider, str) else provider
        self.name = self.provider.name
        self.wire = wires.get(self.provider.wire)
        if recordings is not None and transport is None and not live:
            transport, api_key = load_player(recordings), api_key or KEY
        self.scripted = not live and transport is None
        self.signed = signed or make_signed_thinking(self.wire.name)
        self.model = model or self.provider.chat_model or "kit-model-1"
        self._transport = transport
        self._access: Json = {
            "api_key": api_key,
            "base_url": base_url,
            "headers": headers,
            "environment": environment,
        }
        # A local provider's base URL is a function that starts its server; checks start none.
        record_url = self.provider.base_url
        self.base_url = record_url if isinstance(record_url, str) else _ELSEWHERE
        self.server = ScriptedServer(
            self.wire, lambda _: make_reply("Nothing was asked for."), base_url=self.base_url
        )

    def can(self, capability: Capability) -> bool:
        """True if the record declares the capability."""
        return capability in self.provider.capabilities

    def find_skip_reason(self, needs: tuple[str, ...], *, live: bool) -> str | None:
        """See `Bench.lacks`."""
        if not self.scripted and not live:
            return (
                "it reads what the server receives, or needs it to fail, so it runs scripted only"
            )
        for need in needs:
            if need not in self.provider.capabilities:
                return f"{self.provider.display_name} does not declare the capability {need}"
        return None

    def is_inconclusive(self, error: Exception) -> bool:
        """See `Bench.is_inconclusive`. A real model may fail to fill a schema."""
        return not self.scripted and isinstance(error, TypedOutputError)

    def locate_fault(self, error: BaseException) -> str | None:
        """See `Bench.locate_fault`. A wrong key and recordings of another model are not the
        provider's fault."""
        if isinstance(error, AuthenticationError) and not self.scripted:
            names = ", ".join((*self.provider.key_names, *self.provider.auth_names))
            return f"the key ({names or 'api_key, headers'})"
        if isinstance(error, SettingsError) and isinstance(self._transport, Player):
            return "the recordings: make them with the same model and base URL (--live --record FOLDER)"
        return None

    def agent(
        self,
        *replies: Reply,
        model: str | None = None,
        vectors: Callable[[str], Vector] | None = None,
        wrap: Callable[[Transport], Transport] = lambda server: server,
        **options: Any,
    ) -> Agent[None]:
        """Returns an agent of this provider. Its scripted model answers with one of `replies` per
        request, and with the last one from then on.

        `model`: replaces the bench's model. `vectors`: makes the vector of a text, for embeddings.
        `wrap`: wraps the scripted server, for example in `Retry`. `options`: as for `Agent`.
        """
        if not self.scripted:
            arguments: Json = {**self._access, "transport": self._transport, **options}
            return Agent(self._make_record(model), **arguments)
        remaining = list(replies) or [make_reply("Nothing was asked for.")]

        def reply(request: ModelRequest) -> Message | DragomanError | Answer:
            """Returns the next scripted reply, and keeps the request."""
            scripted = remaining[0]
            if len(remaining) > 1:
                del remaining[0]
            if callable(scripted):
                return scripted(request)
            return scripted

        make_vector: Callable[[str], Vector] = vectors or (lambda _: [0.0])

        def embedded(request: EmbeddingsRequest) -> list[Vector] | DragomanError:
            """Returns the vectors of the scripted provider, and keeps the request."""
            answer = reply(ModelRequest(request.model))
            if isinstance(answer, DragomanError):
                return answer
            return [make_vector(text) for text in request.texts]

        self.server = ScriptedServer(
            self.wire,
            reply,
            base_url=self.base_url,
            vectors=embedded if vectors is not None else None,
        )
        access: Json = {"api_key": KEY, "base_url": self.base_url, "environment": {}}
        arguments = {**access, "transport": wrap(self.server), **options}
        return Agent(self._make_record(model), **arguments)

    def require_of_model(self, condition: object, wrong: str) -> None:
        """Requires a condition of what the model says. A real model that does not meet it is
        `Inconclusive`."""
        if not self.scripted and not condition:
            raise Inconclusive(wrong)
        require(condition, wrong)

    def get_request(self, position: int = -1) -> ModelRequest:
        """Returns a request that the scripted server read, by default the last."""
        require(self.server.requests, "no request came to the server")
        return self.server.requests[position]

    def get_results(self, position: int = -1) -> list[ToolResultPart]:
        """Returns the tool results in a request that the scripted server read."""
        return [
            part for message in self.get_request(position).messages for part in message.tool_results
        ]

    def get_calls(self) -> list[ToolCallPart]:
        """Returns the tool calls in the last request that the scripted server read."""
        return [part for message in self.get_request().messages for part in message.tool_calls]

    def find_losses(self, settings: Settings) -> list[Loss]:
        """Returns the losses of a request with these settings."""
        losses: list[Loss] = []
        request = ModelRequest(self.model, (Message.user("Hi."),), settings=settings)
        self.wire.dump_request(request, losses=losses, quirks=self.provider.quirks)
        return losses

    def _make_record(self, model: str | None) -> Provider:
        """Returns the provider's record with models for the checks."""
        embeddings_model = self.provider.embeddings_model or "kit-embeddings-1"
        return msgspec.structs.replace(
            self.provider, chat_model=model or self.model, embeddings_model=embeddings_model
        )


def load_player(folder: Path | str) -> Player:
    """Returns a player of all recordings in a folder.

    Raises:
        SettingsError: the folder has none.
        DecodeError: a file in it is not a recording.
    """
    if not any(Path(folder).glob("*.json")):
        problem = "there is no such folder"
        if Path(folder).is_dir():
            problem = "the folder has no *.json"
        raise SettingsError(
            f"no recordings in {folder}: {problem}. Make some with --live --record FOLDER"
        )
    return Player.load(folder)


provider_check = check_maker(ProviderBench)
"""Decorator that makes a check from a function of a `ProviderBench`. `needs` and `shows` are
capabilities."""


def make_reply(
    *content: Any, reason: FinishReason | None = None, usage: Usage | None = None
) -> Message:
    """Returns a finished model message."""
    message = Message.model(*content)
    usual = FinishReason.tool_calls if message.tool_calls else FinishReason.stop
    counted = Usage(input_tokens=11, output_tokens=7, total_tokens=18)
    return message.replace(finish_reason=reason or usual, usage=usage or counted)


def make_call(name: str, id: str = "call_kit_1", /, **arguments: Any) -> ToolCallPart:  # noqa: A002
    """Returns a tool call with an id of the kit."""
    return ToolCallPart(id, name, arguments)


def make_weather_tool(cities: list[str] | None = None) -> Tool:
    """Returns a tool that tells the weather of a city, and appends each city to `cities`."""

    async def get_weather(city: str) -> str:
        if cities is not None:
            cities.append(city)
        return f"rain in {city}"

    return Tool("get_weather", "Tells the weather of a city right now.", get_weather, SCHEMA)


def reply_with_value(
    value: Any, tools: Sequence[ToolCallPart] = ()
) -> Callable[[ModelRequest], Message]:
    """Returns a reply that first calls `tools`, then gives the value in the form that the request
    asks for: by a schema or a tool, bare or in an object under `result`."""

    def reply(request: ModelRequest) -> Message:
        """Replies with the value, as a call of the output's tool or as JSON."""
        schemas = {
            tool.name: tool.input_schema for tool in request.tools if isinstance(tool, ToolSpec)
        }
        answered = any(message.tool_results for message in request.messages)
        if tools and not answered and all(tool_call.name in schemas for tool_call in tools):
            return make_reply(*tools)
        schema = request.output_schema or schemas.get("return_result", {})
        output = value
        # A type that is not an object is wrapped in `{"result": …}`.
        if [*schema.get("properties", {})] == ["result"]:
            output = {"result": value}
        if request.output_schema is None and "return_result" in schemas:
            return make_reply(ToolCallPart("call_kit_result", "return_result", output))
        return make_reply(msgspec.json.encode(output).decode())

    return reply
