"""Events as a log stores them, some of them in a row, a line of JSON each; and how large they are,
for what must not hold too many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dragoman.event import Event, PartDelta, event_from_json, event_to_json

__all__ = [
    "MOST_BYTES",
    "batches",
    "events_of",
    "weigh_event",
    "weigh_events",
]

MOST_BYTES = 64 * 1024
"""Of a row. An event that is larger has a row of its own."""


def batches(events: Sequence[Event]) -> list[tuple[int, str]]:
    """Events as rows: of each, how many they are, and their lines.

    Raises:
        HistoryError: one holds what JSON cannot.
    """
    rows: list[tuple[int, str]] = []
    lines: list[bytes] = []
    size = 0
    for event in events:
        line = event_to_json(event)
        if lines and size + len(line) > MOST_BYTES:
            rows.append((len(lines), b"\n".join(lines).decode()))
            lines, size = [], 0
        lines.append(line)
        size += len(line) + 1
    return [*rows, (len(lines), b"\n".join(lines).decode())] if lines else rows


def events_of(data: str) -> list[Event]:
    """The events of a row."""
    return [event_from_json(line) for line in data.split("\n")]


_FRAME_BYTES = 256
"""What an event takes in memory beside its text."""


def weigh_event(event: Event) -> int:
    """Returns about how many bytes an event takes in memory."""
    # Nearly all are, and this runs for each.
    if type(event) is PartDelta:
        return _FRAME_BYTES + len(event.delta)
    try:
        return _FRAME_BYTES + len(event_to_json(event))
    except Exception:  # noqa: BLE001 - a value of the user's raises what it likes; whoever stores it reports that
        return _FRAME_BYTES


def weigh_events(events: Iterable[Event]) -> int:
    """Returns about how many bytes these events take in memory."""
    return sum([weigh_event(event) for event in events])
