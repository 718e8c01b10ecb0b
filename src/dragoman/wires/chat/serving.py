"""Writes what a server of this family's APIs answers beside chats: lists of models."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from dragoman.codec.serving import Route
from dragoman.json_bytes import Json
from dragoman.result import ModelInfo

__all__ = ["MEDIA_ROUTES", "OPENAI_MINOR", "TRANSCRIPTION_ROUTE", "dump_model", "dump_models"]

OPENAI_MINOR = (
    "user",
    "metadata",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
)
"""Fields of all of OpenAI's APIs that do not change an answer."""


TRANSCRIPTION_ROUTE = Route("POST", "/v1/audio/transcriptions", "transcription")
"""Path for transcripts, which Mistral has too."""
MEDIA_ROUTES = (
    Route("POST", "/v1/images/generations", "images"),
    Route("POST", "/v1/images/edits", "images"),
    Route("POST", "/v1/audio/speech", "speech"),
    TRANSCRIPTION_ROUTE,
)
"""Paths for media of OpenAI's APIs."""


def dump_model(model: ModelInfo, *, now: datetime) -> Json:
    """Writes a model as an entry of the list. `now` stands in for the unknown time when it was
    made."""
    return {
        "id": model.name,
        "object": "model",
        "created": int(now.timestamp()),
        "owned_by": model.provider,
    }


def dump_models(models: Sequence[ModelInfo], *, now: datetime) -> Json:
    """Writes the list of models."""
    return {"object": "list", "data": [dump_model(model, now=now) for model in models]}
