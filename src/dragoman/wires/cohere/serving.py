"""Describes Cohere's API for a server: request bodies, further fields, and lists of models."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from dragoman.codec.body_schema import CHAT_BODY, TEXT, declare_types, list_schema, object_schema
from dragoman.codec.serving import RequestFields, forward_to
from dragoman.json_bytes import Json
from dragoman.result import ModelInfo

__all__ = ["forward", "bodies", "dump_model", "dump_models", "request_fields"]

forward = forward_to("/chat")
"""Passes a client's body to a provider of the same API."""

request_fields = RequestFields(
    idle={
        "documents": ([],),
        "logprobs": (False,),
        "strict_tools": (False,),
        "tools": ([],),
        "response_format": ({"type": "text"},),
    },
    minor=frozenset(["citation_options", "priority"]),
    types=declare_types(
        number=("temperature", "p", "presence_penalty", "frequency_penalty"),
        whole=("max_tokens", "k", "seed"),
        flag=("stream", "strict_tools"),
        list=("tools", "stop_sequences", "documents"),
        object=("response_format", "thinking", "citation_options"),
        text=("tool_choice", "safety_mode"),
    ),
)
"""Facts about request fields that have no neutral counterpart."""

bodies = {
    "/v2/chat": CHAT_BODY,
    "/v2/embed": object_schema(
        {"model": TEXT, "texts": list_schema(TEXT, least=1), "input_type": TEXT}
    ),
}
"""Path → JSON Schema of the body that clients send there."""

_ENDPOINTS = {"chat": "chat", "embeddings": "embed"}


def dump_model(model: ModelInfo, *, now: datetime) -> Json:  # noqa: ARG001 the protocol's
    """Writes a model as a Cohere entry of the list."""
    return {
        "name": model.name,
        "endpoints": [_ENDPOINTS[kind] for kind in model.kinds if kind in _ENDPOINTS],
        "finetuned": False,
        "is_deprecated": False,
    }


def dump_models(models: Sequence[ModelInfo], *, now: datetime) -> Json:
    """Writes the list of models."""
    return {"models": [dump_model(model, now=now) for model in models]}
