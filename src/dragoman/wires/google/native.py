"""This wire's own fields of a value: those beyond the neutral ones, and how the neutral ones were spelled.

The API takes every key in camelCase and in snake_case. Keys that this wire reads are kept in camelCase, and those that
came in snake_case are noted (`spelling["snake"]`); all other keys stay as they came.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, cast

from dragoman.message import Native

__all__ = ["NAME", "camelled", "fields", "is_ours", "merged", "note", "response", "snaked", "spelled", "spelling"]

NAME = "google"
_RESERVED = ("spelling", "response")
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


def snaked(block: Mapping[str, Any], snake: Collection[str]) -> dict[str, Any]:
    """The inverse of `camelled`."""
    return {name if (name := _SNAKE.get(key, key)) in snake else key: value for key, value in block.items()}


def merged(own: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """Own fields and those that are told; objects that stand in both are merged too."""
    out = {**own, **told}
    for key in own.keys() & told.keys():
        if isinstance(own[key], Mapping) and isinstance(told[key], Mapping):
            out[key] = {**own[key], **told[key]}
    return out


def is_ours(native: Native) -> bool:
    """Whether the value came through this wire with something of its own."""
    return native is not None and NAME in native


def fields(native: Native) -> dict[str, Any]:
    """The fields that are written as they are."""
    return {key: value for key, value in _own(native).items() if key not in _RESERVED}


def spelling(native: Native) -> Mapping[str, Any]:
    """How neutral fields were spelled, where it is not the usual way."""
    return _own(native).get("spelling", {})


def response(native: Native) -> Mapping[str, Any]:
    """Of a message: fields of the response around it."""
    return _own(native).get("response", {})


def note(fields: Mapping[str, Any] | None = None, *, mark: bool = False, **reserved: Mapping[str, Any]) -> Native:
    """The native mapping of these fields; `reserved` are `spelling` and `response`. `None` where there is nothing to
    say, unless `mark` asks for a mark that the value came through this wire."""
    own = {**(fields or {}), **{key: value for key, value in reserved.items() if value}}
    return {NAME: own} if own or mark else None


def spelled(native: Native, **how: Any) -> Native:
    """The same native mapping with more noted of the spelling."""
    return note(fields(native), spelling={**spelling(native), **how}, response=response(native))


def _own(native: Native) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", native.get(NAME, {})) if native else {}
