"""What goes at once and within a minute: never more than the limit, and never later than it may."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.throttle import MINUTE, MinuteWindow, Quota

STEPS = st.lists(st.tuples(st.integers(1, 12), st.floats(0, 40, allow_nan=False)), max_size=40)


@given(limit=st.integers(1, 20), steps=STEPS)
def test_never_more_than_the_limit_within_any_minute(
    limit: int, steps: list[tuple[int, float]]
) -> None:
    window, now, gone = MinuteWindow(limit), 0.0, list[tuple[float, int]]()
    for amount, pause in steps:
        now += pause
        if wait := window.wait(amount, now):
            # just before, there is no room
            before = [one for at, one in gone if at + MINUTE > now + wait - 0.001]
            assert sum(before) + amount > limit
            now += wait
        assert window.wait(amount, now) == 0.0
        window.add(amount, now)
        gone.append((now, amount))
        counted = [one for at, one in gone if at + MINUTE > now + 0.001]
        assert sum(counted) <= limit or counted == [amount]


ENDS = st.lists(st.tuples(st.integers(0, 30), st.floats(0, 100)), min_size=40, max_size=40)


@given(limit=st.integers(1, 20), steps=STEPS, ends=ENDS)
def test_what_is_corrected_counts_as_it_was(
    limit: int, steps: list[tuple[int, float]], ends: list[tuple[int, float]]
) -> None:
    window, now, gone = MinuteWindow(limit), 0.0, list[tuple[float, int]]()
    for (amount, pause), (used, lasts) in zip(steps, ends, strict=False):
        now += pause + window.wait(amount, now + pause)
        booking = window.add(amount, now)
        now += lasts
        window.correct(booking, used, now)
        gone.append((booking.at, used))
        window.wait(0, now)
        assert window.total == sum(one for at, one in gone if at + MINUTE > now + 1e-6)


def test_what_is_more_than_the_limit_goes_alone() -> None:
    window = MinuteWindow(10)
    assert window.wait(50, 0.0) == 0.0
    window.add(50, 0.0)
    assert window.wait(1, 1.0) == 59.0
    assert window.wait(50, 60.0) == 0.0


def test_all_limits_hold_together() -> None:
    quota = Quota(2, 3, 100)
    first = quota.begin(60, 0.0)
    assert quota.wait(60, 10.0) == 50.0
    quota.begin(10, 10.0)
    assert quota.wait(1, 20.0) == math.inf
    quota.end(first, 20, 30.0)
    assert (quota.running, quota.wait(60, 30.0), quota.wait(80, 30.0)) == (1, 0.0, 30.0)
    quota.begin(60, 30.0)
    quota.end(None, None, 31.0)
    assert quota.wait(1, 31.0) == 29.0
    nothing = Quota(None, None, None)
    assert nothing.wait(10**9, 0.0) == 0.0
    assert nothing.begin(10**9, 0.0) is None


@pytest.mark.parametrize(("start", "later"), [(0.1, 0.7), (1.382, 26.659), (1e7 + 0.3, 0.7)])
def test_who_waits_as_long_as_said_may_go(start: float, later: float) -> None:
    """Also where a sum of times comes out a little less."""
    window = MinuteWindow(1)
    window.add(1, start)
    now = start + later
    now += window.wait(1, now)
    assert window.wait(1, now) == 0.0
