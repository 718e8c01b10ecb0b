"""Nearest vectors in Python's own library: by sign codes first, then exactly.

The sign code of a vector has one bit a number: set if the number is above 0. Two vectors that point
the same way have nearly the same code, and codes are compared as integers, thirty times as fast as
vectors. So all codes are compared, and only the vectors of the best few are read and compared
exactly.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import accumulate
from math import hypot, isfinite
from typing import TypeVar

from dragoman.embeddings.similarity import dot_product

__all__ = [
    "MOST_EXACT",
    "compare",
    "find_bodies",
    "make_sign_code",
    "pack_vector",
    "unpack_vector",
]

K = TypeVar("K", bound=Hashable)

MOST_EXACT = 256
"""Vectors that a search compares exactly."""


def pack_vector(vector: Iterable[float]) -> bytes | None:
    """Returns a vector, whose signs are its code, as its length of 1 in 32-bit floats; None if it
    has no direction."""
    numbers = array("f", vector)
    length = hypot(*numbers)
    if not isfinite(length) or not length:
        return None
    return array("f", [number / length for number in numbers]).tobytes()


def make_sign_code(packed: bytes) -> bytes:
    """Returns the sign code of a packed vector: 48 bytes for 384 numbers."""
    bits = "".join(["1" if number > 0 else "0" for number in unpack_vector(packed)])
    return int(bits, 2).to_bytes((len(bits) + 7) // 8, "big")


def find_bodies(code: bytes, pages: Iterable[Sequence[tuple[K, bytes]]]) -> set[K]:
    """Searches sign codes: returns the keys of the contents whose sign codes are nearest. `pages`:
    a key and a code for each message; messages of one content have the same."""
    wanted = int.from_bytes(code)
    keys: list[K] = []
    distances: list[int] = []
    # Page by page: 100,000 tuples held at once would be a burden on the garbage collector.
    for page in pages:
        keys += [key for key, _ in page]
        distances += [(int.from_bytes(other) ^ wanted).bit_count() for _, other in page]
    nearest = {keys[index] for index in _find_nearest(distances)}
    # A text that was said a hundred times must not hide all others.
    if len(keys) > MOST_EXACT > 2 * len(nearest):
        distinct = [*dict.fromkeys(zip(keys, distances, strict=True))]
        indexes = _find_nearest([distance for _, distance in distinct])
        nearest = {distinct[index][0] for index in indexes}
    return nearest


def _find_nearest(distances: Sequence[int]) -> list[int]:
    """Returns the indexes of the sign codes with the least distances, at most `MOST_EXACT`."""
    # Sorting all of them would cost as much as comparing them.
    counts = sorted(Counter(distances).items())
    totals = accumulate(number for _, number in counts)
    limit = next(
        (
            distance
            for (distance, _), total in zip(counts, totals, strict=True)
            if total >= MOST_EXACT
        ),
        None,
    )
    if limit is None:
        return [*range(len(distances))]
    nearest = [index for index, distance in enumerate(distances) if distance <= limit]
    nearest.sort(key=distances.__getitem__)
    return nearest[:MOST_EXACT]


def compare(vector: Sequence[float], other: bytes) -> float:
    """Compares exactly what the sign codes found: returns the cosine of a vector and a packed one;
    -1 if they are of different lengths."""
    if 4 * len(vector) != len(other):
        return -1.0
    return dot_product(vector, unpack_vector(other))


def unpack_vector(packed: bytes) -> array[float]:
    """Returns the numbers of a vector that `pack_vector` packed."""
    numbers = array("f")
    numbers.frombytes(packed)
    return numbers
