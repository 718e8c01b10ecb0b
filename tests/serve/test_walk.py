"""What one request through the server costs: files that are entered, types that carry the question,
SQL statements."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "walk.py"
TRIES = 8
"""A slow machine stores the events of a run in more pieces than a quick one, and waits for them in
other files."""


def walk(scene: str) -> tuple[int, int, int]:
    """Files, types and statements of a scene."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), scene], capture_output=True, text=True, check=True
    )
    counts = [int(number) for number in re.findall(r"\d+", done.stdout.partition("\n")[0])]
    return counts[-3], counts[-2], counts[-1]


@pytest.mark.parametrize(
    ("scene", "files", "types", "statements"),
    [("responses", 165, 10, 14), ("ag_ui", 175, 14, 23), ("a2a", 175, 13, 25)],
)
def test_a_turn_enters_few_files_and_takes_few_types_and_statements(
    scene: str, files: int, types: int, statements: int
) -> None:
    walks: list[tuple[int, int, int]] = []
    for _ in range(TRIES):
        walks.append(walk(scene))
        entered, carrying, executed = walks[-1]
        if entered <= files and carrying <= types and executed <= statements:
            return
    pytest.fail(f"{scene}: files, types and statements were {walks}")
