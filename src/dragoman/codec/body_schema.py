"""JSON Schemas of the bodies that a wire's clients send, for the OpenAPI document of a server: what they must hold, not all they may."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

__all__ = [
    "BOOLEAN",
    "CHAT_BODY",
    "EMBEDDINGS_BODY",
    "TEXT",
    "JsonSchema",
    "a_list",
    "an_object",
    "either",
]

JsonSchema: TypeAlias = Mapping[str, Any]

TEXT: JsonSchema = {"type": "string"}
BOOLEAN: JsonSchema = {"type": "boolean"}


def an_object(required: Mapping[str, JsonSchema] = {}, **optional: JsonSchema) -> JsonSchema:
    """An object with these fields, among others."""
    return {"type": "object", "required": list(required), "properties": {**required, **optional}}


def a_list(item: JsonSchema, *, least: int = 0) -> JsonSchema:
    """A list of such values, so many at least."""
    return {"type": "array", "items": item, **({"minItems": least} if least else {})}


def either(*schemas: JsonSchema) -> JsonSchema:
    """A value of one of these schemas."""
    return {"anyOf": list(schemas)}


def _message_of(*roles: str) -> JsonSchema:
    content = either(TEXT, a_list(an_object({"type": {"const": "text"}, "text": TEXT}), least=1))
    return an_object({"role": {"enum": list(roles)}, "content": content})


CHAT_BODY = an_object(
    {
        "model": TEXT,
        "messages": a_list(
            either(
                _message_of("system", "user", "assistant"), an_object({"role": {"const": "tool"}})
            ),
            least=1,
        ),
    },
    stream=BOOLEAN,
    temperature={"type": "number", "minimum": 0},
    tools=a_list({"type": "object"}),
)
"""Of the Chat Completions API and those that took its messages."""

EMBEDDINGS_BODY = an_object({"model": TEXT, "input": either(TEXT, a_list(TEXT, least=1))})
"""Of OpenAI's embeddings, and those that took them."""
