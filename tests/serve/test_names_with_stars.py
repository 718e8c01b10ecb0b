"""One matcher for `*`, for keys, metrics and gateways, and bounded whatever a pattern holds."""

from __future__ import annotations

import re
from itertools import product
from time import perf_counter

import pytest

from dragoman import wires
from dragoman.serve.http.call_metrics import find_offered_name
from dragoman.serve.http.callers import Caller, fits_pattern, match_star
from dragoman.wires.serving import get_serving

pytestmark = pytest.mark.mend("4.6")


def test_it_is_what_the_words_say() -> None:
    patterns = ["".join(letters) for size in range(6) for letters in product("ab*", repeat=size)]
    names = ["".join(letters) for size in range(6) for letters in product("ab", repeat=size)]
    for pattern in patterns:
        expected = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
        wrong = [
            name
            for name in names
            if fits_pattern(name, pattern) is not bool(expected.fullmatch(name))
        ]
        assert not wrong, pattern


def test_a_star_of_a_gateway_is_never_empty() -> None:
    assert match_star("gpt-4o", "gpt-*") == "4o"
    assert match_star("gpt-", "gpt-*") is None
    assert match_star("aa", "aa*aa") is None


def test_keys_and_metrics_agree() -> None:
    pattern = "a*b*c"
    for name in ("abc", "a-b-c", "acb", "ab", "aXbYc"):
        caller = Caller("x", models=(pattern,))
        assert caller.may_use(name) is (find_offered_name(name, ["other", pattern]) == pattern)


def test_many_stars_cost_little() -> None:
    before = perf_counter()
    assert not Caller("x", models=("*a" * 200 + "b",)).may_use("a" * 500)
    assert perf_counter() - before < 0.2


def test_what_a_wire_serves_is_computed_once() -> None:
    for name in wires.names():
        wire = wires.get(name)
        assert get_serving(wire) is get_serving(wire)


def test_a_wire_without_a_hash_is_served() -> None:
    class Odd:
        __hash__ = None  # type: ignore[assignment]
        bodies = {"/odd": {"type": "object"}}

    assert get_serving(Odd()).bodies == {"/odd": {"type": "object"}}
