"""A thousand runs of an agent at once over sockets, in each agent protocol: none is dropped, and
nothing of one comes out of order."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench" / "agent_streams.py"


@pytest.mark.service
@pytest.mark.timeout(180)
def test_a_thousand_streams_are_whole_and_in_order() -> None:
    command = [
        sys.executable,
        str(BENCH),
        "--streams",
        "1000",
        "--events",
        "15",
        "--rate",
        "20",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=170)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["protocol"], row["whole"]) for row in rows] == [
        ("AG-UI", 1000),
        ("AI SDK", 1000),
        ("A2A", 1000),
    ], done.stderr
    assert all(row["kilobytes"] < 500 for row in rows)
