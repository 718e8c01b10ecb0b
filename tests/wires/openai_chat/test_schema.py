"""D-100: any schema → one that OpenAI's strict mode takes, or none."""

from __future__ import annotations

from copy import deepcopy
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter

from dragoman.wires.openai_chat import strict_schema

CLOSED = {"additionalProperties": False}


class Color(Enum):
    red = "red"
    blue = "blue"


class Address(BaseModel):
    """Where."""

    street: str = Field(min_length=1)
    number: int | None = None


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str] = []


class Node(BaseModel):
    value: int
    next: Node | None = Field(None, description="The next.")


class Person(BaseModel):
    name: str = Field(description="Full.")
    age: Annotated[int, Field(ge=0)]
    address: Address = Field(description="Home.")
    others: list[Address] = []
    color: Color = Color.red
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    note: str | None = None


def is_strict(schema: Any, *, root: bool = True) -> None:
    """The rules of strict mode, said once more."""
    assert isinstance(schema, dict)
    assert not schema.keys() & {
        "oneOf",
        "allOf",
        "format",
        "default",
        "discriminator",
        "minLength",
        "$schema",
    }
    if "$ref" in schema:
        assert schema.keys() == {"$ref"}
    if "anyOf" in schema:
        assert "type" not in schema
        for one in schema["anyOf"]:
            is_strict(one, root=False)
    assert schema.keys() & {"type", "anyOf", "$ref"}
    if schema.get("type") == "object":
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])
        for one in schema["properties"].values():
            is_strict(one, root=False)
    if schema.get("type") == "array":
        is_strict(schema["items"], root=False)
    if root:
        assert schema["type"] == "object"
        for one in schema.get("$defs", {}).values():
            is_strict(one, root=False)


@pytest.mark.parametrize("model", [Address, Person, Node, Cat])
def test_schemas_of_pydantic_are_strict(model: type[BaseModel]) -> None:
    schema = model.model_json_schema()
    before = deepcopy(schema)
    strict = strict_schema(schema)
    assert strict is not None
    is_strict(strict)
    assert schema == before
    assert strict_schema(strict) == strict


def test_golden_optional_nested_and_recursive() -> None:
    assert strict_schema(Node.model_json_schema()) == {
        "type": "object",
        "title": "Node",
        "properties": {
            "value": {"type": "integer", "title": "Value"},
            "next": {
                "anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}],
                "description": "The next.",
            },
        },
        "required": ["value", "next"],
        **CLOSED,
        "$defs": {
            "Node": {
                "type": "object",
                "title": "Node",
                "properties": {
                    "value": {"type": "integer", "title": "Value"},
                    "next": {
                        "anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}],
                        "description": "The next.",
                    },
                },
                "required": ["value", "next"],
                **CLOSED,
            }
        },
    }


def test_a_reference_with_a_description_becomes_a_union_of_one() -> None:
    strict = strict_schema(Person.model_json_schema())
    assert strict is not None
    assert strict["properties"]["address"] == {
        "anyOf": [{"$ref": "#/$defs/Address"}],
        "description": "Home.",
    }
    assert strict["properties"]["pet"]["anyOf"] == [
        {"$ref": "#/$defs/Cat"},
        {"$ref": "#/$defs/Dog"},
    ]
    assert strict["$defs"]["Color"] == {"type": "string", "title": "Color", "enum": ["red", "blue"]}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"type": "string", "format": "date"}, {"type": "string"}),
        ({"type": ["string", "null"]}, {"type": "string"}),
        ({"type": ["string", "integer", "null"]}, {"type": ["string", "integer", "null"]}),
        ({"type": "null"}, {"type": "null"}),
        ({"enum": ["a", 1]}, {"type": ["string", "integer"], "enum": ["a", 1]}),
        ({"const": True}, {"type": "boolean", "const": True}),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"allOf": [{"type": "string"}], "description": "d"}, {"type": "string", "description": "d"}),
        ({"type": "array", "items": {"type": "string", "format": "x"}, "minItems": 1}, {"type": "array", "minItems": 1, "items": {"type": "string"}}),
        ({"type": "array", "items": {"type": "object", "properties": {"a": {"type": "number"}}, "additionalProperties": True}}, {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"], **CLOSED}}),
        ({"properties": {"a": {"type": "string", "default": "b"}}}, {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], **CLOSED}),
        ({"type": "object", "properties": {}, **CLOSED}, {"type": "object", "properties": {}, "required": [], **CLOSED}),
    ],
)  # fmt: skip
def test_d100_golden(schema: dict[str, Any], strict: dict[str, Any]) -> None:
    root = {"type": "object", "properties": {"it": schema}}
    assert strict_schema(root) == {
        "type": "object",
        "properties": {"it": strict},
        "required": ["it"],
        **CLOSED,
    }


def test_definitions_of_the_older_name() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/A"}},
        "definitions": {"A": {"type": "string", "format": "x"}},
    }
    strict = strict_schema(schema)
    assert strict is not None
    assert strict["definitions"] == {"A": {"type": "string"}}


@pytest.mark.parametrize(
    "part",
    [
        {},
        {"type": "object"},
        {"type": "object", "properties": {}},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "array"},
        {"type": "array", "prefixItems": [{"type": "string"}]},
        {"allOf": [{"type": "string"}, {"minLength": 1}]},
        {"not": {"type": "string"}},
        {"$ref": "#/$defs/Missing"},
        {"$ref": "https://x/schema"},
        {"type": ["object", "string"]},
        {"enum": [{"a": 1}]},
        True,
        "string",
    ],
)
def test_what_strict_mode_cannot_say_is_not_strict(part: Any) -> None:
    assert strict_schema({"type": "object", "properties": {"it": part}}) is None


@pytest.mark.parametrize(
    "keyword",
    [
        "title", "description", "enum", "const", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems",
        "maxItems",
    ],
)  # fmt: skip
def test_d100_keywords_that_strict_mode_knows(keyword: str) -> None:
    part = {"type": "string", keyword: "x"}
    assert strict_schema({"type": "object", "properties": {"it": part}}) == {
        "type": "object", "properties": {"it": part}, "required": ["it"], **CLOSED,
    }  # fmt: skip


@pytest.mark.parametrize(
    "keyword",
    [
        "not", "if", "patternProperties", "dependentRequired", "dependentSchemas", "prefixItems", "contains", "propertyNames", "unevaluatedProperties",
    ],
)  # fmt: skip
def test_d100_keywords_that_cannot_be_left_out(keyword: str) -> None:
    assert (
        strict_schema({"type": "object", "properties": {"it": {"type": "string", keyword: {}}}})
        is None
    )


@pytest.mark.parametrize(
    ("part", "strict"),
    [
        ({"enum": ["a", True, 1, 0.5, None, "b"]}, {"type": ["string", "boolean", "integer", "number", "null"], "enum": ["a", True, 1, 0.5, None, "b"]}),
        ({"const": None}, {"type": "null", "const": None}),
        ({"type": ["null"]}, {"type": "null"}),
        ({"oneOf": [{"type": "string"}], "anyOf": [{"type": "integer"}], "title": "t"}, None),
        ({"allOf": [{"oneOf": [{"type": "string"}], "default": 1}], "default": 2, "title": "t"}, {"anyOf": [{"type": "string"}], "title": "t"}),
        ({"allOf": [{"allOf": [{"type": "string", "enum": ["a"]}]}], "type": "string"}, {"type": "string", "enum": ["a"]}),
        ({"allOf": [{"enum": ["a"]}], "type": "string", "enum": ["b"]}, None),
        ({"allOf": [{"properties": {"a": {"type": "string"}}}], "type": "object", "properties": {"b": {"type": "string"}}}, None),
        ({"allOf": [{"$ref": "#/$defs/B"}], "properties": {"b": {"type": "string"}}}, None),
        ({"$ref": "#/$defs/B", "properties": {"b": {"type": "string"}}}, None),
        ({"$ref": "#/$defs/B", "items": {"type": "string"}}, None),
        ({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"type": "object", "properties": {"b": {"type": "string"}}}]}, None),
        ({"allOf": [{"type": "string", "title": "inner"}], "title": "outer"}, {"type": "string", "title": "outer"}),
        ({"allOf": 5, "type": "string"}, {"type": "string"}),
        ({"$ref": "#/definitions/A"}, {"$ref": "#/definitions/A"}),
        ({"$ref": "#/$defs/B", "title": "t", "format": "x"}, {"anyOf": [{"$ref": "#/$defs/B"}], "title": "t"}),
        ({"$ref": "#/$defs/A"}, None), ({"$ref": "#/definitions/B"}, None), ({"$ref": "A"}, None), ({"anyOf": 5}, None), ({"enum": []}, None),
        ({"type": ["array", "string"]}, None), ({"type": [5, "string"]}, None), ({"type": "array", "items": {"type": "string"}}, ...),
        ({"type": "object", "properties": {"a": {}}}, None), ({"type": "object", "properties": 5}, None),
    ],
)  # fmt: skip
def test_d100_to_the_last_keyword(part: Any, strict: Any) -> None:
    """What would have to hold at once is not strict: one of both was left out, so that answers did
    not satisfy the schema."""
    definitions = {"$defs": {"B": {"type": "string"}}, "definitions": {"A": {"type": "number"}}}
    form = strict_schema({"type": "object", "properties": {"it": part}, **definitions})
    wanted = {
        "type": "object",
        "properties": {"it": part if strict is ... else strict},
        "required": ["it"],
        **CLOSED,
        **definitions,
    }
    assert form == (None if strict is None else wanted)


@pytest.mark.parametrize(
    "root",
    [
        {},
        {"type": "string"},
        {"type": "array", "items": {"type": "string"}},
        {"anyOf": [{"type": "object", "properties": {}, **CLOSED}]},
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}},
    ],
)
def test_the_root_must_be_an_object(root: dict[str, Any]) -> None:
    assert strict_schema(root) is None


@given(
    st.recursive(
        st.sampled_from(
            [
                {"type": "string", "format": "date"},
                {"type": ["integer", "null"]},
                {"const": 1},
                {"$ref": "#/$defs/A"},
            ]
        ),
        lambda inner: (
            st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3).map(
                lambda fields: {"type": "object", "properties": fields, "required": []}
            )
            | inner.map(lambda one: {"type": "array", "items": one})
            | st.lists(inner, min_size=1, max_size=3).map(
                lambda options: {"anyOf": options, "description": "d"}
            )
        ),
        max_leaves=8,
    )
)
def test_d100_it_holds_recursively_and_twice_is_once(part: dict[str, Any]) -> None:
    definitions = {"A": {"type": "object", "properties": {"self": {"$ref": "#/$defs/A"}}}}
    strict = strict_schema({"type": "object", "properties": {"it": part}, "$defs": definitions})
    assert strict is not None
    is_strict(strict)
    assert strict_schema(strict) == strict


def test_an_answer_by_the_strict_schema_satisfies_the_model() -> None:
    answer = '{"name":"A","age":1,"address":{"street":"S","number":null},"others":[],"color":"red","pet":{"kind":"cat","lives":1},"note":null}'
    person = TypeAdapter(Person).validate_json(answer)
    strict = strict_schema(Person.model_json_schema())
    assert strict is not None
    assert set(person.model_dump()) == set(strict["required"])
