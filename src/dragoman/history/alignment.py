"""Two sequences that are nearly alike, held against each other: which elements of one are those of
the other, in order.

What is alike at the beginning and at the end first, then what occurs once on each side, and between
those the longest common sequence where it is cheap. The work is linear in the length of both,
whatever they hold.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import accumulate

__all__ = ["align", "align_texts", "pair_equal"]

Key = Hashable | None
Pair = tuple[int, int]
_DEEPEST = 8
"""How often what stands between anchors is looked at for anchors of its own."""
_TABLE = 1024
"""Cells of the table in which the longest common sequence is sought, at most."""


def align(these: Sequence[Key], those: Sequence[Key]) -> list[Pair]:
    """Returns the positions of equal elements in two sequences, rising in both. Where equal
    elements repeat, the earlier ones are taken, but at the end the last. `None` equals nothing.

    Equal ends are cut off; elements that occur once on each side are anchors, and what stands
    between two anchors is aligned in the same way ("patience diff").
    """
    pairs: list[Pair] = []
    todo = [(0, len(these), 0, len(those), 0)]
    while todo:
        a, a_end, b, b_end, depth = todo.pop()
        start = _count_equal(these[a:a_end], those[b:b_end])
        pairs += [(a + i, b + i) for i in range(start)]
        a, b = a + start, b + start
        end = _count_equal(these[a:a_end][::-1], those[b:b_end][::-1])
        pairs += [(a_end - i, b_end - i) for i in range(1, end + 1)]
        a_end, b_end = a_end - end, b_end - end
        if a == a_end or b == b_end:
            continue
        anchors: list[Pair] = []
        if depth < _DEEPEST:
            anchors = _anchors(these[a:a_end], those[b:b_end], every=False)
        if not anchors:
            pairs += _shift_pairs(_pair_without_anchors(these[a:a_end], those[b:b_end]), a, b)
            continue
        anchors = _shift_pairs(anchors, a, b)
        pairs += anchors
        starts = [(a, b), *((i + 1, j + 1) for i, j in anchors)]
        ends = [*anchors, (a_end, b_end)]
        todo += [(i, k, j, m, depth + 1) for (i, j), (k, m) in zip(starts, ends, strict=True)]
    return sorted(pairs)


def _count_equal(these: Sequence[Key], those: Sequence[Key]) -> int:
    """Returns how many elements at the start are equal, before an alignment."""
    count = 0
    for key, other_key in zip(these, those, strict=False):
        if key is None or key != other_key:
            break
        count += 1
    return count


def _pair_repeated(these: Sequence[Key], those: Sequence[Key]) -> list[Pair]:
    return _anchors(these, those, every=True)


def _anchors(these: Sequence[Key], those: Sequence[Key], *, every: bool) -> list[Pair]:
    """Returns the pairs of equal elements that anchor an alignment, in order: those that occur once
    on each side, or with `every` the first with the first, the second with the second …"""
    positions: dict[tuple[Key, int], int] = {}
    counts_there: Counter[Key] = Counter()
    for position, key in enumerate(those):
        positions[key, counts_there[key]] = position
        counts_there[key] += 1
    counts_here, seen = Counter(these), Counter[Key]()
    pairs: list[Pair] = []
    for position, key in enumerate(these):
        number = seen[key]
        seen[key] += 1
        if (
            key is not None
            and (key, number) in positions
            and (every or (counts_here[key] == 1 and counts_there[key] == 1))
        ):
            pairs.append((position, positions[key, number]))
    return _longest_rising(pairs)


def _longest_rising(pairs: Sequence[Pair]) -> list[Pair]:
    """Returns the longest part of an alignment's pairs, in the order of their first number, in
    which the second rises as well."""
    tails: list[int] = []
    ends: list[int] = []  # place in `pairs` of each tail
    before: list[int] = []
    for number, (_, second) in enumerate(pairs):
        length = bisect_left(tails, second)
        before.append(ends[length - 1] if length else -1)
        tails[length : length + 1] = [second]
        ends[length : length + 1] = [number]
    rising: list[Pair] = []
    number = ends[-1] if ends else -1
    while number >= 0:
        rising.append(pairs[number])
        number = before[number]
    return rising[::-1]


def _pair_without_anchors(these: Sequence[Key], those: Sequence[Key]) -> list[Pair]:
    """Returns the positions of equal elements, in order, in sequences to align that have no
    anchors."""
    # A table costs the product of both lengths, so it is for short ones. Long ones without
    # anchors are repetitive.
    if len(these) * len(those) <= _TABLE:
        return _longest_common(these, those)
    return _pair_repeated(these, those)


def _shift_pairs(pairs: Iterable[Pair], start: int, other_start: int) -> list[Pair]:
    """Returns pairs of positions in two slices as positions in the sequences. `start`,
    `other_start`: where the slices begin."""
    return [(start + i, other_start + j) for i, j in pairs]


def _measure_common(these: Sequence[Key], those: Sequence[Key]) -> list[list[int]]:
    """Returns the table of lengths that an alignment is read from: in row `a` and column `b` that
    of the longest common sequence of what stands from there on in both."""
    width = len(those) + 1
    lengths = [[0] * width for _ in range(len(these) + 1)]
    for a in range(len(these) - 1, -1, -1):
        row, below = lengths[a], lengths[a + 1]
        for b in range(len(those) - 1, -1, -1):
            equal = these[a] is not None and these[a] == those[b]
            row[b] = below[b + 1] + 1 if equal else max(below[b], row[b + 1])
    return lengths


def _longest_common(these: Sequence[Key], those: Sequence[Key]) -> list[Pair]:
    """Returns the alignment of the longest common sequence: its positions in both."""
    lengths = _measure_common(these, those)
    pairs: list[Pair] = []
    a = b = 0
    while a < len(these) and b < len(those):
        if these[a] is not None and these[a] == those[b]:
            pairs.append((a, b))
            a, b = a + 1, b + 1
        elif lengths[a][b + 1] >= lengths[a + 1][b]:
            b += 1
        else:
            a += 1
    return _take_earliest_pairs(pairs, these, those)


def _take_earliest_pairs(
    pairs: Sequence[Pair], these: Sequence[Key], those: Sequence[Key]
) -> list[Pair]:
    """Returns the pairs of an alignment, each with the first equal elements behind the pair before
    it."""
    earliest: list[Pair] = []
    i = j = 0
    for a, b in pairs:
        i, j = these.index(these[a], i), those.index(those[b], j)
        earliest.append((i, j))
        i, j = i + 1, j + 1
    return earliest


def pair_equal(these: Iterable[Key], those: Iterable[Key]) -> list[Pair]:
    """Aligns without order: returns the positions of equal elements, in these and in those, in any
    order: the first of each with the first, the second with the second. They are in the order of
    those."""
    positions: dict[Key, deque[int]] = {}
    for position, key in enumerate(these):
        positions.setdefault(key, deque()).append(position)
    return [
        (positions[key].popleft(), position)
        for position, key in enumerate(those)
        if positions.get(key)
    ]


def align_texts(these: Sequence[str], those: Sequence[str]) -> Iterator[tuple[range, range]]:
    """Aligns texts: yields the ranges of two lists of texts, cut in different places, whose joined
    texts are equal."""
    text, other_text = "".join(these), "".join(those)
    alike = next(
        (index for index, (a, b) in enumerate(zip(text, other_text, strict=False)) if a != b),
        min(len(text), len(other_text)),
    )
    ends, other_ends = (
        {end: index + 1 for index, end in enumerate(accumulate(map(len, texts)))}
        for texts in (these, those)
    )
    i = j = 0
    for end in sorted(ends.keys() & other_ends.keys()):
        if 0 < end <= alike:
            yield range(i, ends[end]), range(j, other_ends[end])
            i, j = ends[end], other_ends[end]
