"""What the Gemini API takes, for models from Gemini 3 on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from google.genai import types

from support.rules.media import base64_problems
from support.rules.pairing import misnamed
from support.rules.typed import faults

_NAME = "[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"
_FIELDS = {
    "contents": list[types.Content],
    "systemInstruction": types.Content,
    "tools": list[types.Tool],
    "toolConfig": types.ToolConfig,
    "generationConfig": types.GenerationConfig,
}


def problems(body: dict[str, Any]) -> Iterator[str]:
    body = _camelled(body)
    for key, value in body.items():
        if key in _FIELDS:
            yield from faults(value, _FIELDS[key], key)
        else:
            yield f"there is no field {key}"
    contents = body.get("contents", [])
    if not contents or contents[0].get("role") != "user":
        yield "the first content is not the user's"
    declared = [
        f["name"] for tool in body.get("tools", []) for f in tool.get("functionDeclarations", [])
    ]
    called = [
        part["functionCall"]["name"]
        for content in contents
        for part in _of(content, "functionCall")
    ]
    answered = [
        part["functionResponse"]["name"]
        for content in contents
        for part in _of(content, "functionResponse")
    ]
    yield from misnamed("the name", [*declared, *called, *answered], _NAME)
    yield from (f"{name} is called and not declared" for name in called if name not in declared)
    yield from _unpaired(contents)
    for place, content in enumerate(
        [*contents, body.get("systemInstruction", {"parts": [{"text": "-"}]})]
    ):
        yield from (f"[{place}]: {problem}" for problem in _of_content(content))


def _camelled(value: Any) -> Any:
    """The same without keys in snake_case, which the API takes as well, outside of what a tool is
    given or gives."""
    if isinstance(value, list):
        return [_camelled(each) for each in value]
    if not isinstance(value, dict):
        return value
    held = ("args", "response", "parametersJsonSchema", "parameters")
    return {
        re.sub("_([a-z])", lambda letter: letter[1].upper(), key): each
        if key in held
        else _camelled(each)
        for key, each in value.items()
    }


def _of(content: dict[str, Any], key: str) -> list[dict[str, Any]]:
    return [part for part in content["parts"] if key in part]


def _unpaired(contents: list[dict[str, Any]]) -> Iterator[str]:
    """Contents of the same role are one turn. The results of a turn's calls are the beginning of
    the next, as many as they."""
    turns: list[tuple[str, list[dict[str, Any]]]] = []
    for content in contents:
        if turns and turns[-1][0] == content.get("role"):
            turns[-1] = (turns[-1][0], [*turns[-1][1], *content["parts"]])
        else:
            turns.append((str(content.get("role")), content["parts"]))
    calls: list[Any] = []
    for place, (_, parts) in enumerate(turns):
        results = [_told(part["functionResponse"]) for part in parts if "functionResponse" in part]
        if len(results) != len(calls):
            yield f"turn {place}: {len(calls)} calls have {len(results)} results"
        elif sorted(results, key=str) != sorted(calls, key=str):
            yield f"turn {place}: the results {results} are not those of {calls}"
        calls = [_told(part["functionCall"]) for part in parts if "functionCall" in part]
        if calls and not place:
            yield "a turn of calls comes first"
    if calls:
        yield f"at the end: {calls} are not answered"


def _told(inner: dict[str, Any]) -> tuple[Any, Any]:
    return inner.get("id"), inner["name"]


def _of_content(content: dict[str, Any]) -> Iterator[str]:
    if not content["parts"]:
        yield "it is empty"
    calls = _of(content, "functionCall")
    if calls and not calls[0].get("thoughtSignature"):
        yield "its first call has no signature"
    for part in content["parts"]:
        if not set(part) - {"thought", "thoughtSignature"}:
            yield f"a part says nothing: {part}"
        if "functionCall" in part and part["functionCall"].get("id") == "":
            yield "a call has an empty id"
        if "thoughtSignature" in part:
            yield from base64_problems(part["thoughtSignature"])
        for inner in (part, *part.get("functionResponse", {}).get("parts", [])):
            if "inlineData" in inner:
                yield from base64_problems(inner["inlineData"]["data"].translate({45: 43, 95: 47}))
