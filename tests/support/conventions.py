"""Facts of OpenTelemetry's conventions for generative AI, version 0.1: names, types and members of
attributes, what spans and metrics must and may have. Taken from their registry (model/gen-ai of
open-telemetry/semantic-conventions-genai)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STRINGS = tuple
PROVIDERS = {
    *(
        "anthropic",
        "aws.bedrock",
        "azure.ai.inference",
        "azure.ai.openai",
        "cohere",
        "deepseek",
        "gcp.gemini",
    ),
    *(
        "gcp.gen_ai",
        "gcp.vertex_ai",
        "groq",
        "ibm.watsonx.ai",
        "mistral_ai",
        "moonshot_ai",
        "openai",
        "perplexity",
        "x_ai",
    ),
}
TYPES: Mapping[str, type] = {
    "error.type": str,
    "server.address": str,
    "server.port": int,
    "http.response.status_code": int,
    "gen_ai.operation.name": str,
    "gen_ai.provider.name": str,
    "gen_ai.conversation.id": str,
    "gen_ai.output.type": str,
    "gen_ai.request.model": str,
    "gen_ai.request.max_tokens": int,
    "gen_ai.request.temperature": float,
    "gen_ai.request.top_p": float,
    "gen_ai.request.top_k": int,
    "gen_ai.request.stop_sequences": STRINGS,
    "gen_ai.request.frequency_penalty": float,
    "gen_ai.request.presence_penalty": float,
    "gen_ai.request.seed": int,
    "gen_ai.request.stream": bool,
    "gen_ai.request.reasoning.level": str,
    "gen_ai.response.id": str,
    "gen_ai.response.model": str,
    "gen_ai.response.finish_reasons": STRINGS,
    "gen_ai.response.time_to_first_chunk": float,
    "gen_ai.usage.input_tokens": int,
    "gen_ai.usage.output_tokens": int,
    "gen_ai.usage.cache_read.input_tokens": int,
    "gen_ai.usage.cache_write.input_tokens": int,
    "gen_ai.usage.reasoning.output_tokens": int,
    "gen_ai.token.type": str,
    "gen_ai.token.modality": str,
    "gen_ai.agent.name": str,
    "gen_ai.tool.name": str,
    "gen_ai.tool.type": str,
    "gen_ai.tool.description": str,
    "gen_ai.tool.call.id": str,
    "gen_ai.tool.call.arguments": str,
    "gen_ai.tool.call.result": str,
    "gen_ai.system_instructions": str,
    "gen_ai.input.messages": str,
    "gen_ai.output.messages": str,
    "gen_ai.tool.definitions": str,
}
"""Attribute → the type of its value; `any` is JSON text on a span."""
MEMBERS: Mapping[str, set[str]] = {
    "gen_ai.operation.name": {"chat", "invoke_agent", "execute_tool"},
    "gen_ai.output.type": {"text", "json", "image", "speech"},
    "gen_ai.token.type": {"input", "output"},
    "gen_ai.token.modality": {"text", "image", "audio", "video", "document", "unknown"},
    "gen_ai.tool.type": {"function", "extension", "datastore"},
}
CONTENT = {
    *(
        "gen_ai.system_instructions",
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.tool.definitions",
    ),
    *("gen_ai.tool.call.arguments", "gen_ai.tool.call.result"),
}
"""What is opt-in."""
_ASKED = {name for name in TYPES if name.startswith("gen_ai.request.")}
_USED = {"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"}
SPANS: Mapping[str, tuple[str, set[str], set[str]]] = {
    "chat": (
        "CLIENT",
        {
            "gen_ai.operation.name",
            "gen_ai.provider.name",
            "gen_ai.request.model",
            "server.address",
            "server.port",
        },
        {name for name in TYPES if name.startswith(("gen_ai.response.", "gen_ai.usage."))}
        | _ASKED
        | {"error.type", "gen_ai.conversation.id", "gen_ai.output.type"}
        | (CONTENT - {"gen_ai.tool.call.arguments", "gen_ai.tool.call.result"}),
    ),
    "invoke_agent": (
        "INTERNAL",
        {"gen_ai.operation.name"},
        {
            "gen_ai.agent.name",
            "gen_ai.conversation.id",
            "gen_ai.response.finish_reasons",
            "error.type",
        }
        | _USED
        | (CONTENT - {"gen_ai.tool.call.arguments", "gen_ai.tool.call.result"}),
    ),
    "execute_tool": (
        "INTERNAL",
        {"gen_ai.operation.name", "gen_ai.tool.name"},
        {
            "gen_ai.tool.type",
            "gen_ai.tool.call.id",
            "gen_ai.tool.description",
            "gen_ai.agent.name",
            "error.type",
        }
        | {"gen_ai.conversation.id", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"},
    ),
}
"""Operation → kind of its span, attributes that it must have (with those that a request by URL
always has), and others that it may have."""
SAMPLING: Mapping[str, set[str]] = {
    "chat": {
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "server.address",
        "server.port",
    },
    "invoke_agent": {"gen_ai.operation.name", "gen_ai.agent.name"},
    "execute_tool": {
        "gen_ai.operation.name",
        "gen_ai.tool.name",
        "gen_ai.tool.type",
        "gen_ai.agent.name",
    },
}
"""What must be there when a span is made, so that a sampler sees it."""
_SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
_TOKENS = [
    1,
    4,
    16,
    64,
    256,
    1024,
    4096,
    16384,
    65536,
    262144,
    1048576,
    4194304,
    16777216,
    67108864,
]
_OF_A_CALL = {"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model"}
_ANY_CALL = {"gen_ai.response.model", "server.address", "server.port"}
METRICS: Mapping[str, tuple[str, list[Any] | None, set[str], set[str]]] = {
    "gen_ai.client.inference.duration": ("s", _SECONDS, _OF_A_CALL, _ANY_CALL | {"error.type"}),
    "gen_ai.client.inference.time_to_first_chunk": ("s", _SECONDS, _OF_A_CALL, _ANY_CALL),
    "gen_ai.client.inference.operation.input_tokens": (
        "{token}",
        _TOKENS,
        _OF_A_CALL,
        _ANY_CALL | {"error.type"},
    ),
    "gen_ai.client.inference.operation.output_tokens": (
        "{token}",
        _TOKENS,
        _OF_A_CALL,
        _ANY_CALL | {"error.type"},
    ),
    **{
        f"gen_ai.client.inference.usage.{name}": (
            "{token}",
            None,
            _OF_A_CALL | {"gen_ai.token.modality"},
            _ANY_CALL,
        )
        for name in (
            "cache_read.input_tokens",
            "cache_write.input_tokens",
            "reasoning.output_tokens",
        )
    },
    "gen_ai.invoke_agent.duration": (
        "s",
        None,
        set(),
        {"gen_ai.agent.name", "gen_ai.request.model", "error.type"},
    ),
    "gen_ai.invoke_agent.inference_calls": ("{inference_call}", None, set(), {"gen_ai.agent.name"}),
    "gen_ai.invoke_agent.tool_calls": ("{tool_call}", None, set(), {"gen_ai.agent.name"}),
    "gen_ai.execute_tool.duration": (
        *("s", _SECONDS, {"gen_ai.tool.name"}),
        {"gen_ai.tool.type", "gen_ai.agent.name", "error.type"},
    ),
    "gen_ai.client.operation.duration": ("s", _SECONDS, _OF_A_CALL, _ANY_CALL | {"error.type"}),
    "gen_ai.client.operation.time_to_first_chunk": ("s", _SECONDS, _OF_A_CALL, _ANY_CALL),
    "gen_ai.client.token.usage": (
        "{token}",
        _TOKENS,
        _OF_A_CALL | {"gen_ai.token.type"},
        _ANY_CALL,
    ),
}
"""Metric → unit, buckets where the conventions name some, attributes that it must have, and others
that it may have."""


def check_attributes(attributes: Mapping[str, Any], *, must: set[str], may: set[str]) -> None:
    """Each attribute is one of the conventions', of its type, one of its members, and in its
    place."""
    assert must <= attributes.keys(), must - attributes.keys()
    assert attributes.keys() <= must | may, attributes.keys() - must - may
    for name, value in attributes.items():
        assert type(value) is TYPES[name], (name, value)
        if name in MEMBERS:
            assert value in MEMBERS[name], (name, value)
