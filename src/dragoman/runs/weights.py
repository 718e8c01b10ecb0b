"""How large events are, for what must not hold too many of them."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.event import Event, PartDelta, event_to_json

__all__ = ["weigh_event", "weigh_events"]

_FRAME_BYTES = 256
"""What an event takes in memory beside its text."""


def weigh_event(event: Event) -> int:
    """Returns about how many bytes an event takes in memory."""
    if type(event) is PartDelta:  # nearly all are, and this runs for each
        return _FRAME_BYTES + len(event.delta)
    try:
        return _FRAME_BYTES + len(event_to_json(event))
    except Exception:  # noqa: BLE001 - a value of the user's raises what it likes; whoever stores it reports that
        return _FRAME_BYTES


def weigh_events(events: Iterable[Event]) -> int:
    """Returns about how many bytes these events take in memory."""
    return sum([weigh_event(event) for event in events])
