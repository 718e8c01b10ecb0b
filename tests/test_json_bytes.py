"""JSON is bounded in depth before anything recurses into it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import json_bytes
from dragoman.json_bytes import MOST_DEPTH, check_depth, check_value_depth, decode, encode


def nested(depth: int, opens: str = "[", closes: str = "]") -> str:
    return opens * depth + closes * depth


FITS = [
    nested(MOST_DEPTH),
    '{"a":' * (MOST_DEPTH - 1) + '"' + "[" * 999 + '"' + "}" * (MOST_DEPTH - 1),
    '"' + '\\"[' * 500 + '"',
    '"' + "\\\\" * 9 + '"',
    "[" + ",".join(["[]"] * 1000) + "]",
    '{"a":[' * 64 + "]}" * 64,
]
DEEP = [
    nested(MOST_DEPTH + 1),
    nested(5000),
    "[" * 3000,
    '{"a":' * 129 + "1" + "}" * 129,
    '["\\\\",' * 129 + "1" + "]" * 129,
    '{"a":[' * 65 + "1" + "]}" * 65,  # each object with its list counts twice
]


@pytest.mark.parametrize("text", FITS)
def test_what_is_flat_enough_is_read(text: str):
    assert decode(text) == decode(text.encode()) == json.loads(text)
    check_value_depth(json.loads(text))


@pytest.mark.parametrize("text", DEEP)
def test_what_nests_deeper_is_refused(text: str):
    for data in (text, text.encode()):
        with pytest.raises(ValueError, match="nests deeper than 128"):
            decode(data)
    if text.endswith(("]", "}")) and len(text) < 2000:
        with pytest.raises(ValueError, match="nests deeper than 128"):
            check_value_depth(json.loads(text))


@given(
    st.recursive(
        st.none() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    ),
    st.integers(0, 9),
)
def test_both_bounds_agree(value: object, most: int):
    def refuses(check: object, given_: object) -> bool:
        try:
            check(given_, most)
        except ValueError:
            return True
        return False

    assert refuses(check_value_depth, value) == refuses(check_depth, json.dumps(value))


def test_half_a_character_is_escaped():
    assert json.loads(encode({"a": ["\ud800"]})) == {"a": ["\ud800"]}
    assert json_bytes.encode({"é": 1}) == '{"é":1}'.encode()


def test_half_a_character_changes_nothing_else_of_what_is_written_or_bounded():
    assert encode({"a": ["\ud800", 1], "b": None}) == b'{"a":["\\ud800",1],"b":null}'
    half = '["\ud800"' + ",[]" * 200 + "]"
    check_depth(half)
    with pytest.raises(ValueError, match="nests deeper than 128 levels"):
        check_depth('["\ud800",' + nested(128) + "]")
    with pytest.raises(ValueError, match="nests deeper than 2 levels"):
        check_value_depth([[[]]], 2)
    check_value_depth([[{}]], 3)
