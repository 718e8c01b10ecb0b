"""Events as a log stores them: some of them in a row, a line of JSON each."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.event import Event, event_from_json, event_to_json

__all__ = ["MOST_BYTES", "batches", "events_of"]

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
