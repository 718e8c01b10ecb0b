"""Similarity of texts: cosines of their vectors, in plain Python. It compares thousands of vectors
a second, ten thousands from Python 3.12. Beyond that use a vector store."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from math import hypot
from operator import mul

from dragoman.errors import InvalidRequestError

__all__ = ["cosine_similarity", "dot_product", "most_similar"]

if sys.version_info >= (3, 12):
    from math import sumprod as dot_product
else:

    def dot_product(a: Sequence[float], b: Sequence[float]) -> float:
        """Returns the sum of the products of two vectors' numbers."""
        return sum(map(mul, a, b))


def cosine_similarity(a: Sequence[float], b: Sequence[float]) -> float:
    """Returns the cosine of two vectors: 1.0 for the same direction, 0.0 for unrelated ones, -1.0
    for opposite ones.

    A vector of zeros has no direction: 0.0. One with numbers that are none (NaN) is like nothing:
    -1.0.

    Raises:
        InvalidRequestError: they are of different lengths, so of different models.
    """
    return _compute_cosine(a, _measure_length(a), b)


def most_similar(
    query: Sequence[float], documents: Iterable[Sequence[float]], limit: int | None = None
) -> list[int]:
    """Returns the indexes of documents, most similar to the query first; of equals the earlier one.

    `limit`: only so many.

    Raises:
        InvalidRequestError: a document's vector is of another length than the query's.
    """
    length = _measure_length(query)
    cosines = [_compute_cosine(query, length, document) for document in documents]
    return sorted(range(len(cosines)), key=cosines.__getitem__, reverse=True)[:limit]


def _compute_cosine(a: Sequence[float], length: float, b: Sequence[float]) -> float:
    """Returns the cosine of two vectors. `length`: that of the first one."""
    if len(a) != len(b):
        raise InvalidRequestError(
            f"a vector of {len(a)} numbers and one of {len(b)} cannot be compared: embed both with the same model and dimensions"
        )
    lengths = length * _measure_length(b)
    if not lengths:
        return 0.0
    # Rounding may lead a little beyond 1.
    return min(1.0, max(-1.0, dot_product(a, b) / lengths))


def _measure_length(vector: Sequence[float]) -> float:
    return hypot(*vector)
