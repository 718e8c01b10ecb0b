"""Cosines (D-145)."""

from __future__ import annotations

import math
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import cosine_similarity, most_similar
from dragoman.errors import InvalidRequestError

NUMBERS = st.floats(-100, 100).map(lambda number: round(number, 6))
PAIRS = st.integers(1, 20).flatmap(
    lambda size: st.tuples(*[st.lists(NUMBERS, min_size=size, max_size=size) for _ in range(2)])
)


@given(PAIRS)
def test_d145_it_is_the_cosine_of_the_angle(pair: tuple[list[float], list[float]]) -> None:
    a, b = pair
    cosine = cosine_similarity(a, b)
    assert -1.0 <= cosine <= 1.0
    assert cosine == cosine_similarity(b, a)
    lengths = math.hypot(*a) * math.hypot(*b)
    assert cosine * lengths == pytest.approx(math.sumprod(a, b) if hasattr(math, "sumprod") else sum(
        x * y for x, y in zip(a, b, strict=True)
    ), abs=1e-6 * max(1.0, lengths))  # fmt: skip
    assert cosine_similarity([3 * number for number in a], b) == pytest.approx(cosine, abs=1e-9)


def test_known_angles() -> None:
    assert cosine_similarity([1, 0], [0, 2]) == 0.0
    assert cosine_similarity([1, 1], [2, 2]) == pytest.approx(1.0)
    assert cosine_similarity([1, 0], [-3, 0]) == -1.0
    assert cosine_similarity([1, 0], [1, 1]) == pytest.approx(math.sqrt(0.5))
    assert cosine_similarity(array("f", [1, 0]), (0.5, 0.0)) == 1.0


def test_d145_a_vector_of_zeros_is_like_nothing() -> None:
    assert (
        cosine_similarity([0.0, 0.0], [1.0, 2.0])
        == cosine_similarity([1.0], [0.0])
        == cosine_similarity([], [])
        == 0.0
    )


def test_d145_vectors_of_different_lengths_are_an_error() -> None:
    with pytest.raises(InvalidRequestError, match=r"2 numbers and one of 3 .* same model"):
        cosine_similarity([1, 2], [1, 2, 3])
    with pytest.raises(InvalidRequestError):
        most_similar([1, 2], [[1, 2], [1]])


def test_the_nearest_comes_first_and_of_equals_the_earlier() -> None:
    documents = [[0, 1], [1, 0], [2, 0], [-1, 0], [1, 1]]
    assert most_similar([1, 0], documents) == [1, 2, 4, 0, 3]
    assert most_similar([1, 0], documents, 2) == [1, 2]
    assert most_similar([1, 0], []) == []


@given(st.lists(st.lists(NUMBERS, min_size=3, max_size=3), max_size=12))
def test_every_index_is_there_once_in_descending_order(documents: list[list[float]]) -> None:
    query = [1.0, -2.0, 0.5]
    order = most_similar(query, documents)
    cosines = [cosine_similarity(query, documents[index]) for index in order]
    assert sorted(order) == list(range(len(documents)))
    assert cosines == sorted(cosines, reverse=True)


def test_a_vector_of_no_numbers_is_never_the_nearest() -> None:
    broken = [math.nan, 1.0]
    assert cosine_similarity([1.0, 0.0], broken) == -1.0
    assert most_similar([1.0, 0.0], [broken, [0.0, 1.0]]) == [1, 0]
