"""A conversation with a little of it wrong is never read as one of another format: it is of its
own, or read alike, or refused."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from dragoman import formats
from support.detecting import case_of, judged, seeds

NAMES = formats.names()


def verdicts(cases: range) -> Counter[str]:
    """What detection makes of these cases, none of which is wrong."""
    found: Counter[str] = Counter()
    for index in cases:
        case = case_of(index, NAMES)
        verdict = judged(case)
        found[verdict.kind] += 1
        assert verdict.kind != "wrong", (
            f"case {index}, of {case.format}: {verdict.found} {json.dumps(case.value)[:400]}"
        )
    return found


@pytest.mark.slow
def test_what_is_a_little_wrong_is_never_taken_for_another_format() -> None:
    found = verdicts(range(2_000))
    assert found["right"] > 600
    assert found["alike"] > 100
    assert found["refused"] > 400
    assert found["left"] < 60


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 100_000, 10_000))
def test_the_same_of_a_hundred_thousand(start: int) -> None:
    found = verdicts(range(start, start + 10_000))
    assert found["right"] > 3_000
    assert found["left"] < 300


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_changed_is_never_taken_for_another_format(name: str) -> None:
    from support.detecting import Case

    for sample in seeds(name, 40):
        assert judged(Case(name, sample.value)).kind in ("right", "alike", "refused"), json.dumps(
            sample.value
        )[:400]
