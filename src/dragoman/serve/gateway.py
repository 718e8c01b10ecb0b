"""A gateway: what a client of any wire asks goes to any provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from dragoman.event import Event
from dragoman.model.chat_model import ChatModel, new_id, now
from dragoman.model.defaults import default_transport
from dragoman.model.embeddings_model import EmbeddingsModel
from dragoman.model.fallbacks import ModelChoice
from dragoman.model.models import Models
from dragoman.request import EmbeddingsRequest, ModelRequest
from dragoman.result import BatchEmbeddingsResult, ModelInfo
from dragoman.serve.call import Call
from dragoman.transport import Transport

__all__ = ["Gateway"]


class Gateway:
    """Which models clients may ask for, and where these are. It is a `Backend`."""

    def __init__(
        self,
        models: Mapping[str, ModelChoice],
        *,
        transport: Transport | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`models`: the name that a client asks for → a model string, a provider's record, or several of them as a fallback.

        Raises:
            SettingsError: a model string is malformed, or no provider has that name.
        """
        transport = transport or default_transport()
        self._models = {
            name: Models(
                choice,
                transport=transport,
                api_key=None,
                base_url=None,
                headers=None,
                environment=environment,
                environment_only=False,
                middleware=(),
                new_id=new_id,
                clock=now,
            )
            for name, choice in models.items()
        }

    def models(self) -> Sequence[ModelInfo]:
        """The names that clients may ask for."""
        return [ModelInfo(name, each.provider.name) for name, each in self._models.items()]

    def serves(self, model: str) -> bool:
        """See `Backend`."""
        return model in self._models

    async def answer(self, call: Call, request: ModelRequest) -> AsyncGenerator[list[Event], None]:
        """The provider's answer as it is, calls and all."""
        model: ChatModel = self._models[request.model].chat()
        wire: Any = call.wire.name if request.options else request.wire
        sent = request.replace(model=model.string, stream=request.stream, wire=wire)
        async with aclosing(model.batches(sent)) as batches:
            async for events in batches:
                yield events

    async def embed(self, call: Call, request: EmbeddingsRequest) -> BatchEmbeddingsResult:  # noqa: ARG002 the protocol's
        """See `Backend`."""
        model: EmbeddingsModel = self._models[request.model].embeddings()
        return await model.embed_documents(request.texts)
