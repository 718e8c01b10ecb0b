"""Packs events into the rows of a log, one line of JSON for each event, and estimates their size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dragoman.event import Event, PartDelta, event_from_json, event_to_json

__all__ = [
    "ROW_BYTES",
    "pack_events",
    "unpack_events",
    "weigh_event",
    "weigh_events",
]

ROW_BYTES = 64 * 1024
"""Most bytes of a row. A larger event has a row of its own."""


def pack_events(events: Sequence[Event]) -> list[tuple[int, str]]:
    """Packs a batch of events: returns the rows for them: the number of events in each row, and
    their lines.

    Raises:
        HistoryError: an event holds a value that JSON cannot.
    """
    rows: list[tuple[int, str]] = []
    lines: list[bytes] = []
    size = 0
    for event in events:
        line = event_to_json(event)
        if lines and size + len(line) > ROW_BYTES:
            rows.append((len(lines), b"\n".join(lines).decode()))
            lines, size = [], 0
        lines.append(line)
        size += len(line) + 1
    if lines:
        return [*rows, (len(lines), b"\n".join(lines).decode())]
    return rows


def unpack_events(data: str) -> list[Event]:
    """Returns the events of a row that `pack_events` made."""
    return [event_from_json(line) for line in data.split("\n")]


_FRAME_BYTES = 256
"""Bytes that an event takes in memory beside its text."""


def weigh_event(event: Event) -> int:
    """Returns about how many bytes an event of a batch takes in memory."""
    # Nearly all events of a stream are deltas, and this runs for each of them.
    if type(event) is PartDelta:
        return _FRAME_BYTES + len(event.delta)
    try:
        return _FRAME_BYTES + len(event_to_json(event))
    except Exception:  # noqa: BLE001
        # A user's value may raise anything while it is encoded; the log reports that when it stores it.
        return _FRAME_BYTES


def weigh_events(events: Iterable[Event]) -> int:
    """Returns about how many bytes these events take in memory together."""
    return sum([weigh_event(event) for event in events])
