"""Streams that were written before 0.1's encoders got one shell are still read as they were
then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.event import Event, event_to_json
from dragoman.wires import ai_sdk

ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in Path(__file__).with_name("written_before.jsonl").read_bytes().splitlines()
]
"""Each with the bytes of a stream, and the events that were read of it."""


def stored(events: list[Event]) -> list[Any]:
    return [json.loads(event_to_json(event)) for event in events]


@pytest.mark.parametrize("row", ROWS, ids=[str(number) for number in range(len(ROWS))])
@pytest.mark.parametrize("step", [1 << 20, 13])
def test_a_stream_is_read_as_before(row: dict[str, Any], step: int) -> None:
    data, decoder = row["stream"].encode(), ai_sdk.decoder()
    pieces = [data[start : start + step] for start in range(0, len(data), step)]
    events = [event for piece in pieces for event in decoder.feed(piece)]
    assert stored([*events, *decoder.close()]) == row["events"]
