"""Describes Mistral's API for a server: request bodies, further fields, and lists of models."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from dragoman.codec.body_schema import CHAT_BODY, EMBEDDINGS_BODY, TRANSCRIPTION_BODY, declare_types
from dragoman.codec.serving import RequestFields, forward_to
from dragoman.json_bytes import Json
from dragoman.result import ModelInfo
from dragoman.wires.chat import serving

__all__ = ["forward", "bodies", "dump_model", "dump_models", "request_fields"]

forward = forward_to("/chat/completions")
"""Passes a client's body to a provider of the same API."""

request_fields = RequestFields(
    idle={
        "n": (1,),
        "stream": (False,),
        "logprobs": (False,),
        "top_logprobs": (0,),
        "safe_prompt": (False,),
        "response_format": ({"type": "text"},),
    },
    minor=frozenset(
        ["metadata", "prompt_cache_key", "response_format.json_schema", "response_format.type"]
    ),
    candidates="n",
    references=frozenset(["agent_id"]),
    types=declare_types(
        number=("temperature", "top_p", "presence_penalty", "frequency_penalty"),
        whole=("max_tokens", "random_seed", "n"),
        flag=("stream", "parallel_tool_calls", "safe_prompt"),
        text_or_list=("stop",),
        text_or_object=("tool_choice",),
        list=("tools",),
        object=("response_format", "prediction"),
    ),
)
"""Facts about request fields that have no neutral counterpart."""

bodies = {
    "/v1/chat/completions": CHAT_BODY,
    "/v1/embeddings": EMBEDDINGS_BODY,
    "/v1/audio/transcriptions": TRANSCRIPTION_BODY,
}
"""Path → JSON Schema of the body that clients send there."""


def dump_model(model: ModelInfo, *, now: datetime) -> Json:
    """Writes a model as an entry of the list."""
    chats = "chat" in model.kinds
    capabilities = {
        "completion_chat": chats,
        "completion_fim": False,
        "function_calling": chats,
        "fine_tuning": False,
        "vision": chats,
        "classification": False,
    }
    usual = serving.dump_model(model, now=now)
    return {**usual, "name": model.display_name, "capabilities": capabilities, "type": "base"}


def dump_models(models: Sequence[ModelInfo], *, now: datetime) -> Json:
    """Writes the list of models."""
    return {"object": "list", "data": [dump_model(model, now=now) for model in models]}
