"""Streams that were written before 0.1's encoders got one shell are still read as they were
then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import json_bytes
from dragoman.event import Event, event_to_json
from dragoman.wires import a2a

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
    data, decoder = row["stream"].encode(), a2a.decoder()
    pieces = [data[start : start + step] for start in range(0, len(data), step)]
    events = [event for piece in pieces for event in decoder.feed(piece)]
    assert stored([*events, *decoder.close()]) == row["events"]


def test_the_end_of_a_part_that_differs_in_native_alone_has_two_forms() -> None:
    """Today's names the fields; the one before had `native` as its fourth entry."""
    carried = json.dumps(["m", 0, None, {"x": {"a": 1}}])
    today = json.dumps(["m", 0, {"native": {"x": {"a": 1}}}])
    start = '[{"type":"part_started","message_id":"m","index":0,"part":{"type":"thinking"}}]'
    for finished in (carried, today):
        fields = {"events": start, "finished": finished}
        update = {"taskId": "t", "status": {"state": "TASK_STATE_WORKING"}}
        decoder = a2a.decoder()
        metadata = {"metadata": {a2a.EXTENSION: fields}}
        data = json_bytes.encode({"statusUpdate": {**update, **metadata}})
        events = decoder.feed(b"data: " + data + b"\n\n")
        assert stored(events)[1]["part"] == {"type": "thinking", "native": {"x": {"a": 1}}}
