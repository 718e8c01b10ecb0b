"""Describes Ollama's API for a server: request bodies, further fields, lists of models, the
version, and that the server is there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from dragoman.codec.body_schema import (
    BOOLEAN,
    TEXT,
    any_of,
    declare_types,
    list_schema,
    object_schema,
)
from dragoman.codec.json_values import if_text
from dragoman.codec.serving import RequestFields
from dragoman.json_bytes import Json, JsonMap
from dragoman.result import ModelInfo
from dragoman.wires.ollama.generate import is_prompt

__all__ = [
    "bodies",
    "dump_idle",
    "dump_model",
    "dump_models",
    "dump_running",
    "dump_version",
    "request_fields",
]

request_fields = RequestFields(
    idle={
        "format": ("",),
        "tools": ([],),
        "raw": (False,),
        "logprobs": (False,),
        "think": (False,),
        "options.num_predict": (-1, -2, 0),
    },
    minor=frozenset(
        [
            "keep_alive",
            "options.num_thread",
            "options.num_gpu",
            "options.num_batch",
            "options.use_mmap",
        ]
    ),
    types=declare_types(
        object=("options",),
        list=("tools",),
        flag=("stream",),
        number=tuple(
            [
                f"options.{name}"
                for name in ("temperature", "top_p", "presence_penalty", "frequency_penalty")
            ]
        ),
        whole=tuple([f"options.{name}" for name in ("num_predict", "top_k", "seed", "num_ctx")]),
        text_or_list=("options.stop",),
        text_or_object=("format",),
        text_or_flag=("think",),
        text_or_number=("keep_alive",),
    ),
)
"""Facts about request fields that have no neutral counterpart."""

_MESSAGE = object_schema(
    {"role": {"enum": ["system", "user", "assistant", "tool"]}, "content": TEXT}
)
bodies = {
    "/api/chat": object_schema(
        {"model": TEXT, "messages": list_schema(_MESSAGE, least=1)}, stream=BOOLEAN
    ),
    "/api/generate": object_schema({"model": TEXT, "prompt": TEXT}, stream=BOOLEAN),
    "/api/embed": object_schema({"model": TEXT, "input": any_of(TEXT, list_schema(TEXT, least=1))}),
    "/api/embeddings": object_schema({"model": TEXT, "prompt": TEXT}),
    "/api/show": object_schema({"model": TEXT}),
}
"""Path → JSON Schema of the body that clients send there."""

_DETAILS = {
    "format": "gguf",
    "family": "",
    "families": None,
    "parameter_size": "",
    "quantization_level": "",
}
_CAPABILITIES = {"chat": ["completion", "tools"], "embeddings": ["embedding"]}
_ARCHITECTURE = "dragoman"
_KEPT = timedelta(minutes=5)
"""How long a model is said to stay loaded: as long as Ollama keeps one by default."""
_VERSION = "0.12.0"
"""Version of the API that is spoken."""


def dump_idle(body: JsonMap, path: str, *, now: datetime) -> Json | None:
    """Answers a request that only loads or unloads a model: one without messages, or without a
    prompt. None if it asks for more. Clients begin with one, such as Ollama's command line."""
    prompt = is_prompt(body, path)
    if body.get("prompt") or body.get("images") or (body.get("messages") != [] and not prompt):
        return None
    wait = body.get("keep_alive")
    # `False` equals 0 in Python, but is no time to wait.
    unloads = not isinstance(wait, bool) and wait in (0, "0", "0s", "0m")
    answer: Json = {
        "model": if_text(body.get("model")),
        "created_at": now.astimezone(UTC).isoformat().replace("+00:00", "Z"),
    }
    if prompt:
        answer["response"] = ""
    else:
        answer["message"] = {"role": "assistant", "content": ""}
    return {**answer, "done": True, "done_reason": "unload" if unloads else "load"}


def dump_model(model: ModelInfo, *, now: datetime) -> Json:
    """Writes what Ollama's `/api/show` says of a model."""
    return {
        "modelfile": "",
        "parameters": "",
        "template": "",
        "details": _DETAILS,
        "model_info": _describe_model(model),
        "capabilities": [
            capability
            for model_kind in model.kinds
            for capability in _CAPABILITIES.get(model_kind, ())
        ],
        "modified_at": now.isoformat(),
    }


def _describe_model(model: ModelInfo) -> Json:
    """Returns what a model is. Clients find the length of its context under its architecture."""
    described: Json = {"general.basename": model.name}
    if model.longest_prompt:
        described |= {
            "general.architecture": _ARCHITECTURE,
            f"{_ARCHITECTURE}.context_length": model.longest_prompt,
        }
    return described


def dump_models(models: Sequence[ModelInfo], *, now: datetime) -> Json:
    """Writes the list of models of Ollama's `/api/tags`."""
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


def dump_running(models: Sequence[ModelInfo], *, now: datetime) -> Json:
    """Writes the answer of `/api/ps`: models of providers are always loaded, and stay so."""
    entries = dump_models(models, now=now)["models"]
    for entry, model in zip(entries, models, strict=True):
        del entry["modified_at"]
        entry |= {
            "expires_at": (now + _KEPT).isoformat(),
            "size_vram": 0,
            "context_length": model.longest_prompt or 0,
        }
    return {"models": entries}


def dump_version() -> Json:
    """Writes the server's version."""
    return {"version": _VERSION}
