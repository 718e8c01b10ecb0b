"""What one request through the server costs: files that are entered, types that carry the question,
SQL statements."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "walk.py"
TRIES = 4
"""A slow machine stores the events of a run in more pieces than a quick one."""


def walk(scene: str) -> tuple[int, int, int]:
    """Files, types and statements of a scene."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), scene], capture_output=True, text=True, check=True
    )
    counts = [int(number) for number in re.findall(r"\d+", done.stdout.partition("\n")[0])]
    return counts[-3], counts[-2], counts[-1]


@pytest.mark.parametrize(
    ("scene", "types", "statements"),
    [("responses", 9, 14), ("ag_ui", 14, 22), ("a2a", 14, 24)],
)
def test_a_turn_takes_few_types_and_statements(scene: str, types: int, statements: int) -> None:
    for _ in range(TRIES):
        _, carrying, executed = walk(scene)
        assert carrying <= types
        if executed <= statements:
            return
    pytest.fail(f"{scene}: {executed} statements")
