"""What processes count together: the sums, whichever of them dies."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.serve.http import counts as module
from dragoman.serve.http.counts import COUNT_BYTES, Counts

WORDS = st.text(max_size=12)
KEYS = st.tuples(WORDS, WORDS) | st.tuples(WORDS, WORDS, WORDS)


@contextmanager
def memory(count: int) -> Generator[list[int]]:
    """Files in which so many processes count."""
    with ExitStack() as files:
        opened = [files.enter_context(TemporaryFile()) for _ in range(count)]
        for file in opened:
            file.truncate(COUNT_BYTES)
        yield [file.fileno() for file in opened]


def shared(descriptors: list[int], index: int) -> Counts:
    counts = Counts()
    counts.share(descriptors, index)
    return counts


@given(st.lists(st.tuples(st.integers(0, 2), KEYS, st.integers(0, 1000), st.booleans())))
def test_every_process_reads_the_sums_and_a_new_one_goes_on(
    steps: list[tuple[int, tuple[str, ...], int, bool]],
) -> None:
    expected: Counter[tuple[str, ...]] = Counter()
    with memory(3) as descriptors:
        processes = [shared(descriptors, index) for index in range(3)]
        for index, key, amount, is_replaced in steps:
            if is_replaced:
                processes[index] = shared(descriptors, index)
            processes[index].add(key, amount)
            expected[key] += amount
        for counts in processes:
            assert {key: [float(value)] for key, value in expected.items()} == counts.sums()


def test_the_numbers_of_a_key_stand_apart() -> None:
    counts = Counts()
    for place, amount in ((0, 0.5), (2, 1.0), (2, 1.0)):
        counts.add(("seconds", "a"), amount, place, 3)
    counts.add(("seconds", "b"), 2.0, 1, 3)
    assert counts.sums() == {("seconds", "a"): [0.5, 0.0, 2.0], ("seconds", "b"): [0.0, 2.0, 0.0]}


def test_what_runs_in_a_process_that_is_gone_does_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with memory(2) as descriptors:
        one, other = (shared(descriptors, index) for index in range(2))
        with monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: 2**22 + 1)
            gone = shared(descriptors, 1)
        gone.set(("open",), 5)
        gone.add(("calls",), 5)
        one.set(("open",), 3)
        one.set(("open",), 2)
        for counts in (one, other):
            assert counts.sums(of_living=["open"]) == {("open",): [2.0], ("calls",): [5.0]}


def test_more_keys_than_there_is_room_for_are_told_once_and_lost(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "COUNT_BYTES", 4096)
    counts = Counts()
    for number in range(1000):
        counts.add(("calls", f"model {number}"), 1)
        counts.add(("calls", "model 0"), 1)
    sums = counts.sums()
    assert 20 < len(sums) < 150
    assert sums["calls", "model 0"] == [1001.0]
    assert [record.message for record in caplog.records] == [
        "metrics have more labels than there is room for; new ones are lost"
    ]
