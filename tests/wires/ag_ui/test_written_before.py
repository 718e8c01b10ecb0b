"""Streams, and messages that clients keep, as the code of November 2026 wrote them, are still read
as they were.

`written_before.jsonl` has a run in each line: the stream's bytes, the events that it was decoded
to, the messages of AG-UI, and ours.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.event import event_to_json
from dragoman.wires import ag_ui
from support.ag_ui import decoded

RUNS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "written_before.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("run", RUNS)
def test_a_stream_is_read_as_it_was(run: dict[str, Any]) -> None:
    events = decoded(run["stream"].encode())
    assert [json.loads(event_to_json(event)) for event in events] == run["events"]


@pytest.mark.parametrize("run", RUNS)
def test_messages_that_clients_keep_are_read_as_they_were(run: dict[str, Any]) -> None:
    messages = ag_ui.load_messages(run["entries"])
    assert [json.loads(message.to_json()) for message in messages] == run["messages"]


def test_the_runs_have_all_that_a_stream_carries() -> None:
    streams = "".join([run["stream"] for run in RUNS])
    for name in ("v", "made", "at", "m", "of", "start", "part", "signed", "event", "error", "finished", "dropped"):  # fmt: skip
        assert f'\\"{name}\\":' in streams, name
