"""Efforts, and the tokens of thinking that stand for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import get_args

from dragoman.request import Effort

__all__ = ["EFFORTS", "TOKENS", "effort_for", "find_allowed", "to_effort"]

EFFORTS: tuple[Effort, ...] = get_args(Effort)
"""All efforts, the least first."""
TOKENS: Mapping[Effort, int] = MappingProxyType(
    {
        "minimal": 1024,
        "low": 1024,
        "medium": 4096,
        "high": 16_384,
        "xhigh": 32_768,
        "max": 65_536,
    }
)
"""Effort → the tokens of thinking that stand for it. From `low` up each has its own number, so that
an effort becomes tokens and the same effort again."""


def effort_for(tokens: int) -> Effort:
    """Returns the least reasoning effort whose tokens are not fewer than these, from `low` up."""
    for effort in EFFORTS[2:]:
        if tokens <= TOKENS[effort]:
            return effort
    return "max"


def to_effort(reasoning: Effort | int) -> Effort:
    """Returns an effort as it is, and tokens as the effort that stands for them."""
    return effort_for(reasoning) if isinstance(reasoning, int) else reasoning


def find_allowed(effort: Effort, allowed: Iterable[Effort]) -> Effort | None:
    """Returns the highest allowed reasoning effort that is not above this one, else the least
    allowed; `None`: none is allowed. `off` is not among them."""
    ranks = sorted(EFFORTS.index(name) for name in allowed if name != "off")
    if not ranks:
        return None
    wanted = EFFORTS.index(effort)
    return EFFORTS[max((rank for rank in ranks if rank <= wanted), default=ranks[0])]
