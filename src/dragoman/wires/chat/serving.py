"""What a server of this family's APIs answers beside chats: lists of models."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from dragoman.result import ModelInfo

__all__ = ["dump_model", "dump_models"]


def dump_model(model: ModelInfo, *, now: datetime) -> dict[str, Any]:
    """A model as a list has it. `now`: stands for the time when it was made, which nobody knows."""
    return {"id": model.name, "object": "model", "created": int(now.timestamp()), "owned_by": model.provider}


def dump_models(models: Sequence[ModelInfo], *, now: datetime) -> dict[str, Any]:
    """The answer to a request for all models."""
    return {"object": "list", "data": [dump_model(model, now=now) for model in models]}
