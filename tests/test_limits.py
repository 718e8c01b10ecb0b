"""`Limits`: how far a run may go (decision 8)."""

from __future__ import annotations

import pytest

from dragoman.limits import Limits, Spent, find_reached_limit

NONE = Limits(model_calls=None)


def test_fifty_model_calls_are_the_default_and_the_next_is_one_too_many() -> None:
    assert find_reached_limit(Limits(), Spent(model_calls=49), model_calls=1) is None
    assert find_reached_limit(Limits(), Spent(model_calls=50)) is None
    assert find_reached_limit(Limits(), Spent(model_calls=50), model_calls=1) == (
        "the limit of 50 model calls is reached; raise it with Limits(model_calls=…), or lift it with None"
    )


def test_without_limits_there_is_always_room() -> None:
    """D-13."""
    spent = Spent(model_calls=10**9, tool_calls=10**9, total_tokens=10**12, seconds=1e9)
    assert find_reached_limit(NONE, spent, model_calls=1, tool_calls=100) is None


@pytest.mark.parametrize(
    ("limits", "spent", "more", "name"),
    [
        (Limits(tool_calls=5), Spent(tool_calls=3), {"tool_calls": 2}, None),
        (Limits(tool_calls=5), Spent(tool_calls=3), {"tool_calls": 3}, "5 tool calls"),
        (Limits(tool_calls=0), Spent(), {"tool_calls": 1}, "0 tool calls"),
        (Limits(total_tokens=1000), Spent(total_tokens=999), {"model_calls": 1}, None),
        (
            Limits(total_tokens=1000),
            Spent(total_tokens=1000),
            {"model_calls": 1},
            "1000 total tokens",
        ),
        (Limits(seconds=2.5), Spent(seconds=2.4), {"tool_calls": 1}, None),
        (Limits(seconds=2.5), Spent(seconds=2.5), {"tool_calls": 1}, "2.5 seconds"),
        (
            Limits(model_calls=1, seconds=1),
            Spent(model_calls=1, seconds=3),
            {"model_calls": 1},
            "1 model calls",
        ),
    ],
)
def test_the_limit_that_is_reached_is_named(
    limits: Limits, spent: Spent, more: dict[str, int], name: str | None
) -> None:
    said = find_reached_limit(limits, spent, **more)
    assert (said or "").startswith(f"the limit of {name} is reached") if name else said is None
