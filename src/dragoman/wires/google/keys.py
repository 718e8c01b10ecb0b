"""The keys of this wire's objects. The API takes every key in camelCase and in snake_case.

Keys that this wire reads are kept in camelCase, and those that came in snake_case are noted
(`"snake"` of the wire form); all other keys stay as they came.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from itertools import product
from typing import Any

from dragoman.codec.json_values import if_list, if_object
from dragoman.json_bytes import Json, JsonMap

__all__ = [
    "camel",
    "to_camel_case",
    "given",
    "merged",
    "not_usual",
    "snake_form",
    "snake_paths",
    "to_snake_case",
    "part_to_snake_case",
    "snakes",
]

_KEYS = (
    "allowedFunctionNames", "cachedContent", "candidateCount", "codeExecution", "codeExecutionResult", "computerUse",
    "displayName", "enterpriseWebSearch",
    "executableCode", "fileData", "fileSearch", "fileUri", "frequencyPenalty", "functionCall", "functionCallingConfig",
    "functionDeclarations", "functionResponse", "generateContentRequest", "generationConfig", "googleMaps",
    "googleSearch", "googleSearchRetrieval", "includeServerSideToolInvocations", "includeThoughts", "inlineData",
    "maxOutputTokens", "mcpServers", "mimeType", "parametersJsonSchema", "presencePenalty", "responseJsonSchema", "responseMimeType",
    "responseLogprobs", "responseModalities", "responseSchema", "safetySettings", "stopSequences",
    "systemInstruction", "thinkingBudget", "thinkingConfig", "thinkingLevel",
    "thoughtSignature", "toolCall", "toolConfig", "toolResponse", "toolType", "topK", "topP", "urlContext",
)  # fmt: skip
_SNAKE = {key: re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", key) for key in _KEYS}
_CAMEL = {snake: key for key, snake in _SNAKE.items()}


def camel(key: str) -> str:
    """Returns a key of the API in camelCase, also one that this wire does not read."""
    return re.sub(r"_([a-z0-9])", lambda letter: letter[1].upper(), key)


def to_camel_case(block: JsonMap, snake: set[str]) -> Json:
    """Returns Gemini's key or keys in camelCase."""
    out: Json = {}
    for key, value in block.items():
        camel = _CAMEL.get(key)
        if camel is None or camel in block:
            out[key] = value
        else:
            snake.add(key)
            out[camel] = value
    return out


def snake_form(snake: Collection[str], key: str = "snake") -> Json:
    """Returns the wire form for keys that came in snake_case."""
    return {key: sorted(snake)} if snake else {}


def snakes(form: JsonMap, key: str = "snake") -> list[Any]:
    """Returns the keys that came in snake_case: the keys that were noted under `key`."""
    return if_list(form.get(key))


def to_snake_case(block: JsonMap, snake: Collection[str]) -> Json:
    """Converts Gemini's keys to snake_case. The inverse of `to_camel_case`."""
    return {
        name if (name := _SNAKE.get(key, key)) in snake else key: value
        for key, value in block.items()
    }


def snake_paths(path: str) -> list[str]:
    """Returns a path of keys, such as `generationConfig.topK`, in each of the spellings that the
    Gemini API takes."""
    spellings = [
        [key, _SNAKE[key]] if _SNAKE.get(key, key) != key else [key] for key in path.split(".")
    ]
    return [".".join(keys) for keys in product(*spellings)]


def not_usual(block: JsonMap, key: str) -> Any:
    """Returns the note of a Gemini field (by its key) that is not as usual: its value (in a list,
    unless it is empty, as it could look like a note), or that it was absent."""
    value = block.get(key, "absent")
    if key in block and value:
        return [value]
    return value


def given(noted: Any, key: str) -> Json:
    """Returns the Gemini field that `not_usual` noted, or none. Older notes hold a bare text."""
    if noted == "absent":
        return {}
    return {key: noted[0] if isinstance(noted, list) and noted else noted}


def merged(camel_fields: JsonMap, fields: JsonMap) -> Json:
    """Returns the Gemini wire's own fields and the neutral ones. Objects that are in both are
    merged too."""
    out = {**camel_fields, **fields}
    for key in camel_fields.keys() & fields.keys():
        if isinstance(camel_fields[key], Mapping) and isinstance(fields[key], Mapping):
            out[key] = {**camel_fields[key], **fields[key]}
    return out


def part_to_snake_case(part: Json, form: JsonMap) -> Json:
    """Returns a Gemini part with the keys in snake_case that came so, also those one level
    deeper."""
    if not (snake := snakes(form)):
        return part
    deeper = {
        key: to_snake_case(if_object(value), snake) if isinstance(value, dict) else value
        for key, value in part.items()
    }
    return to_snake_case(deeper, snake)
