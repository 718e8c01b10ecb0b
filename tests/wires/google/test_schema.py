"""JSON Schema ↔ the older subset that Google's `parameters` and `responseSchema` take."""

from __future__ import annotations

import json

import msgspec
import pytest

from dragoman.request import ModelRequest, ToolSpec
from dragoman.wires import google as wire
from dragoman.wires.google.schema import lift, lower
from support.google import CONTENTS, HI, NEWER, TOWN, same_request


def test_the_older_fields_for_schemas():
    quirks = wire.Quirks(json_schema=False)
    out = wire.dump_request(
        ModelRequest(NEWER, (HI,), (ToolSpec("f", "", TOWN),), output_schema=TOWN), quirks=quirks
    )
    lowered = {"type": "OBJECT", "properties": {"name": {"type": "STRING"}}, "required": ["name"]}
    assert out["tools"][0]["functionDeclarations"][0]["parameters"] == lowered
    assert out["generationConfig"] == {
        "responseSchema": lowered,
        "responseMimeType": "application/json",
    }


@pytest.mark.parametrize("schema", [
    {"type": "OBJECT", "properties": {"a": {"type": "STRING", "nullable": True, "enum": ["x"]}}},
    {"type": "object", "properties": {"a": {"type": "string", "nullable": True}}},
    {"type": "OBJECT", "properties": {"a": {"type": "STRING", "format": "uuid"}}},
    {"type": "OBJECT", "properties": {"a": {"type": "string"}}},
    {"type": "ARRAY", "items": {"type": "INTEGER", "minimum": 1}, "minItems": "1"},
    {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}], "nullable": True},
    {"$ref": "#/x"},
])  # fmt: skip
def test_an_older_schema_is_read_as_json_schema_and_written_again(schema):
    request = same_request(
        {
            "tools": [{"functionDeclarations": [{"name": "f", "parameters": schema}]}],
            "generationConfig": {"responseSchema": schema},
        }
    )
    request = msgspec.convert(msgspec.to_builtins(request), ModelRequest)
    assert wire.dump_request(request)["generationConfig"]["responseSchema"] == schema


def test_an_older_schema_in_lower_case_becomes_json_schema_too():
    given = {"type": "object", "properties": {"a": {"type": "string", "nullable": True}}}
    request = same_request(
        {"generationConfig": {"responseSchema": given, "responseMimeType": "application/json"}}
    )
    assert request.output_schema["properties"]["a"] == {"type": ["string", "null"]}


def test_the_older_schema_becomes_json_schema():
    assert lift(
        {
            "type": "OBJECT",
            "properties": {"type": {"type": "STRING", "nullable": True, "enum": ["x"]}},
        }
    ) == {
        "type": "object",
        "properties": {"type": {"type": ["string", "null"], "enum": ["x", None]}},
    }
    assert lift({"anyOf": [{"type": "STRING"}], "nullable": True}) == {
        "anyOf": [{"type": "string"}, {"type": "null"}]
    }


NODE = {
    "type": "object",
    "properties": {"next": {"$ref": "#/$defs/Node"}, "name": {"type": "string"}},
}


GOLDEN = {
    "a reference is put in its place": (
        {"$defs": {"P": {"type": "integer", "title": "P"}}, "type": "object", "properties": {"p": {"$ref": "#/$defs/P", "description": "d"}}},
        {"type": "OBJECT", "properties": {"p": {"type": "INTEGER", "title": "P", "description": "d"}}},
    ),
    "a recursion ends in any object": (
        {"$defs": {"Node": NODE}, "$ref": "#/$defs/Node"},
        {"type": "OBJECT", "properties": {"next": {"type": "OBJECT"}, "name": {"type": "STRING"}}},
    ),
    "a recursion of the whole": (
        {"type": "array", "items": {"$ref": "#"}},
        {"type": "ARRAY", "items": {"type": "ARRAY", "items": {"type": "OBJECT"}}},
    ),
    "a reference to nothing": ({"$ref": "#/$defs/X", "title": "t"}, {"type": "OBJECT", "title": "t"}),
    "optional, as pydantic writes it": (
        {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None, "title": "T"},
        {"type": "STRING", "nullable": True, "default": None, "title": "T"},
    ),
    "optional by a list of types": ({"type": ["integer", "null"], "minimum": 0}, {"type": "INTEGER", "nullable": True, "minimum": 0}),
    "several types": ({"type": ["integer", "string"]}, {"anyOf": [{"type": "INTEGER"}, {"type": "STRING"}]}),
    "a union": (
        {"oneOf": [{"type": "integer"}, {"type": "string"}], "discriminator": {"propertyName": "kind"}},
        {"anyOf": [{"type": "INTEGER"}, {"type": "STRING"}]},
    ),
    "a union of one": ({"anyOf": [{"type": "integer"}]}, {"anyOf": [{"type": "INTEGER"}]}),
    "what is told not to be null": ({"type": "string", "nullable": False}, {"type": "STRING", "nullable": False}),
    "definitions by their older name": (
        {"definitions": {"P": {"type": "integer"}}, "type": "array", "items": {"$ref": "#/definitions/P"}, "example": [1]},
        {"type": "ARRAY", "items": {"type": "INTEGER"}, "example": [1]},
    ),
    "an optional union": (
        {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]},
        {"anyOf": [{"type": "INTEGER"}, {"type": "STRING"}], "nullable": True},
    ),
    "a constant": ({"const": "a"}, {"type": "STRING", "enum": ["a"]}),
    "an enum with null": ({"type": ["string", "null"], "enum": ["a", None]}, {"type": "STRING", "enum": ["a"], "nullable": True}),
    "an enum of numbers": (
        {"type": "integer", "enum": [1, 2], "description": "How many."},
        {"type": "INTEGER", "description": "How many. One of: 1, 2"},
    ),
    "what the subset has no word for": (
        {"$schema": "x", "type": "object", "additionalProperties": False, "patternProperties": {}, "minProperties": 1},
        {"type": "OBJECT", "minProperties": 1},
    ),
    "formats of strings": (
        {"type": "object", "properties": {"a": {"type": "string", "format": "uuid"}, "b": {"type": "string", "format": "date-time"}}},
        {"type": "OBJECT", "properties": {"a": {"type": "STRING"}, "b": {"type": "STRING", "format": "date-time"}}},
    ),
    "all of": (
        {"$defs": {"A": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}},
         "allOf": [{"$ref": "#/$defs/A"}, {"properties": {"b": {"type": "string"}}, "required": ["b"]}], "description": "d"},
        {"type": "OBJECT", "properties": {"a": {"type": "STRING"}, "b": {"type": "STRING"}}, "required": ["a", "b"], "description": "d"},
    ),
    "properties named like keywords": (
        {"type": "object", "properties": {"$ref": {"type": "string"}, "anyOf": {"type": "array", "items": {"type": "number"}}}},
        {"type": "OBJECT", "properties": {"$ref": {"type": "STRING"}, "anyOf": {"type": "ARRAY", "items": {"type": "NUMBER"}}}},
    ),
    "anything": ({"type": "object", "properties": {"a": True, "b": {}}}, {"type": "OBJECT", "properties": {"a": {}, "b": {}}}),
}  # fmt: skip


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_schemas(name):
    schema, lowered = GOLDEN[name]
    assert lower(schema) == lowered
    assert lower(lift(lowered)) == lowered or name == "an enum of numbers"


def test_older_schemas_in_snake_case():
    body = {
        "contents": CONTENTS,
        "generation_config": {
            "response_schema": {"type": "OBJECT"},
            "response_mime_type": "application/json",
            "thinking_config": {"thinking_level": "low"},
        },
    }
    request = wire.load_request(body)
    assert (request.output_schema, request.settings.reasoning, request.options) == (
        {"type": "object"},
        "low",
        {},
    )
    assert wire.dump_request(request) == body


def test_every_keyword_of_the_older_schema_is_kept():
    kept = {
        "default": 1, "description": "d", "example": 1, "maxItems": 1, "maxLength": 1, "maxProperties": 1, "maximum": 1, "minItems": 1, "minLength": 1,
        "minProperties": 1, "minimum": 1, "pattern": "p", "propertyOrdering": ["a"], "property_ordering": ["a"], "required": ["a"], "title": "t", "format": "f",
    }  # fmt: skip
    assert lower({"type": "integer", **kept}) == {"type": "INTEGER", **kept}
    assert lower({"type": "string", "format": "enum", "enum": ["a"]}) == {
        "type": "STRING",
        "format": "enum",
        "enum": ["a"],
    }
    for kind in ("string", "number", "integer", "boolean", "array", "object"):
        assert lower({"type": kind}) == {"type": kind.upper()}
        assert lower({"type": kind}, types="lower") == {"type": kind}
    assert lower({"type": ["x"], "items": {"type": "object", "title": "t"}}) == {
        "type": "x",
        "items": {"type": "OBJECT", "title": "t"},
    }
    assert [lift({"type": number})["type"] for number in range(1, 8)] == [
        "string", "number", "integer", "boolean", "array", "object", "null",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "lowered"),
    [
        ({"type": ["string", "null"], "enum": ["a"]}, {"type": "STRING", "enum": ["a"], "nullable": True}),
        ({"enum": ["a", None]}, {"type": "STRING", "enum": ["a"], "nullable": True}),
        ({"enum": [1, 2], "description": "d"}, {"description": "d One of: 1, 2"}),
        ({"enum": [1, 2], "type": ["integer", "null"]}, {"type": "INTEGER", "nullable": True, "description": "One of: 1, 2"}),
        ({"properties": {"a": True}}, {"type": "OBJECT", "properties": {"a": {}}}),
        ({"type": ["integer", "string", "null"], "title": "t"}, {"title": "t", "anyOf": [{"type": "INTEGER"}, {"type": "STRING"}], "nullable": True}),
        ({"anyOf": [{"type": "string", "title": "inner"}, {"type": "null"}], "title": "outer"}, {"type": "STRING", "title": "outer", "nullable": True}),
        ({"anyOf": [{"type": "null"}], "title": "t"}, {"title": "t"}),
        ({"allOf": [{"required": ["a", "b"], "title": "t"}, {"required": ["b", "c"], "$defs": {}}], "required": ["a"], "title": "own"}, {"required": ["a", "b", "c"], "title": "own"}),
        ({"allOf": [{"properties": {"a": {"type": "string"}}}], "properties": {"b": {"type": "number"}}}, {"type": "OBJECT", "properties": {"a": {"type": "STRING"}, "b": {"type": "NUMBER"}}}),
        ({"$ref": "#/$defs/A", "nullable": True, "$defs": {"A": {"type": "string"}}}, {"type": "STRING", "nullable": True}),
        ({"items": [1], "type": "array"}, {"type": "ARRAY"}),
    ],
)  # fmt: skip
def test_the_older_schema_to_the_last_keyword(schema, lowered):
    assert lower(schema) == lowered


@pytest.mark.parametrize(
    ("schema", "lifted"),
    [
        ({"type": "STRING", "nullable": True, "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"type": 1, "nullable": False}, {"type": "string", "nullable": False}),
        ({"nullable": True}, {"nullable": True}),
        ({"anyOf": [{"type": "STRING"}], "nullable": True}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"type": True}, {"type": True}),
        ({"items": {"type": "number", "x": 1}, "anyOf": [{"type": "NUMBER"}, 1]}, {"items": {"type": "number", "x": 1}, "anyOf": [{"type": "number"}, 1]}),
    ],
)  # fmt: skip
def test_the_older_schema_is_read_to_the_last_keyword(schema, lifted):
    assert lift(schema) == lifted


def test_definitions_that_name_each_other_twice_do_not_grow_without_bound():
    both = [
        {"properties": {side: {"$ref": f"#/$defs/d{n + 1}"} for side in "ab"}} for n in range(40)
    ]
    schema = {"$defs": {f"d{n}": each for n, each in enumerate(both)}, "$ref": "#/$defs/d0"}
    assert len(json.dumps(lower(schema))) < 1_000_000


def test_parts_of_a_schema_that_are_none_are_passed_over():
    every = {
        "allOf": [{"properties": "x", "required": 5}, {"properties": {"a": 1}, "required": [[1]]}],
        "type": [{}],
    }
    assert lower(every) == {"type": "OBJECT", "properties": {"a": {}}, "required": [[1]]}
    assert lift({"items": 5, "properties": {"a": 1}}) == {"items": 5, "properties": {"a": 1}}
