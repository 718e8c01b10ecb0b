"""The end of a run that is kept in memory for its readers."""

from __future__ import annotations

import pytest

from dragoman.event import StateSnapshot
from dragoman.runs.tail import Cursor, RunTail

EVENTS = [StateSnapshot({"number": number}) for number in range(6)]


@pytest.mark.parametrize("stored", [0, 2, 4])
def test_a_reader_may_read_from_the_log_what_has_not_come_here_yet(stored: int) -> None:
    tail, cursor = RunTail(), Cursor()
    tail.extend(EVENTS[:stored])
    cursor.follow(tail)
    cursor.advance(EVENTS[:5], 5)
    assert cursor.read_bytes > 0
    tail.extend(EVENTS[stored:])
    cursor.advance(EVENTS[5:], 6)
    whole = RunTail()
    whole.extend(EVENTS)
    other = Cursor()
    other.follow(whole)
    other.advance(EVENTS, 6)
    assert cursor.read_bytes == other.read_bytes
