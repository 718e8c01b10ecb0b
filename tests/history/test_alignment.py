"""Sequences held against each other."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.history.alignment import align, align_texts

keys = st.lists(st.none() | st.sampled_from("abcdef"), max_size=60)


@settings(max_examples=80)
@given(these=keys, those=keys)
def test_pairs_are_equal_and_rise(these: list[str | None], those: list[str | None]) -> None:
    pairs = align(these, those)
    assert all(these[a] is not None and these[a] == those[b] for a, b in pairs)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(pairs))


@settings(max_examples=80)
@given(
    these=st.lists(st.integers(), unique=True),
    cut=st.sets(st.integers(0, 30)),
    new=st.lists(st.just("new"), max_size=3),
)
def test_what_is_left_of_a_sequence_is_found(
    these: list[int], cut: set[int], new: list[str]
) -> None:
    left = [(at, key) for at, key in enumerate(these) if at not in cut]
    half = len(left) // 2
    those = [*(key for _, key in left[:half]), *new, *(key for _, key in left[half:])]
    assert [a for a, _ in align(these, those)] == [at for at, _ in left]


@pytest.mark.parametrize(("these", "those", "pairs"), [
    ("abab", "ab", [(0, 0), (1, 1)]),
    ("ab", "abab", [(0, 0), (1, 1)]),
    ("xayaq", "zaw", [(1, 1)]),
    ("abc", "xbz", [(1, 1)]),
    ("", "abc", []),
    ("a" * 50, "a" * 40 + "b", [(n, n) for n in range(40)]),
    ("x" + "ab" * 40, "y" + "ab" * 40, [(n, n) for n in range(1, 81)]),
])  # fmt: skip
def test_equal_elements_are_taken_from_the_first_on(
    these: str, those: str, pairs: list[tuple[int, int]]
) -> None:
    assert align(these, those) == pairs


def test_long_sequences_of_few_keys() -> None:
    these, those = "xab" * 400, "yba" * 400
    assert len(align(these, those)) >= 400


def test_texts_that_are_cut_elsewhere() -> None:
    assert list(align_texts(["ab", "c", "de"], ["a", "bc", "d", "e"])) == [
        (range(2), range(2)),
        (range(2, 3), range(2, 4)),
    ]
    assert list(align_texts(["ab", "c"], ["ab", "d"])) == [(range(1), range(1))]
    assert list(align_texts(["", "a"], ["a"])) == [(range(2), range(1))]
    assert list(align_texts([], ["a"])) == []
