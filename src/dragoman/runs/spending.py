"""What runs spend: the model calls in their events, with the tokens and the cost of each."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

import msgspec

from dragoman.cost import find_call_cost
from dragoman.event import Event, MessageDropped, MessageFinished, MessageStarted
from dragoman.message import Origin

__all__ = ["CallMeter", "CallTotals", "add_costs"]

_MOST_OPEN = 10_000
"""Messages that may be open at a time. Those whose end never comes are forgotten."""
_FREE = Decimal(0)


class CallTotals(msgspec.Struct, frozen=True):
    """What model calls took."""

    calls: int = 0
    """Number of calls that told their tokens."""
    tokens: int = 0
    """Input and output tokens."""
    cost: Decimal | None = _FREE
    """US dollars; `None`: the price of a call is unknown."""


class CallMeter:
    """Counts the model calls in events. One meter serves all runs of a log."""

    def __init__(self) -> None:
        """Starts without open messages."""
        self._origins: dict[str, Origin | None] = {}
        """Which model writes each open message."""

    def feed(self, events: Iterable[Event]) -> CallTotals:
        """Returns what the calls took that end in these events."""
        spent = CallTotals()
        for event in events:
            if isinstance(event, MessageStarted):
                self._open(event)
            elif isinstance(event, MessageDropped):
                self._origins.pop(event.message_id, None)
            elif isinstance(event, MessageFinished):
                spent = self._count(event, spent)
        return spent

    def _open(self, event: MessageStarted) -> None:
        if event.origin is not None:
            self._origins[event.message_id] = event.origin
            # A process that hands a run over leaves its open messages behind.
            if len(self._origins) > _MOST_OPEN:
                del self._origins[next(iter(self._origins))]

    def _count(self, event: MessageFinished, spent: CallTotals) -> CallTotals:
        origin = event.origin or self._origins.pop(event.message_id, None)
        self._origins.pop(event.message_id, None)
        # An answer from a cache took nothing, and a hand-off repeats one that was counted.
        if event.usage is None or event.cached:
            return spent
        tokens = (event.usage.input_tokens or 0) + (event.usage.output_tokens or 0)
        cost = find_call_cost(origin, event.usage, None, event.native)
        return CallTotals(spent.calls + 1, spent.tokens + tokens, add_costs(spent.cost, cost))


def add_costs(first: Decimal | None, second: Decimal | None) -> Decimal | None:
    """Returns the sum of two costs; None if one is unknown."""
    # A sum with an unknown part would be taken for all that was spent.
    if first is None or second is None:
        return None
    return first + second
