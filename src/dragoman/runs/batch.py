"""Packs events into the rows of a log, one line of JSON for each event, and estimates their size.

A file is told in one delta and again in its finished part. A row has its bytes once: the line of the
finished part begins with `_REPEATS` and leaves them out. Such a line is never first in its row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from dragoman.event import Event, PartDelta, PartFinished, event_from_json, event_to_json
from dragoman.message import DataPart

__all__ = [
    "ROW_BYTES",
    "pack_events",
    "unpack_events",
    "weigh_event",
    "weigh_events",
]

ROW_BYTES = 64 * 1024
"""Most bytes of a row. A larger event has a row of its own, or one with the event that repeats it."""
_REPEATS = "="


def pack_events(events: Sequence[Event]) -> list[tuple[int, str]]:
    """Packs a batch of events: returns the rows for them: the number of events in each row, and
    their lines.

    Raises:
        HistoryError: an event holds a value that JSON cannot.
    """
    rows: list[tuple[int, str]] = []
    lines: list[bytes] = []
    size, last = 0, None
    for event in events:
        if type(event) is PartFinished and _repeats(event, last):
            lines.append(_REPEATS.encode() + event_to_json(_with_bytes(event, b"")))
            last = None
            continue
        line, last = event_to_json(event), event
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
    lines = data.split("\n")
    if f"\n{_REPEATS}" not in data:
        return [event_from_json(line) for line in lines]
    events: list[Event] = []
    for line in lines:
        if line.startswith(_REPEATS):
            before = events[-1]
            assert isinstance(before, PartDelta)
            events.append(_with_bytes(event_from_json(line[1:]), before.delta))
        else:
            events.append(event_from_json(line))
    return events


def _repeats(event: PartFinished, last: Event | None) -> bool:
    """True if an event is the end of a file that the last event has told whole."""
    return (
        type(event.part) is DataPart
        and type(last) is PartDelta
        and (last.message_id, last.index) == (event.message_id, event.index)
        and last.delta == event.part.data
    )


def _with_bytes(event: Event, data: bytes | str) -> Event:
    """Returns the end of a file with other bytes."""
    assert isinstance(event, PartFinished)
    part = msgspec.structs.replace(event.part, data=data)
    return msgspec.structs.replace(event, part=part)


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
