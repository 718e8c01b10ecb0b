"""JSON Schemas of the bodies that a wire's clients send, for the OpenAPI document of a server: what
they must hold, not all they may."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

from dragoman.json_bytes import JsonMap

__all__ = [
    "BOOLEAN",
    "CHAT_BODY",
    "EMBEDDINGS_BODY",
    "MEDIA_BODIES",
    "TRANSCRIPTION_BODY",
    "TEXT",
    "JsonSchema",
    "JsonType",
    "list_schema",
    "object_schema",
    "any_of",
    "find_type_fault",
    "declare_types",
]


JsonSchema: TypeAlias = JsonMap

TEXT: JsonSchema = {"type": "string"}
BOOLEAN: JsonSchema = {"type": "boolean"}


def object_schema(required: Mapping[str, JsonSchema] = {}, **optional: JsonSchema) -> JsonSchema:
    """Returns an object with these fields, among others."""
    return {"type": "object", "required": list(required), "properties": {**required, **optional}}


def list_schema(item: JsonSchema, *, least: int = 0) -> JsonSchema:
    """Returns a list of such values, so many at least."""
    return {"type": "array", "items": item, **({"minItems": least} if least else {})}


def any_of(*schemas: JsonSchema) -> JsonSchema:
    """Returns a value of one of these schemas."""
    return {"anyOf": list(schemas)}


def _message_of(*roles: str) -> JsonSchema:
    """Returns the schema that a request body is checked by for a message with one of these
    roles."""
    content = any_of(
        TEXT, list_schema(object_schema({"type": {"const": "text"}, "text": TEXT}), least=1)
    )
    return object_schema({"role": {"enum": list(roles)}, "content": content})


CHAT_BODY = object_schema(
    {
        "model": TEXT,
        "messages": list_schema(
            any_of(
                _message_of("system", "user", "assistant"),
                object_schema({"role": {"const": "tool"}}),
            ),
            least=1,
        ),
    },
    stream=BOOLEAN,
    temperature={"type": "number", "minimum": 0},
    tools=list_schema({"type": "object"}),
)
"""Of the Chat Completions API and those that took its messages."""

EMBEDDINGS_BODY = object_schema({"model": TEXT, "input": any_of(TEXT, list_schema(TEXT, least=1))})
"""Of OpenAI's embeddings, and those that took them."""

_FILE: JsonSchema = {"type": "string", "format": "binary"}
_FORMATS: JsonSchema = {"enum": ["json", "text", "srt", "verbose_json", "vtt"]}
TRANSCRIPTION_BODY = object_schema(
    {"model": TEXT, "file": _FILE}, stream=BOOLEAN, language=TEXT, response_format=_FORMATS
)
"""Of a form with a recording."""
MEDIA_BODIES: Mapping[str, JsonSchema] = {
    "/v1/images/generations": object_schema(
        {"model": TEXT, "prompt": TEXT}, n={"type": "integer", "minimum": 1}, stream=BOOLEAN
    ),
    "/v1/images/edits": object_schema(
        {"model": TEXT, "prompt": TEXT, "image": any_of(_FILE, list_schema(_FILE, least=1))},
        mask=_FILE,
        stream=BOOLEAN,
    ),
    "/v1/audio/speech": object_schema({"model": TEXT, "input": TEXT, "voice": TEXT}),
    "/v1/audio/transcriptions": TRANSCRIPTION_BODY,
}
"""Of OpenAI's endpoints for media."""


JsonType: TypeAlias = Literal[
    "a number",
    "a whole number",
    "a number as a text",
    "true or false",
    "a text",
    "a list",
    "an object",
]

_NUMBERS = (int, float)
_NUMERAL = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def declare_types(**fields: Iterable[str]) -> dict[str, tuple[JsonType, ...]]:
    """Returns the fields of a body schema by type: `typed(number=("temperature",),
    text_or_list=("stop",))`; words as in `_WORDS`, joined by `_or_`."""
    return {
        field: tuple([_WORDS[type_name] for type_name in type_names.split("_or_")])
        for type_names, names in fields.items()
        for field in names
    }


_WORDS: Mapping[str, JsonType] = {
    "number": "a number",
    "whole": "a whole number",
    "numeral": "a number as a text",
    "flag": "true or false",
    "text": "a text",
    "list": "a list",
    "object": "an object",
}


def find_type_fault(value: Any, types: Iterable[JsonType]) -> str:
    """Returns the JSON types that a field should have by the body schema, such as "string or
    array", or an empty text if the value has one of them. Null is allowed, as most APIs take it for
    a field that is left out."""
    types = tuple(types)
    if value is None or any(_has_type(value, json_type) for json_type in types):
        return ""
    return " or ".join(types)


def _has_type(value: Any, json_type: JsonType) -> bool:
    """Returns whether a value has a type of the body schema."""
    if json_type in ("a number", "a whole number"):
        is_number = isinstance(value, _NUMBERS) and not isinstance(value, bool)
        return is_number and (json_type == "a number" or value % 1 == 0)
    if json_type == "a number as a text":
        return isinstance(value, str) and _NUMERAL.fullmatch(value) is not None
    kinds: Mapping[JsonType, type] = {
        "true or false": bool,
        "a text": str,
        "a list": list,
        "an object": dict,
    }
    return isinstance(value, kinds[json_type])
