"""What a server of Ollama's API answers beside chats: lists of models, what one is, and that it is there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from dragoman.result import ModelInfo

__all__ = ["dump_model", "dump_models", "dump_version"]

_DETAILS = {"format": "gguf", "family": "", "families": None, "parameter_size": "", "quantization_level": ""}
_CAPABILITIES = {"chat": ["completion", "tools"], "embeddings": ["embedding"]}
_VERSION = "0.12.0"
"""Of the API that is spoken."""


def dump_model(model: ModelInfo, *, now: datetime) -> dict[str, Any]:
    """What a model is."""
    return {
        "modelfile": "",
        "parameters": "",
        "template": "",
        "details": _DETAILS,
        "model_info": {"general.basename": model.name},
        "capabilities": [each for kind in model.kinds for each in _CAPABILITIES.get(kind, ())],
        "modified_at": now.isoformat(),
    }


def dump_models(models: Sequence[ModelInfo], *, now: datetime) -> dict[str, Any]:
    """The answer to a request for all models."""
    return {
        "models": [
            {
                "name": model.name,
                "model": model.name,
                "modified_at": now.isoformat(),
                "size": 0,
                "digest": sha256(model.name.encode()).hexdigest(),
                "details": _DETAILS,
            }
            for model in models
        ]
    }


def dump_version() -> dict[str, Any]:
    """The answer to a request for the server's version."""
    return {"version": _VERSION}
