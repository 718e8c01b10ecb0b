"""The keys of this wire's objects. The API takes every key in camelCase and in snake_case.

Keys that this wire reads are kept in camelCase, and those that came in snake_case are noted (`"snake"` of the wire form);
all other keys stay as they came.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from dragoman.codec.json_values import if_list

__all__ = [
    "camelled",
    "given",
    "merged",
    "not_usual",
    "snaked",
    "snakes",
]

_KEYS = (
    "allowedFunctionNames", "codeExecution", "codeExecutionResult", "computerUse", "displayName", "enterpriseWebSearch",
    "executableCode", "fileData", "fileSearch", "fileUri", "frequencyPenalty", "functionCall", "functionCallingConfig",
    "functionDeclarations", "functionResponse", "generateContentRequest", "generationConfig", "googleMaps",
    "googleSearch", "googleSearchRetrieval", "includeServerSideToolInvocations", "includeThoughts", "inlineData",
    "maxOutputTokens", "mimeType", "parametersJsonSchema", "presencePenalty", "responseJsonSchema", "responseMimeType",
    "responseSchema", "stopSequences", "systemInstruction", "thinkingBudget", "thinkingConfig", "thinkingLevel",
    "thoughtSignature", "toolCall", "toolConfig", "toolResponse", "toolType", "topK", "topP", "urlContext",
)  # fmt: skip
_SNAKE = {key: re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", key) for key in _KEYS}
_CAMEL = {snake: key for key, snake in _SNAKE.items()}


def camelled(block: Mapping[str, Any], snake: set[str]) -> dict[str, Any]:
    """The same object, the keys that this wire reads in camelCase. Adds to `snake` those that were not."""
    out: dict[str, Any] = {}
    for key, value in block.items():
        camel = _CAMEL.get(key)
        if camel is None or camel in block:
            out[key] = value
        else:
            snake.add(key)
            out[camel] = value
    return out


def snakes(how: Mapping[str, Any], key: str = "snake") -> list[Any]:
    """The keys that came in snake_case, as they were noted under `key`."""
    return if_list(how.get(key))


def snaked(block: Mapping[str, Any], snake: Collection[str]) -> dict[str, Any]:
    """The inverse of `camelled`."""
    return {name if (name := _SNAKE.get(key, key)) in snake else key: value for key, value in block.items()}


def not_usual(block: Mapping[str, Any], key: str) -> Any:
    """The note of a field that is not as usual: its value (a text or list in a list, as it could look like a note), or that it was absent."""
    value = block.get(key, "absent")
    return [value] if key in block and value and isinstance(value, str | list) else value


def given(noted: Any, key: str) -> dict[str, Any]:
    """The inverse: the field, or none. Older notes hold a bare text."""
    if noted == "absent":
        return {}
    return {key: noted[0] if isinstance(noted, list) and noted else noted}


def merged(own: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """Own fields and those that are told; objects that stand in both are merged too."""
    out = {**own, **told}
    for key in own.keys() & told.keys():
        if isinstance(own[key], Mapping) and isinstance(told[key], Mapping):
            out[key] = {**own[key], **told[key]}
    return out
