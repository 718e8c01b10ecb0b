"""The two rooms of `native`, and how the stored form of older versions comes into them."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.codec.native import WireNative
from dragoman.content import upgrade_stored

OWN = WireNative("w")
BOTH: dict[str, Any] = {
    "w": {"a": 1},
    "w:notes": {"spelling": {"b": 2}, "response": {"c": 3}},
    "v": {"d": 4},
}


@pytest.mark.parametrize(
    ("native", "ours", "foreign"),
    [
        (None, False, False),
        ({}, False, False),
        ({"w": {}}, True, False),
        ({"w:notes": {}}, True, False),
        ({"v": {}}, False, True),
        ({"v:notes": {}}, False, True),
        (BOTH, True, False),
    ],
)
def test_whose_it_is(native: Any, ours: bool, foreign: bool) -> None:
    assert (OWN.is_ours(native), OWN.is_foreign(native)) == (ours, foreign)


def test_both_rooms_are_read_and_the_fields_are_a_copy() -> None:
    assert OWN.fields(BOTH) == {"a": 1}
    assert OWN.fields(BOTH) is not BOTH["w"]
    assert OWN.notes(BOTH) is BOTH["w:notes"]
    assert OWN.form(BOTH) == {"b": 2}
    assert OWN.response(BOTH) == {"c": 3}


@pytest.mark.parametrize("native", [None, {}, {"v": {"a": 1}}, {"w": "odd", "w:notes": 3}, {"w:notes": {"spelling": 1, "response": []}}])  # fmt: skip
def test_what_is_not_there_or_odd_is_empty(native: Any) -> None:
    assert OWN.fields(native) == OWN.form(native) == OWN.response(native) == {}
    assert OWN.fields(native) is not OWN.fields(native)
    assert OWN.notes(native) == ({} if native is None else native.get("w:notes", {}) if isinstance(native.get("w:notes"), dict) else {})  # fmt: skip


def test_what_is_noted() -> None:
    assert OWN.note() is None
    assert OWN.note({}, form={}, response=None) is None
    assert OWN.note({"a": 1}) == {"w": {"a": 1}}
    assert OWN.note(mark=True) == {"w": {}}
    assert OWN.note(mark=True, form={"b": 2}) == {"w": {}, "w:notes": {"spelling": {"b": 2}}}
    assert OWN.note(None, form={"b": 2}, response={}) == {"w:notes": {"spelling": {"b": 2}}}
    fields = {"a": 1}
    assert (OWN.note(fields) or {})["w"] is not fields


def test_what_is_noted_more() -> None:
    assert OWN.with_notes(None, x={}) == {"w:notes": {"x": {}}}
    assert OWN.with_notes({"v": {}, "w": {"a": 1}}, x=1) == {"w": {"a": 1}, "w:notes": {"x": 1}}
    assert OWN.with_notes(BOTH, x=1) == {"w": {"a": 1}, "w:notes": {**BOTH["w:notes"], "x": 1}}
    assert OWN.with_form(BOTH, e=5) == {
        "w": {"a": 1},
        "w:notes": {"spelling": {"b": 2, "e": 5}, "response": {"c": 3}},
    }
    assert OWN.with_form(None, e=5) == {"w:notes": {"spelling": {"e": 5}}}
    assert BOTH["w:notes"] == {"spelling": {"b": 2}, "response": {"c": 3}}


def test_rooms_of_a_part_that_is_streamed_are_opened_once() -> None:
    native: dict[str, Any] = {}
    OWN.open_notes(native)["n"] = 1
    OWN.open_fields(native)["f"] = 2
    OWN.open_notes(native)["m"] = 3
    OWN.open_fields(native)["g"] = 4
    assert native == {"w:notes": {"n": 1, "m": 3}, "w": {"f": 2, "g": 4}}


OLD: list[tuple[Any, Any]] = [
    ({"a": 1, "spelling": {"b": 2}, "response": {"c": 3}}, {"w": {"a": 1}, "w:notes": {"spelling": {"b": 2}, "response": {"c": 3}}}),
    ({"spelling": {"b": 2}}, {"w:notes": {"spelling": {"b": 2}}}),
    ({"item": 1, "digest": 2}, {"w:notes": {"item": 1, "digest": 2}}),
    ({}, {"w": {}}),
    ("odd", {"w": "odd"}),
]  # fmt: skip
"""What a wire had in version 1 → what it has in version 2."""


@pytest.mark.parametrize(("own", "rooms"), OLD)
def test_version_1_is_split_in_two_everywhere(own: Any, rooms: Any) -> None:
    part = {"type": "text", "text": "a", "native": {"w": own}}
    split = {"type": "text", "text": "a", "native": rooms}
    result = {"type": "tool_result", "is_content": True, "result": [part, "odd"]}
    plain = {"type": "tool_result", "result": [part]}
    whole = {"v": 1, "role": "user", "content": [part, result, plain, "odd"], "native": {"w": own}}
    kept = {"v": 1, "role": "user", "content": [part, result, plain, "odd"], "native": {"w": own}}
    assert upgrade_stored(whole) == {
        "v": 2,
        "role": "user",
        "content": [split, {**result, "result": [split, "odd"]}, plain, "odd"],
        "native": rooms,
    }
    assert whole == kept
    assert upgrade_stored({**whole, "v": 2}) == {**whole, "v": 2}
    assert upgrade_stored({"v": 1, "native": {"w": own}}) == {"v": 2, "native": rooms}


def test_names_that_version_1_reserved_become_notes() -> None:
    own = {"item": 1, "digest": 2, "spelling": 3, "response": 4, "x": 5}
    assert upgrade_stored({"v": 1, "native": {"openai_responses": own, "w": {"x": 1}}})[
        "native"
    ] == {
        "openai_responses": {"x": 5},
        "openai_responses:notes": {"item": 1, "digest": 2, "spelling": 3, "response": 4},
        "w": {"x": 1},
    }


@pytest.mark.parametrize("version", [1, 2, 3, None])
def test_a_piece_of_an_unknown_kind_is_kept_whole(version: Any) -> None:
    piece = {"type": "hologram", "size": 3}
    assert upgrade_stored({"v": version, "content": [piece, {"type": "text"}, {"type": 3}, {}, 4]})[
        "content"
    ] == [
        {"type": "provider", "kind": "hologram", "native": {"dragoman": piece}},
        {"type": "text"},
        {"type": 3},
        {},
        4,
    ]


@pytest.mark.parametrize(
    "odd", [None, 3, "x", [], {}, {"content": []}, {"content": "x"}, {"v": 2, "content": {"a": 1}}]
)
def test_what_is_no_message_is_left_as_it_is(odd: Any) -> None:
    assert upgrade_stored(odd) == odd
    assert upgrade_stored({"v": 1, "native": 3, "content": "x"}) == {
        "v": 2,
        "native": 3,
        "content": "x",
    }
