"""Schemas of tools that llama.cpp's own converter refuses or misreads as they are: lowered, it
takes them all."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Agent, Settings, Tool
from dragoman.errors import SettingsError
from dragoman.providers.local_models import DEFAULT, find_model

pytestmark = [pytest.mark.anyio, pytest.mark.service, pytest.mark.timeout(180)]

NODE = {
    "type": "object",
    "properties": {
        "value": {"type": "integer"},
        "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
    },
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "no arguments": {},
    "an object of anything": {"type": "object", "properties": {}, "additionalProperties": True},
    "boolean schemas": {
        "properties": {"a": {"enum": ["x"]}, "b": True, "c": False},
        "required": ["a"],
    },
    "items that are true": {
        "properties": {"a": {"type": "array", "items": True, "maxItems": 1}},
        "required": ["a"],
    },
    "a tuple": {
        "properties": {
            "a": {"type": "array", "prefixItems": [{"enum": ["x"]}, {"enum": [1]}], "items": False}
        },
        "required": ["a"],
    },
    "a reference to the root": {**NODE, "required": ["value"]},
    "a reference to elsewhere": {"properties": {"a": {"$ref": "https://example.com/schema.json"}}},
    "definitions": {
        "properties": {"a": {"$ref": "#/$defs/Kind", "default": "x"}},
        "required": ["a"],
        "$defs": {"Kind": {"enum": ["x", "y"]}},
    },
    "a condition": {
        "properties": {"a": {"type": "integer"}},
        "if": {"required": ["a"]},
        "then": {"minProperties": 1},
    },
    "patterns and formats": {
        "properties": {
            "a": {"type": "string", "pattern": "(?i)^x(?=y)", "maxLength": 3},
            "b": {"type": "string", "format": "date"},
        },
        "required": ["b"],
    },
    "either of two": {
        "oneOf": [
            {"type": "object", "properties": {"k": {"const": "a"}}, "required": ["k"]},
            {"type": "object", "properties": {"k": {"const": "b"}}, "required": ["k"]},
        ],
        "discriminator": {"propertyName": "k"},
    },
}


@pytest.mark.parametrize("name", SCHEMAS)
async def test_a_call_comes_of_it(name: str) -> None:
    pytest.importorskip("xllamacpp")
    try:
        find_model(DEFAULT)
    except SettingsError as missing:
        pytest.skip(f"no embedded model here: {missing}")
    tool = Tool("act", "Acts", None, input_schema=SCHEMAS[name])
    settings = Settings(tool_choice="required", parallel_tool_calls=False, max_tokens=60)
    async with Agent("local", tools=[tool], settings=settings) as agent:
        result = await agent.send("Act now with x.")
    (call,) = [call for message in result.messages for call in message.tool_calls]
    assert call.name == "act"
    assert isinstance(call.arguments, dict)
    required = SCHEMAS[name].get("required", [])
    assert call.state == "cut" or all(key in call.arguments for key in required)
