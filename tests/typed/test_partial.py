"""Laws of values that are read while they are being written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter
from pydantic_core import from_json
from typing_extensions import TypedDict

from dragoman import Partial, partial_json
from dragoman.partial import Shape, view
from dragoman.partial_json import LONGEST_PATH, PartialReader

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
ROOTS = st.lists(VALUES, max_size=4) | st.dictionaries(st.text(), VALUES, max_size=4)
FORMS = st.sampled_from(
    [
        {},
        {"ensure_ascii": False},
        {"indent": 2},
        {"separators": (",", ":")},
    ]
)


def read(pieces: Sequence[str], *, growing_text: bool = False, shape: Shape | None = None) -> Any:
    reader = PartialReader(growing_text=growing_text)
    for piece in pieces:
        reader.feed(piece)
    return view(reader.slice(), shape or Shape.of())


def cut(text: str, cuts: Sequence[int]) -> list[str]:
    places = sorted({0, len(text), *[cut % (len(text) + 1) for cut in cuts]})
    return [text[start:end] for start, end in pairwise(places)]


def is_part(part: Any, whole: Any) -> bool:
    """True if a value may still become the other one."""
    if isinstance(part, Partial) and not part:
        return True
    if isinstance(part, str) and isinstance(whole, str):
        return whole.startswith(part)
    if isinstance(part, Mapping):
        return all(key in whole and is_part(part[key], whole[key]) for key in part)
    if isinstance(part, Sequence) and not isinstance(part, str):
        return len(part) <= len(whole) and all(map(is_part, part, whole))
    return part == whole


@given(ROOTS, FORMS, st.lists(st.integers(0, 10_000)), st.booleans())
def test_the_last_partial_is_the_value_however_it_is_cut(value, form, cuts, growing):
    text = json.dumps(value, **form)
    assert read(cut(text, cuts), growing_text=growing) == value


@given(ROOTS, FORMS, st.integers(0, 10_000))
def test_a_partial_is_what_pydantic_reads_of_the_same_text(value, form, end):
    text = json.dumps(value, **form)
    begun = text[: end % (len(text) + 1)]
    partial = read([begun])
    assert is_part(partial, value)
    # pydantic takes a number for whole that may go on: 1 of 12.
    inside_text = re.sub(r'"(?:[^"\\]|\\.)*"', "", begun).count('"') == 1
    if begun.strip() and not inside_text:
        begun = re.sub(r'[^\s,:{}\[\]"]+$', "", begun)
    if begun.strip():
        expected = from_json(begun, allow_partial=True)
        assert partial.to_builtins() == expected, (begun, partial, expected)


@pytest.mark.slow
@given(ROOTS, FORMS)
def test_a_partial_stays_as_it_is_while_the_text_goes_on(value, form):
    text = json.dumps(value, **form)
    for growing in (False, True):
        reader = PartialReader(growing_text=growing)
        shown: list[tuple[Partial[Any], object]] = []
        for index, sign in enumerate(text):
            reader.feed(sign)
            partial = view(reader.slice(), Shape.of())
            assert partial == read([text[: index + 1]], growing_text=growing)
            shown.append((partial, partial.to_builtins()))
        for partial, copy in shown:
            assert partial.to_builtins() == copy
            assert is_part(partial, value)


@given(ROOTS, st.integers(0, 10_000))
def test_growing_text_is_always_the_beginning_of_the_text(value, end):
    text = json.dumps(value)
    begun = text[: end % (len(text) + 1)]
    assert is_part(read([begun], growing_text=True), value)
    assert is_part(read([begun]), value)


def test_feeding_says_whether_anything_is_new():
    for growing in (False, True):
        reader, before = PartialReader(growing_text=growing), None
        for sign in '{"a": "x\\u00e9", "b": [1, {"c": []}], "d": null}':
            is_new = reader.feed(sign)
            now = view(reader.slice(), Shape.of()).to_builtins()
            assert is_new or now == before
            before = now


@given(st.text(alphabet='{}[]":,\\ua1e-nltrfs \n', max_size=40), st.lists(st.integers(0, 40)))
def test_what_is_no_json_raises_nothing(text, cuts):
    whole = read([text])
    assert read(cut(text, cuts)) == whole
    whole.to_builtins()


@pytest.mark.parametrize(
    "text",
    [
        "Sure! {}",
        '{"a": 1} {"b": 2}',
        "[1}",
        '{"a": tru, "b": 1}',
        "[[]]]",
        "7 ",
        '"a"',
        "[1 2 x, 3]",
    ],
)
def test_nothing_more_is_certain_behind_what_is_no_json(text):
    partial = read([text])
    assert (
        is_part(partial.to_builtins() or {}, from_json(text[:8], allow_partial=True))
        if (text.startswith('{"a": 1}'))
        else "b" not in str(partial)
    )
    assert "3" not in str(partial)


def test_the_first_of_two_values_with_one_key_stays():
    assert read(['{"a": 1, "a": [2, 3']) == {"a": 1}
    assert len(read(['{"a": 1, "a": [2, 3'])) == 1


def test_depth_and_numbers_are_bounded():
    deep = read(["[" * 100_000])
    depth = 0
    while len(deep):
        deep, depth = deep[0], depth + 1
    assert depth == LONGEST_PATH - 1
    reader = PartialReader()
    reader.feed("[1")
    for _ in range(10_000):
        reader.feed("1" * 10)
    reader.feed(", 2]")
    assert view(reader.slice(), Shape.of()) == []


class Counting:
    """A pattern that counts the characters that it looks at."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern, self.signs = pattern, 0

    def match(self, text: str, start: int) -> re.Match[str] | None:
        match = self.pattern.match(text, start)
        self.signs += 1 + (0 if match is None else match.end() - start)
        return match


@pytest.mark.parametrize(
    "value",
    [
        {"text": 'a\\"é\n' * 20_000},
        {"rows": [{"name": f"row {row}", "value": row / 7} for row in range(2500)]},
        {f"key {row}": {"a": [row]} for row in range(4000)},
        [[[[["deep"] * 13_000]]]],
    ],
    ids=["text", "rows", "keys", "deep"],
)
@pytest.mark.parametrize("growing", [False, True])
def test_a_chunk_costs_what_it_brings(value, growing, monkeypatch):
    text = json.dumps(value)
    assert len(text) > 90_000
    patterns = [Counting(partial_json._TEXT), Counting(partial_json._TOKEN)]  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(partial_json, "_TEXT", patterns[0])
    monkeypatch.setattr(partial_json, "_TOKEN", patterns[1])
    slices = 0
    original = partial_json.Slice.__init__

    def count(self: object, *arguments: Any) -> None:
        nonlocal slices
        slices += 1
        original(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(partial_json.Slice, "__init__", count)
    reader, chunks = PartialReader(growing_text=growing), 0
    for start in range(0, len(text), 4):
        reader.feed(text[start : start + 4])
        reader.slice()
        chunks += 1
    assert sum(pattern.signs for pattern in patterns) < 3 * len(text)
    assert slices <= 6 * chunks
    monkeypatch.undo()
    assert view(reader.slice(), Shape.of()) == value


# what a Partial is


class Place(BaseModel):
    zip_code: str = Field(alias="zipCode")
    items: list[int] = []


class Home(BaseModel):
    place: Place | None = None
    others: list[Place] = []
    pair: tuple[Place, int] | None = None
    by_name: dict[str, Place] = {}
    inner: Home | None = None


@dataclass
class Point:
    x: int
    label: str = ""


class Row(TypedDict):
    id: int
    tags: list[str]


def shape_of(output_type: Any) -> Shape:
    adapter = TypeAdapter(output_type)
    return Shape.of(adapter.json_schema(), adapter.json_schema(by_alias=False))


def test_fields_are_attributes_by_their_names_in_python():
    text = (
        '{"place": {"zipCode": "0150", "items": [1, 2]}, "others": [{"zipCode": "1"}], '
        '"pair": [{"zipCode": "2"}, 3], "by_name": {"a": {"zipCode": "4"}}, '
        '"inner": {"place": {"zipCode": "5"}, "others": [{"zipCode": "6"'
    )
    home = read([text], shape=shape_of(Home))
    assert home.place.zip_code == home.place["zipCode"] == "0150"
    assert home.place.items == [1, 2] and home.place["items"] == [1, 2]
    assert [place.zip_code for place in home.others] == ["1"]
    assert (home.pair[0].zip_code, home.pair[1]) == ("2", 3)
    assert home.by_name["a"].zip_code == "4"
    assert home.inner.place.zip_code == "5"
    assert home.inner.others[-1].zip_code == "6"
    assert home.inner.inner is None and "inner" not in home.inner
    with pytest.raises(KeyError):
        home.inner["inner"]
    with pytest.raises(AttributeError, match="no field 'zip'"):
        home.zip  # noqa: B018
    with pytest.raises(IndexError):
        home.others[1]


@pytest.mark.parametrize("output_type", [Point, Row, Point | Row, list[Point | Row]])
def test_dataclasses_typed_dicts_and_unions(output_type):
    text = '{"x": 1, "id": 7, "tags": ["a", "b'
    if output_type == list[Point | Row]:
        partial = read(["[" + text], shape=shape_of(output_type))[0]
    else:
        partial = read([text], shape=shape_of(output_type))
    fields = [name for name in ("x", "label", "id", "tags") if hasattr(partial, name)]
    if output_type is Point:
        assert fields == ["x", "label"] and (partial.x, partial.label) == (1, None)
    elif output_type is Row:
        assert fields == ["id", "tags"] and (partial.id, partial.tags) == (7, ["a"])
    else:
        assert fields == ["x", "label", "id", "tags"]


def test_a_partial_is_a_mapping_or_a_sequence_or_nothing_yet():
    mapping, sequence, nothing = read(['{"a": [1, {"b"']), read(["[1, [2, "]), read([""])
    assert all(isinstance(one, Partial) for one in (mapping, sequence, nothing))
    assert isinstance(mapping, Mapping) and not isinstance(mapping, Sequence)
    assert isinstance(sequence, Sequence) and not isinstance(sequence, Mapping)
    assert mapping and sequence and not nothing and len(nothing) == 0 and list(nothing) == []
    assert dict(mapping) == {"a": [1, {}]} and mapping.to_builtins() == {"a": [1, {}]}
    assert mapping.get("b", 5) == 5 and [*mapping.items()] == [("a", [1, {}])]
    assert sequence[0] == 1 and sequence[-1] == [2] and sequence[:1] == [1] and 1 in sequence
    assert nothing.to_builtins() is None and nothing != mapping and nothing == read([""])
    assert repr(mapping) == "Partial({'a': [1, {}]})"
    with pytest.raises(TypeError):
        hash(mapping)
    with pytest.raises(KeyError):
        nothing["a"]
