"""Values against a JSON Schema as it is given: the work is bounded by values times schema, whatever
refers to what."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.errors import ToolError
from dragoman.tools import schema_check as check_module
from dragoman.tools.schema_check import check, find_faults

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
        {
            "items": CHAIN["d39"] | {"items": REF},
            "$ref": "#/items",
            **CHAIN,
            "anyOf": [REF, {"items": REF}],
        },
    ],
)
@pytest.mark.parametrize("value", [1, "x", [[["x"]]], {"a": 1}])
def test_references_that_take_nothing_cost_no_more_than_their_number(
    schema: dict[str, Any], value: Any
) -> None:
    Looked.looks = 0
    find_faults(looked(schema), value)


def test_a_reference_is_followed_as_far_as_it_leads() -> None:
    assert find_faults(CHAIN, 1) == []
    assert find_faults(CHAIN, "x") == ["the value: should be integer, got 'x'"]


def test_a_recursive_type_is_checked_all_the_way_down() -> None:
    tree = {
        "type": "object",
        "properties": {"next": REF, "n": {"type": "integer"}},
        "required": ["n"],
    }
    assert find_faults(tree, {"n": 1, "next": {"n": 2, "next": {"n": "x"}}}) == [
        "next.next.n: should be integer, got 'x'",
    ]


@pytest.mark.parametrize("inner", [lambda value: [value], lambda value: {"a": value}])
@pytest.mark.slow
def test_what_nests_too_deep_is_a_fault(inner: Any) -> None:
    value: Any = 1
    for _ in range(100_000):
        value = inner(value)
    assert find_faults({"type": "string"}, value) == ["the value: it nests deeper than 128 levels"]


def test_equal_faults_are_named_once() -> None:
    """Each list is under a rule that is reached in two ways."""
    rule = {"items": {"items": {"type": "string"}}, "$ref": "#/definitions/same"}
    schema = {**rule, "definitions": {"same": {"items": {"items": {"type": "string"}}}}}
    found = find_faults(schema, [[1, 2], [3]])
    assert found == [
        f"{place}: should be string, got {value}"
        for place, value in (("[0][0]", 1), ("[0][1]", 2), ("[1][0]", 3))
    ]


OBJECT = {
    "type": "object",
    "properties": {
        "a": {"type": "integer"},
        "b": {"properties": {"c": {"type": "string"}}, "required": ("c", "d")},
    },
    "required": ["a", "b"],
}
DEFINED = {
    "$defs": {"a/b": {"type": "null"}, "int": {"type": "integer"}},
    "properties": {
        "x": {"$ref": "#/$defs/int"},
        "y": {"$ref": "#/$defs/nothing/deeper"},
        "z": {"$ref": "#/$defs/"},
    },
}
VALUES: list[tuple[Any, Any, list[str]]] = [
    ({}, {"any": ["thing"]}, []),
    ({"type": "string"}, "x", []),
    ({"type": "string"}, 1, ["the value: should be string, got 1"]),
    ({"type": "integer"}, 1.0, []),
    ({"type": "integer"}, 1.5, ["the value: should be integer, got 1.5"]),
    ({"type": "integer"}, True, ["the value: should be integer, got True"]),
    ({"type": "number"}, 1, []),
    ({"type": "number"}, 1.5, []),
    ({"type": "number"}, False, ["the value: should be number, got False"]),
    ({"type": "boolean"}, False, []),
    ({"type": "boolean"}, 0, ["the value: should be boolean, got 0"]),
    ({"type": "array"}, [], []),
    ({"type": "array"}, (1,), []),
    ({"type": "array"}, {}, ["the value: should be array, got {}"]),
    ({"type": "object"}, {}, []),
    ({"type": "object"}, [], ["the value: should be object, got []"]),
    ({"type": "null"}, None, []),
    ({"type": "null"}, 0, ["the value: should be null, got 0"]),
    ({"type": "date"}, 0, []),
    ({"type": ["string", 7]}, 0, []),
    ({"type": ["string", ["null"], {}]}, 0, []),
    ({"type": ("string", "null")}, 0, ["the value: should be string or null, got 0"]),
    ({"type": "string", "enum": ["a"]}, 0, ["the value: should be string, got 0"]),
    ({"enum": ["a", 1]}, "a", []),
    ({"enum": ["a", 1]}, "b", ["the value: should be one of 'a', 1, got 'b'"]),
    ({"enum": 3}, "b", []),
    ({"const": None}, None, []),
    ({"const": None}, 0, ["the value: should be None, got 0"]),
    ({"const": "x" * 200, "enum": [1]}, "y" * 200, [
        f"the value: should be one of 1, got '{'y' * 99}", f"the value: should be '{'x' * 200}', got '{'y' * 99}",
    ]),
    ({"anyOf": []}, 1, []),
    ({"anyOf": 3}, 1, []),
    ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, 1, []),
    ({"anyOf": [OBJECT, {"type": "array"}]}, {}, ["the value: should be array, got {}"]),
    ({"anyOf": [{"type": "null"}, OBJECT]}, {"a": 1}, ["the value: should be null, got {'a': 1}"]),
    (OBJECT, {"a": 1, "b": {"c": "x", "d": 1}, "more": 1}, []),
    (OBJECT, {}, ["a: is required, but was not given", "b: is required, but was not given"]),
    (OBJECT, {"a": "x", "b": {"c": 1}}, [
        "a: should be integer, got 'x'", "b.d: is required, but was not given", "b.c: should be string, got 1",
    ]),
    ({"required": "a"}, {}, ["a: is required, but was not given"]),
    ({"required": 3, "properties": 3}, {"a": 1}, []),
    ({"additionalProperties": False}, {"a": 1}, ["a: is not asked for"]),
    ({"properties": {"a": {}, "o": {"additionalProperties": False}}, "additionalProperties": False}, {"a": 1, "o": {"p": 1}, "q": 1}, [
        "o.p: is not asked for", "q: is not asked for",
    ]),
    ({"additionalProperties": {"type": "string"}}, {"a": 1}, []),
    ({"items": {"type": "string"}}, ["a", 1, 2], ["[1]: should be string, got 1", "[2]: should be string, got 2"]),
    ({"items": OBJECT}, ({"a": 1, "b": {"c": 1, "d": 1}},), ["[0].b.c: should be string, got 1"]),
    ({"items": {"type": "string"}}, {"a": 1}, []),
    ({"items": {"type": "string"}}, "text", []),
    ({"items": True}, [1], []),
    (DEFINED, {"x": "1", "y": 1, "z": 1}, ["x: should be integer, got '1'"]),
    ({"$ref": 3, "type": "null"}, 1, ["the value: should be null, got 1"]),
    ({"$ref": "#/$defs/int", "const": 2, **DEFINED}, "x", [
        "the value: should be integer, got 'x'", "the value: should be 2, got 'x'",
    ]),
    ({"items": {"type": "null"}}, list(range(200)), [f"[{n}]: should be null, got {n}" for n in range(100)]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "found"), VALUES)
def test_each_keyword_with_the_place_and_the_words_of_its_fault(
    schema: Any, value: Any, found: list[str]
) -> None:
    assert find_faults(schema, value) == found


@pytest.mark.parametrize(
    ("wrap", "hold"),
    [
        (lambda schema: {"anyOf": [schema]}, lambda value: value),
        (lambda schema: {"items": schema}, lambda value: [value]),
        (lambda schema: {"properties": {"a": schema}}, lambda value: {"a": value}),
    ],
)
def test_what_is_looked_for_ends_where_the_schema_is_too_deep(wrap: Any, hold: Any) -> None:
    """Levels of references count too."""
    schema: dict[str, Any] = {"$defs": {"d0": {"type": "null"}}, "$ref": "#/$defs/d27"}
    value: Any = 1
    for level in range(1, 28):
        schema["$defs"][f"d{level}"] = {"$ref": f"#/$defs/d{level - 1}"}
    whole: Any = {"$ref": "#/$defs/d27"}
    for _ in range(100):
        whole, value = wrap(whole), hold(value)
    (found,) = find_faults({**schema, **whole, "$ref": None}, value)
    assert found.endswith("should be null, got 1")
    assert find_faults({**schema, **wrap(whole), "$ref": None}, hold(value)) == []


def test_check_raises_all_faults_in_one_sentence() -> None:
    check(OBJECT, {"a": 1, "b": {"c": "", "d": 1}})
    with pytest.raises(ToolError) as caught:
        check(OBJECT, {"b": {"d": 1}})
    assert str(caught.value) == (
        "invalid arguments: a: is required, but was not given; b.c: is required, but was not given"
    )


BOMBS = {
    "options for each item": (
        {"items": {"anyOf": [{"const": number} for number in range(4000)]}},
        [-1] * 4000,
    ),
    "options that fit late": (
        {"items": {"anyOf": [{"const": number} for number in range(4000)]}},
        list(range(4000)),
    ),
    "choices for each item": ({"items": {"enum": list(range(100_000))}}, [-1] * 100_000),
    "large choices": (
        {"items": {"enum": [[*range(300), one] for one in range(300)]}},
        [[*range(300), -1]] * 300,
    ),
    "long choices": (
        {"items": {"enum": ["x" * 9_000 + str(n) for n in range(900)]}},
        ["x" * 9_000 + "y"] * 900,
    ),
    "options in options": (
        {"$defs": {"a": {"anyOf": [{"items": {"$ref": "#/$defs/a"}}] * 9}}, "$ref": "#/$defs/a"},
        [[[[[[1] * 5] * 5] * 5] * 5] * 5] * 5,
    ),
    "properties of each item": (
        {"items": {"properties": {f"p{n}": {"type": "null"} for n in range(900)}}},
        [{f"p{n}": 1 for n in range(900)}] * 9,
    ),
}


@pytest.mark.mend("1.4")
@pytest.mark.parametrize("name", BOMBS)
def test_the_work_of_a_check_is_bounded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The schema and the value may both be a client's: 4,000 options for 4,000 items took 52
    seconds."""
    steps = 0
    spend = check_module._Check.spend

    def count(self: Any, cost: int = 1) -> None:
        nonlocal steps
        steps += 1
        spend(self, cost)

    monkeypatch.setattr(check_module._Check, "spend", count)
    schema, value = BOMBS[name]
    found = find_faults(schema, value)
    assert steps <= 2 * check_module.MOST_STEPS
    assert sum(map(len, found)) < 1_000_000


def test_an_ordinary_answer_is_far_from_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_module, "MOST_STEPS", 20_000)
    item = {
        "properties": {name: {"type": "string"} for name in "abcdefgh"},
        "required": list("abcdefgh"),
    }
    value = [dict.fromkeys("abcdefgh", "x") for _ in range(1000)]
    assert find_faults({"type": "array", "items": item}, value) == []
