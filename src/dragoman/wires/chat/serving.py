"""What a server of this family's APIs answers beside chats: lists of models."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from dragoman.json_bytes import Json
from dragoman.result import ModelInfo

__all__ = ["OPENAI_MINOR", "dump_model", "dump_models"]

OPENAI_MINOR = (
    "user",
    "metadata",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
)
"""Fields of all of OpenAI's APIs on which no answer depends."""


def dump_model(model: ModelInfo, *, now: datetime) -> Json:
    """A model as a list has it. `now`: stands for the time when it was made, which nobody knows."""
    return {
        "id": model.name,
        "object": "model",
        "created": int(now.timestamp()),
        "owned_by": model.provider,
    }


def dump_models(models: Sequence[ModelInfo], *, now: datetime) -> Json:
    """The answer to a request for all models."""
    return {"object": "list", "data": [dump_model(model, now=now) for model in models]}
