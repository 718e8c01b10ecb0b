"""What a server of the Gemini API answers beside contents: lists of models, numbers of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from dragoman.codec.body_schema import TEXT, declare_types, list_schema, object_schema
from dragoman.codec.json_values import if_text
from dragoman.codec.serving import BEARER, KeyPlace, RequestFields, SealForm
from dragoman.json_bytes import Json
from dragoman.message import Content, ThinkingPart
from dragoman.result import ModelInfo
from dragoman.wires.google.keys import snake_paths
from dragoman.wires.google.quirks import OWN
from dragoman.wires.google.tools import SIGNATURE

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

_NUMBERS = ("temperature", "topP", "topK", "presencePenalty", "frequencyPenalty")
_WHOLE = ("maxOutputTokens", "seed", "candidateCount")
_TYPES = declare_types(
    object=("generationConfig", "toolConfig"),
    list_or_object=("tools", "safetySettings"),
    list_or_text=("generationConfig.stopSequences", "generationConfig.responseModalities"),
    number_or_numeral=[f"generationConfig.{name}" for name in _NUMBERS],
    whole_or_numeral=[f"generationConfig.{name}" for name in _WHOLE],
    text_or_object=("systemInstruction",),
)
request_fields = RequestFields(
    idle={
        "store": (False,),
        "safetySettings": ([],),
        "toolConfig": ({},),
        "generationConfig.candidateCount": (1,),
        "generationConfig.responseModalities": (["TEXT"],),
        "generationConfig.responseLogprobs": (False,),
    },
    minor=frozenset(
        [
            "labels",
            "generationConfig.thinkingConfig.includeThoughts",
            "generationConfig.responseMimeType",
        ]
    ),
    candidates="generationConfig.candidateCount",
    references=frozenset(snake_paths("cachedContent")),
    lengths=frozenset(snake_paths("generationConfig.maxOutputTokens")),
    types={path: types for field, types in _TYPES.items() for path in snake_paths(field)},
)
"""What is known of further fields of a request."""

_CONTENT = object_schema(
    {"parts": list_schema(object_schema({"text": TEXT}), least=1)}, role={"enum": ["user", "model"]}
)
_CONTENTS = object_schema(
    {"contents": list_schema(_CONTENT, least=1)}, generationConfig={"type": "object"}
)
_BODIES = {
    "generateContent": _CONTENTS,
    "streamGenerateContent": _CONTENTS,
    "countTokens": _CONTENTS,
    "embedContent": object_schema({"content": _CONTENT}),
    "batchEmbedContents": object_schema(
        {"requests": list_schema(object_schema({"content": _CONTENT}), least=1)}
    ),
}
bodies = {
    f"/{version}/models/{{model}}:{action}": body
    for version in ("v1beta", "v1")
    for action, body in _BODIES.items()
}
"""Path → JSON Schema of what clients send there."""

keys = (KeyPlace("header", "x-goog-api-key"), KeyPlace("query", "key"), *BEARER)
"""Where clients put their key."""
_METHODS = {
    "chat": ["generateContent", "streamGenerateContent", "countTokens"],
    "embeddings": ["embedContent", "batchEmbedContents"],
}


def dump_model(model: ModelInfo, *, now: datetime) -> Json:  # noqa: ARG001 the protocol's
    """Returns a model as Gemini's list of models has it."""
    limits = {"inputTokenLimit": model.longest_prompt, "outputTokenLimit": model.longest_answer}
    return {
        "name": f"models/{model.name}",
        "version": "001",
        "displayName": model.display_name or model.name,
        "supportedGenerationMethods": [
            method for model_kind in model.kinds for method in _METHODS.get(model_kind, ())
        ],
        **{field: most for field, most in limits.items() if most},
    }


def dump_models(models: Sequence[ModelInfo], *, now: datetime) -> Json:
    """Returns the answer to a request for all models."""
    return {"models": [dump_model(model, now=now) for model in models]}


def dump_token_count(count: int) -> Json:
    """Returns the answer to a request to count tokens."""
    return {"totalTokens": count}


def dump_seal(token: str) -> ThinkingPart:
    """Returns the piece in which a client keeps a server's token: the signature of an empty text,
    as answers end with one."""
    return ThinkingPart(native=OWN.note({SIGNATURE: token}, {"thought": "absent"}))


def load_seal(piece: Content) -> str | None:
    """Returns the seal token that a piece of a Gemini request may hold."""
    if isinstance(piece, ThinkingPart):
        return if_text(OWN.fields(piece.native).get(SIGNATURE)) or None
    return None


seal = SealForm(dump_seal, load_seal)
"""Where clients keep a server's token."""
