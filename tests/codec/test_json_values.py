"""JSON of others: what is of another kind is passed over, or a decode error; what nobody has read
is kept."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.codec import json_values as shapes
from dragoman.errors import DecodeError, HistoryError

EVERY: list[Any] = [
    None,
    "",
    "a",
    0,
    5,
    1.5,
    True,
    False,
    [],
    [1],
    [{}],
    [{"a": 1}, 2],
    {},
    {"a": 1},
]


def those(read: Any) -> list[Any]:
    """What it does not pass over."""
    return [value for value in EVERY if read(value) is value]


def test_what_is_of_another_kind_is_passed_over() -> None:
    assert those(shapes.if_object) == [{}, {"a": 1}]
    assert those(shapes.if_list) == [[], [1], [{}], [{"a": 1}, 2]]
    assert those(shapes.if_objects) == [[], [{}]]
    assert those(shapes.if_text) == ["", "a"]
    assert [
        shapes.if_object(5),
        shapes.if_list(5),
        shapes.if_objects([{}, 5]),
        shapes.if_text(5),
    ] == [{}, [], [], ""]
    assert [shapes.as_index(value) for value in (0, 3, "a", 1.5, None, [], {})] == [
        0,
        3,
        "a",
        None,
        None,
        None,
        None,
    ]
    assert [shapes.as_text(value) for value in ("a", "", None, 5, {"a": [1]})] == [
        "a",
        "",
        "",
        "5",
        '{"a":[1]}',
    ]


def test_or_a_decode_error_that_shows_it() -> None:
    assert (shapes.as_object(None, "x"), shapes.as_list(None, "x")) == ({}, [])
    assert (shapes.as_object({"a": 1}, "x"), shapes.as_list([1], "x")) == ({"a": 1}, [1])
    assert shapes.need_object({}, "x") == {}
    with pytest.raises(DecodeError) as error:
        shapes.as_object([5], "thing")
    again = "This is a fault of its own; try again."
    assert error.value.message == f"the provider sent a thing that is no object: [5]. {again}"
    assert error.value.body == b"[5]"
    with pytest.raises(DecodeError) as error:
        shapes.as_list({}, "things")
    assert error.value.message == f"the provider sent things that are no list: {{}}. {again}"
    with pytest.raises(DecodeError) as error:
        shapes.need_object(None, "a thing")
    assert error.value.message == "a thing is no JSON object"
    long = shapes.shape_error("\u00e9" + "x" * 300, "a thing")
    assert long.message == f'the provider sent a thing: "\u00e9{"x" * 197}. {again}'
    assert long.body == f'"\u00e9{"x" * 300}"'.encode()
    assert "\ufffd" in shapes.shape_error("x" * 198 + "\u00e9", "a thing").message


def test_what_nests_too_deep_is_refused_at_each_door() -> None:
    deep: Any = 1
    for _ in range(500):
        deep = [deep]
    assert shapes.check_depth(EVERY) is EVERY
    assert shapes.body_bytes(b"\xff") == b"\xff" and shapes.body_bytes({"a": [1]}) == b'{"a":[1]}'
    with pytest.raises(HistoryError, match=r"^what was given cannot be read: .*deeper"):
        shapes.check_depth(deep)
    with pytest.raises(DecodeError, match=r"^the answer cannot be read: .*deeper"):
        shapes.body_bytes({"a": deep})


def test_fields_that_say_something() -> None:
    fields = {str(place): value for place, value in enumerate(EVERY)}
    said = {place: value for place, value in fields.items() if value not in (None, "", [], {})}
    assert shapes.drop_empty(fields) == said
    assert list(said.values()) == ["a", 0, 5, 1.5, True, False, [1], [{}], [{"a": 1}, 2], {"a": 1}]
    assert shapes.select_unread(fields, {"2", "13"}) == {
        place: said[place] for place in said if place not in ("2", "13")
    }
    assert shapes.read_extra_fields({"a": 1, "b": None, "c": 3}, "a", "d") == {"b": None, "c": 3}
    assert shapes.read_extra_fields({"a": 1}) == {"a": 1}


def test_own_fields_are_added_level_by_level_and_overwrite_nothing() -> None:
    inner = {"b": 1}
    block = {"a": inner, "c": 1, "d": None}
    own = {"a": {"b": 2, "e": {"f": 1}}, "c": {"g": 1}, "d": 5, "h": [1]}
    assert shapes.merge_wire_fields(block, own) == {
        "a": {"b": 1, "e": {"f": 1}},
        "c": 1,
        "d": None,
        "h": [1],
    }
    assert inner == {"b": 1}, "what was given is not changed below its own level"
    assert shapes.merge_wire_fields({"a": {"b": 1}}, {"a": 5}) == {"a": {"b": 1}}


@pytest.mark.parametrize(
    ("result", "says"),
    [
        ({"error": None}, True),
        ({"a": 1}, False),
        (' {"error": "no"}', True),
        ('{"errors": 1}', False),
        ('{"error"', False),
        ('"error"', False),
        ("error", False),
        (["error"], False),
        (None, False),
    ],
)
def test_a_result_that_says_itself_that_it_failed(result: Any, says: bool) -> None:
    assert shapes.has_error(result) is says
