"""Values against a JSON Schema as it is given: the work is bounded by values times schema, whatever refers to what."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.tools.check import faults

MOST_LOOKS = 10_000


class Looked(dict[str, Any]):
    """A part of a schema that counts how often it is looked into."""

    looks = 0

    def get(self, *args: Any) -> Any:
        Looked.looks += 1
        assert Looked.looks < MOST_LOOKS
        return super().get(*args)


def looked(schema: Any) -> Any:
    if isinstance(schema, dict):
        return Looked({name: looked(value) for name, value in schema.items()})
    return [looked(each) for each in schema] if isinstance(schema, list) else schema


REF = {"$ref": "#"}
CHAIN: dict[str, Any] = {
    **{f"d{n}": {"anyOf": [{"$ref": f"#/d{n + 1}"}, {"$ref": f"#/d{n + 1}"}]} for n in range(40)},
    "d40": {"type": "integer"},
    "$ref": "#/d0",
}


@pytest.mark.parametrize(
    "schema",
    [
        REF,
        {"anyOf": [REF, REF]},
        {"anyOf": [{"anyOf": [REF, REF]}, REF], "$ref": "#"},
        {"anyOf": [REF, REF, {"type": "array", "items": REF}]},
        CHAIN,
        {"items": CHAIN["d39"] | {"items": REF}, "$ref": "#/items", **CHAIN, "anyOf": [REF, {"items": REF}]},
    ],
)
@pytest.mark.parametrize("value", [1, "x", [[["x"]]], {"a": 1}])
def test_references_that_take_nothing_cost_no_more_than_their_number(schema: dict[str, Any], value: Any) -> None:
    Looked.looks = 0
    faults(looked(schema), value)


def test_a_reference_is_followed_as_far_as_it_leads() -> None:
    assert faults(CHAIN, 1) == []
    assert faults(CHAIN, "x") == ["the value: should be integer, got 'x'"]


def test_a_recursive_type_is_checked_all_the_way_down() -> None:
    tree = {"type": "object", "properties": {"next": REF, "n": {"type": "integer"}}, "required": ["n"]}
    assert faults(tree, {"n": 1, "next": {"n": 2, "next": {"n": "x"}}}) == [
        "next.next.n: should be integer, got 'x'",
    ]


@pytest.mark.parametrize("inner", [lambda value: [value], lambda value: {"a": value}])
def test_what_nests_too_deep_is_a_fault(inner: Any) -> None:
    value: Any = 1
    for _ in range(100_000):
        value = inner(value)
    assert faults({"type": "string"}, value) == ["the value: it nests deeper than 128 levels"]


def test_equal_faults_are_named_once() -> None:
    """Each list is under a rule that is reached in two ways."""
    rule = {"items": {"items": {"type": "string"}}, "$ref": "#/definitions/same"}
    schema = {**rule, "definitions": {"same": {"items": {"items": {"type": "string"}}}}}
    found = faults(schema, [[1, 2], [3]])
    assert found == [
        f"{place}: should be string, got {value}" for place, value in (("[0][0]", 1), ("[0][1]", 2), ("[1][0]", 3))
    ]
