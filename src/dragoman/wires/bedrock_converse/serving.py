"""Describes the Converse API for a server: request bodies, further fields, lists of models, and where
clients keep a token."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from dragoman.codec.body_schema import TEXT, declare_types, list_schema, object_schema
from dragoman.codec.json_values import if_text
from dragoman.codec.serving import RequestFields, SealForm
from dragoman.json_bytes import Json
from dragoman.message import Content, ThinkingPart
from dragoman.result import ModelInfo
from dragoman.wires.bedrock_converse.quirks import OWN

__all__ = ["bodies", "dump_model", "dump_models", "dump_token_count", "request_fields", "seal"]

request_fields = RequestFields(
    idle={
        "system": ([],),
        "toolConfig": ({},),
        "inferenceConfig": ({},),
        "additionalModelRequestFields": ({},),
        "additionalModelResponseFieldPaths": ([],),
        "outputConfig": ({},),
    },
    minor=frozenset(["requestMetadata", "performanceConfig", "serviceTier"]),
    references=frozenset(["guardrailConfig", "projectIdentifier", "promptVariables"]),
    lengths=frozenset(["inferenceConfig.maxTokens", "additionalModelRequestFields.max_tokens"]),
    types=declare_types(
        number=("inferenceConfig.temperature", "inferenceConfig.topP"),
        whole=("inferenceConfig.maxTokens",),
        list=("system", "toolConfig.tools", "inferenceConfig.stopSequences"),
        object=(
            "inferenceConfig",
            "toolConfig",
            "outputConfig",
            "performanceConfig",
            "serviceTier",
            "requestMetadata",
            "additionalModelRequestFields",
        ),
    ),
)
"""Facts about request fields that have no neutral counterpart."""

_BLOCKS = list_schema(object_schema({"text": TEXT}), least=1)
_MESSAGE = object_schema({"role": {"enum": ["user", "assistant"]}, "content": _BLOCKS})
_BODY = object_schema({"messages": list_schema(_MESSAGE, least=1)})
bodies = {
    "/model/{model}/converse": _BODY,
    "/model/{model}/converse-stream": _BODY,
    "/model/{model}/count-tokens": object_schema({"input": object_schema({"converse": _BODY})}),
}
"""Path → JSON Schema of the body that clients send there."""


def dump_model(model: ModelInfo, *, now: datetime) -> Json:  # noqa: ARG001 the protocol's
    """Writes a model as the answer to Bedrock's GetFoundationModel."""
    return {"modelDetails": _describe_model(model)}


def dump_models(models: Sequence[ModelInfo], *, now: datetime) -> Json:  # noqa: ARG001 the protocol's
    """Writes the answer to Bedrock's ListFoundationModels."""
    return {"modelSummaries": [_describe_model(model) for model in models]}


def dump_token_count(count: int) -> Json:
    """Writes the answer to Bedrock's CountTokens."""
    return {"inputTokens": count}


def dump_seal(token: str) -> ThinkingPart:
    """Returns the piece in which a client keeps a server's token: the signature of reasoning."""
    return ThinkingPart(native=OWN.note({"signature": token}))


def load_seal(piece: Content) -> str | None:
    """Returns the token that a piece of a Converse request may hold, or None."""
    fields = OWN.fields(piece.native) if isinstance(piece, ThinkingPart) else {}
    return if_text(fields.get("signature")) or None


seal = SealForm(dump_seal, load_seal)
"""Where clients keep a server's token."""


def _describe_model(model: ModelInfo) -> Json:
    """Returns a model as Bedrock describes it."""
    return {
        "modelArn": f"arn:aws:bedrock:us-east-1::foundation-model/{model.name}",
        "modelId": model.name,
        "modelName": model.display_name or model.name,
        "responseStreamingSupported": True,
    }
