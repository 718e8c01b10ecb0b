"""Which of a model's providers can be asked by a given JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.capability import Capability
from dragoman.loss import Loss, Lost
from dragoman.message import Message
from dragoman.model.chat_model import ChatModel
from dragoman.providers.provider import Provider
from dragoman.request import ModelRequest

__all__ = ["providers_for"]

_TYPED = frozenset({Capability.typed_output, Capability.typed_output_with_tools})
_EITHER_WAY = frozenset({Capability.typed_output, Capability.tools})


def providers_for(model: ChatModel, schema: Mapping[str, Any] | None) -> tuple[Provider, ...]:
    """A model's provider and those of its fallbacks, as `ChatModel.providers` has them. One whose wire has no form for
    `schema` (Anthropic's has none for recursion) lacks `typed_output` here, where its tools can bring the value instead."""
    if schema is None:
        return model.providers
    models = (model, *model.fallbacks.values())
    return tuple(
        provider if _can_say(one, provider, schema) else provider.without(_TYPED)
        for one, provider in zip(models, model.providers, strict=True)
    )


def _can_say(model: ChatModel, provider: Provider, schema: Mapping[str, Any]) -> bool:
    """Whether a request to the model holds the schema. Asked only where there is another way."""
    if not provider.capabilities >= _EITHER_WAY:
        return True
    losses: list[Loss] = []
    request = ModelRequest(model.name, (Message.user("."),), output_schema=schema)
    model.wire.dump_request(request, quirks=provider.quirks, losses=losses)
    return all(loss.what is not Lost.output_schema for loss in losses)
