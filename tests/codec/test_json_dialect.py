"""Output schemas in the dialects of Anthropic, Google and Cohere: golden forms, and what any of
them keeps."""

from __future__ import annotations

from copy import deepcopy
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator as Validator
from pydantic import BaseModel, Field, TypeAdapter

from dragoman import wires
from dragoman.codec.schema_dialect import JsonDialect, fit_schema
from dragoman.message import Message, Origin
from dragoman.request import ModelRequest

CLOSED = {"additionalProperties": False}
STRING = {"type": "string"}
NODE = {
    "type": "object",
    "properties": {
        "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
        "name": STRING,
    },
    "required": ["children", "name"],
}
TREE = {
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/Node"}},
    "required": ["root"],
    "$defs": {"Node": NODE},
}


def sent(wire: str, schema: dict[str, Any]) -> tuple[dict[str, Any] | None, list[str]]:
    """The schema that a wire sends, and what was lost."""
    losses: list[Any] = []
    request = ModelRequest("m", (Message.user("x"),), output_schema=schema)
    body = wires.get(wire).dump_request(request, target=Origin("p", model="m"), losses=losses)
    place: dict[str, tuple[str, ...]] = {
        "anthropic": ("output_config", "format", "schema"),
        "google": ("generationConfig", "responseJsonSchema"),
        "cohere": ("response_format", "json_schema"),
    }
    found: Any = body
    for key in place[wire]:
        found = (found or {}).get(key)
    return found, [loss.what for loss in losses]


def of(part: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"it": part},
        "required": ["it"],
        "$defs": {"A": {**STRING, "title": "A"}},
    }


PARTS: dict[str, tuple[Any, Any, Any, Any]] = {
    # what it shows: (schema, Anthropic, Google, Cohere); `...`: unchanged
    "a plain string": (STRING, ..., ..., ...),
    "a description": ({**STRING, "description": "d"}, ..., ..., ...),
    "an enum": ({**STRING, "enum": ["a", "b"]}, ..., ..., ...),
    "a constant": ({**STRING, "const": "a"}, ..., {**STRING, "enum": ["a"]}, ...),
    "a default": (
        {**STRING, "default": "a"},
        ...,
        STRING,
        STRING,
    ),
    "a bound": (
        {"type": "integer", "minimum": 1, "description": "d"},
        {"type": "integer", "description": "d\nminimum: 1"},
        ...,
        {"type": "integer", "description": "d\nminimum: 1"},
    ),
    "a pattern": (
        {**STRING, "pattern": "^a"},
        {**STRING, "description": 'pattern: "^a"'},
        {**STRING, "description": 'pattern: "^a"'},
        ...,
    ),
    "a format": (
        {**STRING, "format": "email"},
        ...,
        ...,
        {**STRING, "description": 'format: "email"'},
    ),
    "a format of nobody's": (
        {**STRING, "format": "color"},
        {**STRING, "description": 'format: "color"'},
        ...,
        {**STRING, "description": 'format: "color"'},
    ),
    "at least one": (
        {"type": "array", "items": STRING, "minItems": 1},
        ...,
        ...,
        {"type": "array", "items": STRING, "description": "minItems: 1"},
    ),
    "at least two": (
        {"type": "array", "items": STRING, "minItems": 2},
        {"type": "array", "items": STRING, "description": "minItems: 2"},
        ...,
        {"type": "array", "items": STRING, "description": "minItems: 2"},
    ),
    "a union": (
        {"oneOf": [STRING, {"type": "integer"}], "discriminator": {"propertyName": "k"}},
        {"anyOf": [STRING, {"type": "integer"}]},
        {"anyOf": [STRING, {"type": "integer"}]},
        {"anyOf": [STRING, {"type": "integer"}]},
    ),
    "nullable by a list": (
        {"type": ["string", "null"], "enum": ["a", None]},
        {"anyOf": [{**STRING, "enum": ["a"]}, {"type": "null"}]},
        ...,
        {"anyOf": [{**STRING, "enum": ["a"]}, {"type": "null"}]},
    ),
    "a reference": ({"$ref": "#/$defs/A"}, ..., ..., ...),
    "a reference with a description": (
        {"$ref": "#/$defs/A", "description": "d"},
        {"anyOf": [{"$ref": "#/$defs/A"}], "description": "d"},
        {"anyOf": [{"$ref": "#/$defs/A"}], "description": "d"},
        {"anyOf": [{"$ref": "#/$defs/A"}], "description": "d"},
    ),
    "all of one": (
        {"allOf": [{"$ref": "#/$defs/A"}], "default": "x"},
        {"anyOf": [{"$ref": "#/$defs/A"}], "default": "x"},
        {"$ref": "#/$defs/A"},
        {"$ref": "#/$defs/A"},
    ),
    "all of two": (
        {"allOf": [{"properties": {"a": STRING}, "required": ["a"]}, {"properties": {"b": STRING}, "required": ["b"]}], "type": "object"},
        {"type": "object", "properties": {"a": STRING, "b": STRING}, "required": ["a", "b"], **CLOSED},
        {"type": "object", "properties": {"a": STRING, "b": STRING}, "required": ["a", "b"]},
        {"type": "object", "properties": {"a": STRING, "b": STRING}, "required": ["a", "b"]},
    ),
    "an object with nothing required": (
        {"type": "object", "properties": {"a": STRING}},
        {"type": "object", "properties": {"a": STRING}, **CLOSED},
        ...,
        {"type": "object", "properties": {"a": STRING}, "required": ["a"]},
    ),
    "a closed object": (
        {"type": "object", "properties": {"a": STRING}, "required": ["a"], **CLOSED},
        ...,
        ...,
        {"type": "object", "properties": {"a": STRING}, "required": ["a"]},
    ),
    "free keys": (
        {"type": "object", "additionalProperties": STRING},
        None,
        ...,
        {"type": "object"},
    ),
    "anything": ({}, None, ..., ...),
    "a tuple": (
        {"type": "array", "prefixItems": [STRING, {"const": 1}]},
        {"type": "array", "description": 'prefixItems: [{"type":"string"},{"const":1}]'},
        {"type": "array", "prefixItems": [STRING, {"enum": [1]}]},
        {"type": "array", "description": 'prefixItems: [{"type":"string"},{"const":1}]'},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_golden(name: str) -> None:
    part, *expected = PARTS[name]
    schema = of(part)
    before = deepcopy(schema)
    for wire, want in zip(("anthropic", "google", "cohere"), expected, strict=True):
        got, lost = sent(wire, schema)
        assert schema == before
        if want is None:
            assert got is None and lost == ["output_schema"]
            continue
        assert got is not None and got["properties"]["it"] == (part if want is ... else want), wire
        assert got["$defs"]["A"]["type"] == "string"
        assert lost == []
        assert ("additionalProperties" in got) == (wire == "anthropic")


def test_recursion() -> None:
    assert sent("anthropic", TREE) == (None, ["output_schema"])
    google, _ = sent("google", TREE)
    assert google is not None and google["required"] == ["root"]
    assert google["$defs"]["Node"]["required"] == ["name"], (
        "a property that leads back must not be required"
    )
    cohere, _ = sent("cohere", TREE)
    assert cohere == TREE


def test_a_recursive_model_of_pydantic_is_an_object_at_the_root() -> None:
    class Tree(BaseModel):
        children: list[Tree] = []

    for wire in ("google", "cohere"):
        schema, lost = sent(wire, Tree.model_json_schema())
        assert (
            schema is not None
            and schema["type"] == "object"
            and "Tree" in schema["$defs"]
            and not lost
        )


@pytest.mark.parametrize("reference", ["#/$defs/Missing", "https://x.example/schema"])
def test_a_reference_to_elsewhere_has_no_form(reference: str) -> None:
    assert (
        fit_schema(
            {"type": "object", "properties": {"a": {"$ref": reference}}},
            JsonDialect(keywords=frozenset()),
        )
        is None
    )
    assert sent("cohere", {"type": "object", "properties": {"a": {"$ref": reference}}})[1] == [
        "output_schema"
    ]


@pytest.mark.parametrize("wire", ["anthropic", "google", "cohere"])
def test_a_schema_that_was_loaded_goes_back_as_it_was(wire: str) -> None:
    odd = {"type": "object", "properties": {"a": {"oneOf": [{"const": 1}], "minimum": 1}}}
    body: dict[str, Any] = {
        "anthropic": {"model": "m", "max_tokens": 1, "messages": [], "output_config": {"format": {"type": "json_schema", "schema": odd}}},
        "google": {"contents": [], "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": odd}},
        "cohere": {"model": "m", "messages": [], "stream": False, "response_format": {"type": "json_object", "json_schema": odd}},
    }[wire]  # fmt: skip
    assert wires.get(wire).dump_request(wires.get(wire).load_request(body)) == body


ANY = JsonDialect(keywords=frozenset({"title", "description", "const"}))
SHUT = JsonDialect(keywords=frozenset({"title", "description"}), closed=True, recursive=False)
CUT = JsonDialect(keywords=frozenset(), cut_recursion=True)


@pytest.mark.parametrize(
    "note",
    ["$schema", "$id", "$comment", "examples", "example", "deprecated", "default"],
)
def test_what_narrows_nothing_is_left_out_without_a_word(note: str) -> None:
    assert fit_schema({"type": "object", "properties": {"a": {**STRING, note: "x"}}}, CUT) == {
        "type": "object",
        "properties": {"a": STRING},
    }


def test_a_description_that_is_not_kept_is_not_told_as_a_constraint() -> None:
    assert fit_schema({"type": "object", "description": "d"}, CUT) == {"type": "object"}


@pytest.mark.parametrize(
    ("schema", "form"),
    [
        ({"oneOf": [STRING], "title": "T"}, {"anyOf": [STRING], "title": "T"}),
        ({"oneOf": [{"const": 1}], "anyOf": [STRING]}, {"anyOf": [STRING]}),
        ({"properties": {"a": STRING}}, {"properties": {"a": STRING}}),
        ({"type": ["object"], "properties": {"a": STRING}}, {"type": ["object"], "properties": {"a": STRING}}),
        ({"allOf": [STRING, {"title": "T"}]}, {"type": "string", "title": "T"}),
        ({"allOf": [{"$ref": "#/$defs/A"}, {"description": "d"}]}, {"type": "object", "properties": {"a": STRING}, "description": "d"}),
        ({"allOf": [{"oneOf": [STRING]}]}, {"anyOf": [STRING]}),
        ({"items": [STRING], "type": "array"}, {"type": "array", "items": {}}),
        ({"type": "object", "additionalProperties": {"oneOf": [STRING]}}, {"type": "object", "additionalProperties": {"anyOf": [STRING]}}),
        ({"type": "object", "additionalProperties": False}, {"type": "object", "additionalProperties": False}),
    ],
)  # fmt: skip
def test_the_structure(schema: dict[str, Any], form: dict[str, Any]) -> None:
    definitions = {"A": {"type": "object", "properties": {"a": STRING}}}
    fitted = fit_schema({"type": "object", "properties": {"it": schema}, "$defs": definitions}, ANY)
    assert fitted == {"type": "object", "properties": {"it": form}, "$defs": definitions}


@pytest.mark.parametrize(
    "part",
    [
        {"allOf": [{"$ref": "#/$defs/B"}, STRING]},
        {"allOf": [{"$ref": "#/$defs/C"}, STRING]},
        {"allOf": [{"$ref": "#/$defs/Missing"}, STRING]},
    ],
)
def test_an_all_of_that_would_have_to_be_followed_further_has_no_form(part: dict[str, Any]) -> None:
    definitions = {"A": STRING, "B": {"$ref": "#/$defs/A"}, "C": {"allOf": [STRING]}}
    assert (
        fit_schema({"type": "object", "properties": {"it": part}, "$defs": definitions}, ANY)
        is None
    )


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "object"}, False),
        ({"type": "object", "additionalProperties": True}, False),
        ({"type": "object", "additionalProperties": STRING, "properties": {"a": STRING}}, False),
        ({"type": "object", "additionalProperties": True, "properties": {"a": STRING}}, True),
        ({"type": "object", **CLOSED}, True),
    ],
)
def test_where_objects_are_closed_free_keys_have_no_form(
    schema: dict[str, Any], said: bool
) -> None:
    assert (fit_schema(schema, SHUT) is not None) == said


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}},
        {"$ref": "#"},
        {"$ref": "#/$defs/Missing"},
    ],
)
def test_a_root_that_leads_nowhere_has_no_form(schema: dict[str, Any]) -> None:
    assert fit_schema(schema, ANY) is None


def test_recursion_by_way_of_another_definition_and_of_the_whole() -> None:
    definitions = {
        "A": {"type": "object", "properties": {"b": {"anyOf": [{"$ref": "#/$defs/B"}]}, "c": {"$ref": "#/$defs/C"}}, "required": ["b", "c"]},
        "B": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"]},
        "C": {"type": "object", "properties": {"d": {"$ref": "#/definitions/D"}}, "required": ["d"]},
    }  # fmt: skip
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}, "next": {"$ref": "#"}},
        "required": ["a", "next"],
        "$defs": definitions,
        "definitions": {"D": STRING},
    }
    form = fit_schema(schema, CUT)
    assert form is not None
    required = {name: each.get("required") for name, each in form["$defs"].items()}
    assert required == {"A": ["c"], "B": None, "C": ["d"]}
    assert form["required"] == ["a"]
    assert form["definitions"] == {"D": STRING}
    assert fit_schema(schema, SHUT) is None
    without = {
        **schema,
        "properties": {"c": {"$ref": "#/$defs/C"}},
        "$defs": {"C": definitions["C"]},
    }
    assert fit_schema({**without, "required": ["c"]}, SHUT) is not None


def only(*kept: str, **flags: Any) -> JsonDialect:
    return JsonDialect(keywords=frozenset(kept), **flags)


ALL = {
    "type": "object", "properties": {"a": STRING}, "additionalProperties": STRING, "required": ["a"], "items": STRING, "oneOf": [1], "anyOf": 5,
    "allOf": 5, "$defs": {"x": STRING}, "definitions": {}, "title": "t", "$schema": "x", "discriminator": {}, "not": {"a": 1}, "description": "d",
}  # fmt: skip
ENUM = {"type": ["string", "integer", "null"], "enum": ["a", None], "description": "x"}
EXACT: dict[str, tuple[Any, JsonDialect, Any]] = {
    "only constraints are told in words": (
        ALL, only(free=False),
        {"type": "object", "description": 'd\nnot: {"a":1}', "properties": {"a": STRING}, "required": ["a"], "items": STRING},
    ),
    "a union beside another": ({"anyOf": [STRING, {"type": "integer"}], "oneOf": [STRING], "type": "string"}, only(), {"anyOf": [STRING, {"type": "integer"}]}),
    "a constant that is null": ({"const": None}, only(const=False), {"enum": [None]}),
    "a constant in words": ({"const": 1, "description": "d"}, only(), {"description": "d\nconst: 1"}),
    "a constant and words": ({"const": 1, "description": "d", "minimum": 3}, only(const=False), {"enum": [1], "description": "d\nminimum: 3"}),
    "an empty description": ({"description": "", "minimum": 3}, only("description"), {"description": "minimum: 3"}),
    "several types": (
        ENUM, only("enum", "description", lists=False),
        {"anyOf": [{**STRING, "enum": ["a"], "description": "x"}, {"type": "integer", "enum": ["a"], "description": "x"}, {"type": "null"}]},
    ),
    "several types in a list": ({"type": ["string", "integer"]}, only(), {"type": ["string", "integer"]}),
    "one type in a list": ({"type": ["string"]}, only(lists=False), {"type": ["string"]}),
    "an object or null": (
        {"type": ["object", "null"], "properties": {"a": STRING}}, only(lists=False),
        {"anyOf": [{"type": "object", "properties": {"a": STRING}}, {"type": "null"}]},
    ),
    "some required": ({"type": "object", "properties": {"a": STRING, "b": STRING}}, only(some_required=True), {"type": "object", "properties": {"a": STRING, "b": STRING}, "required": ["a", "b"]}),
    "enough required": ({"type": "object", "properties": {"a": STRING, "b": STRING}, "required": ["b"]}, only(some_required=True), {"type": "object", "properties": {"a": STRING, "b": STRING}, "required": ["b"]}),
    "nothing to require": ({"type": "object", "required": ["a"]}, only(some_required=True), {"type": "object"}),
    "only some values": (
        {"minItems": 1, "format": "x", "description": "d"}, only("minItems", "format", only={"minItems": frozenset([0, 1]), "format": frozenset(["y"])}),
        {"minItems": 1, "description": 'd\nformat: "x"'},
    ),
    "a tuple": ({"type": "array", "prefixItems": [STRING, True], "items": True}, only("prefixItems"), {"type": "array", "prefixItems": [STRING, {}], "items": {}}),
    "a tuple of another shape": ({"prefixItems": 5}, only("prefixItems"), {"prefixItems": []}),
    "anything": (True, only(), {}),
    "anything where objects are closed": (True, only(closed=True), None),
    "anything with a title where objects are closed": ({"title": "t"}, only("title", closed=True), {"title": "t"}),
    "anything whose title is not kept": ({"title": "t"}, only(closed=True), None),
    "a reference and more": ({"$ref": "#/$defs/A", "title": "t", "minimum": 1}, only("title"), {"anyOf": [{"$ref": "#/$defs/A"}], "title": "t", "description": "minimum: 1"}),
    "what holds at once": (
        {"allOf": [{"properties": {"a": STRING}, "required": ["a"], "title": "1"}, {"required": ["b", "a"], "title": "2"}], "properties": {"b": STRING}, "required": ["b"], "title": "3"},
        only("title"), {"title": "3", "properties": {"a": STRING, "b": STRING}, "required": ["a", "b"]},
    ),
    "one that holds": ({"allOf": [{"$ref": "#/$defs/B"}]}, only(), {"$ref": "#/$defs/B"}),
    "none that holds": ({"allOf": [], "type": "string"}, only(), STRING),
    "free keys of a type": ({"type": "object", "additionalProperties": {"const": 1}}, only(const=False), {"type": "object", "additionalProperties": {"enum": [1]}}),
    "free keys that nobody knows": ({"type": "object", "properties": {"a": STRING}, "additionalProperties": True}, only(free=False), {"type": "object", "properties": {"a": STRING}}),
    "free keys": ({"type": "object", "additionalProperties": True}, only(), {"type": "object", "additionalProperties": True}),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_what_a_dialect_makes_of_a_schema_to_the_last_keyword(name: str) -> None:
    """Names that are required are each required once, as JSON Schema has it."""
    schema, dialect, form = EXACT[name]
    definitions = {"A": STRING, "B": {"$ref": "#/$defs/A"}}
    root = {
        "type": "object",
        "properties": {"it": schema},
        "required": ["it"],
        **CLOSED,
        "$defs": definitions,
    }
    closed = CLOSED if dialect.free or dialect.closed else {}
    expected = {
        "type": "object",
        "properties": {"it": form},
        "required": ["it"],
        **closed,
        "$defs": definitions,
    }
    assert fit_schema(root, dialect) == (None if form is None else expected)


def test_googles_keywords() -> None:
    kept = (
        "$id",
        "$anchor",
        "title",
        "description",
        "format",
        "enum",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "propertyOrdering",
    )
    whole = {"type": "object", "properties": {"a": dict.fromkeys(kept, "x")}}
    assert sent("google", whole)[0] == whole


class Address(BaseModel):
    street: str = Field(min_length=1)
    number: Annotated[int, Field(ge=1)] | None = None


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str] = Field(default=[], max_length=3)


class Person(BaseModel):
    address: Annotated[Address, Field(description="Home.")]
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    tags: tuple[str, ...] = ()


ADDRESSES = st.builds(
    Address, street=st.text(min_size=1), number=st.none() | st.integers(min_value=1)
)
PETS = st.just(Cat(kind="cat")) | st.builds(
    Dog, kind=st.just("dog"), tricks=st.lists(st.text(), max_size=3)
)


@given(st.builds(Person, address=ADDRESSES, pet=PETS))
def test_what_satisfies_the_model_satisfies_what_is_sent(person: Person) -> None:
    value = TypeAdapter(Person).dump_python(person, mode="json")
    schema = Person.model_json_schema()
    Validator(schema).validate(value)
    for wire in ("anthropic", "google", "cohere"):
        form, lost = sent(wire, schema)
        assert form is not None and not lost
        Validator.check_schema(form)
        Validator(form).validate(value)


def test_what_is_sent_still_refuses_what_is_of_another_shape() -> None:
    wrong = {"address": {"street": 1}, "pet": {"kind": "cow"}}
    for wire in ("anthropic", "google", "cohere"):
        form, _ = sent(wire, Person.model_json_schema())
        assert form is not None
        assert len(list(Validator(form).iter_errors(wrong))) >= 2
