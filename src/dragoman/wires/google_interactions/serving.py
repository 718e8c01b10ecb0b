"""Describes the Interactions API for a server: request bodies and further fields. Its lists of
models are those of the Gemini API."""

from __future__ import annotations

from dragoman.codec.body_schema import (
    BOOLEAN,
    TEXT,
    any_of,
    declare_types,
    list_schema,
    object_schema,
)
from dragoman.codec.json_values import if_text
from dragoman.codec.serving import RequestFields, SealForm, forward_to
from dragoman.message import Content, ThinkingPart
from dragoman.wires.google.serving import dump_model, dump_models, keys
from dragoman.wires.google_interactions.quirks import OWN

__all__ = [
    "bodies",
    "dump_model",
    "dump_models",
    "dump_seal",
    "forward",
    "keys",
    "load_seal",
    "request_fields",
    "seal",
]

forward = forward_to("/interactions")
"""Passes a client's body to a provider of the same API."""

request_fields = RequestFields(
    idle={
        "store": (False, True),
        "background": (False,),
        "stream": (False,),
        "tools": ([],),
        "generation_config": ({},),
        "safety_settings": ([],),
        "response_modalities": (["text"],),
    },
    minor=frozenset(["labels", "service_tier", "generation_config.thinking_summaries"]),
    references=frozenset(
        ["previous_interaction_id", "cached_content", "environment", "continuation_token"]
    ),
    lengths=frozenset(["generation_config.max_output_tokens"]),
    types=declare_types(
        number=("generation_config.temperature", "generation_config.top_p"),
        whole=("generation_config.max_output_tokens", "generation_config.seed"),
        flag=("stream", "store", "background"),
        list=("tools", "response_modalities", "generation_config.stop_sequences"),
        object=("generation_config",),
        text=("previous_interaction_id", "system_instruction", "generation_config.thinking_level"),
    ),
    unstored={"store": False},
)
"""Facts about request fields that have no neutral counterpart."""

_INPUT = any_of(TEXT, {"type": "object"}, list_schema({"type": "object"}, least=1))
_BODY = object_schema({"model": TEXT, "input": _INPUT}, stream=BOOLEAN)
bodies = {"/v1beta/interactions": _BODY, "/v1/interactions": _BODY}
"""Path → JSON Schema of the body that clients send there."""


def dump_seal(token: str) -> ThinkingPart:
    """Returns the piece in which a client keeps a server's token: the signature of a thought."""
    return ThinkingPart(native=OWN.note({"signature": token}))


def load_seal(piece: Content) -> str | None:
    """Returns the token that a piece of an Interactions request may hold, or None."""
    fields = OWN.fields(piece.native) if isinstance(piece, ThinkingPart) else {}
    return if_text(fields.get("signature")) or None


seal = SealForm(dump_seal, load_seal)
"""Where clients keep a server's token."""
