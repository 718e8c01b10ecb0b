"""What a server of the Messages API answers beside messages: lists of models, numbers of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from dragoman.codec.body_schema import (
    BOOLEAN,
    TEXT,
    JsonSchema,
    any_of,
    declare_types,
    list_schema,
    object_schema,
)
from dragoman.codec.json_values import if_text
from dragoman.codec.serving import BEARER, KeyPlace, RequestFields, SealForm
from dragoman.json_bytes import Json
from dragoman.message import Content, ThinkingPart
from dragoman.result import ModelInfo
from dragoman.wires.anthropic.quirks import NAME, OWN
from dragoman.wires.anthropic.request import adapt

__all__ = [
    "bodies",
    "dump_model",
    "dump_models",
    "dump_seal",
    "dump_token_count",
    "keys",
    "load_seal",
    "request_fields",
    "seal",
]

request_fields = RequestFields(
    adapt=adapt,
    idle={"service_tier": ("auto", "standard_only")},
    minor=frozenset(["metadata", "service_tier", "cache_control", "inference_geo"]),
    references=frozenset(["container", "mcp_servers", "thread"]),
    types=declare_types(
        number=("temperature", "top_p"),
        whole=("max_tokens", "top_k"),
        flag=("stream",),
        list=("tools", "stop_sequences"),
        object=("tool_choice", "thinking", "metadata", "output_config"),
        text_or_list=("system",),
    ),
)
"""What is known of further fields of a request."""

_MESSAGES: dict[str, JsonSchema] = {
    "model": TEXT,
    "messages": list_schema(
        object_schema(
            {
                "role": {"enum": ["user", "assistant"]},
                "content": any_of(
                    TEXT,
                    list_schema(object_schema({"type": {"const": "text"}, "text": TEXT}), least=1),
                ),
            }
        ),
        least=1,
    ),
}
bodies = {
    "/v1/messages": object_schema(
        {**_MESSAGES, "max_tokens": {"type": "integer", "minimum": 1}}, stream=BOOLEAN
    ),
    "/v1/messages/count_tokens": object_schema(_MESSAGES),
}
"""Path → JSON Schema of what clients send there."""

keys = (KeyPlace("header", "x-api-key"), *BEARER)
"""Where clients put their key."""


def dump_model(model: ModelInfo, *, now: datetime) -> Json:
    """Returns a model as Anthropic's list of models has it. `now`: stands for the time when it came
    out, which nobody knows."""
    return {
        "type": "model",
        "id": model.name,
        "display_name": model.display_name or model.name,
        "created_at": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "lifecycle": "active",
        "line": None,
        "capabilities": None,
        "max_input_tokens": model.longest_prompt,
        "max_tokens": model.longest_answer,
        "deprecated_at": None,
        "retires_at": None,
    }


def dump_models(models: Sequence[ModelInfo], *, now: datetime) -> Json:
    """Returns the Anthropic answer to a request for all models."""
    data = [dump_model(model, now=now) for model in models]
    if data:
        ends = (data[0]["id"], data[-1]["id"])
    else:
        ends = (None, None)
    return {"data": data, "has_more": False, "first_id": ends[0], "last_id": ends[1]}


def dump_token_count(count: int) -> Json:
    """Returns the answer to a request to count tokens."""
    return {"input_tokens": count}


def dump_seal(token: str) -> ThinkingPart:
    """Returns the piece in which a client keeps a server's token: redacted thinking."""
    return ThinkingPart(native={NAME: {"type": "redacted_thinking", "data": token}})


def load_seal(piece: Content) -> str | None:
    """Returns the seal token that a piece of an Anthropic request may hold."""
    if isinstance(piece, ThinkingPart):
        return if_text(OWN.fields(piece.native).get("data")) or None
    return None


seal = SealForm(dump_seal, load_seal)
"""Where clients keep a server's token."""
