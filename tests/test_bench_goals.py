"""The table of `bench/goals.py`: the work by hand is the same work, and the page shows its numbers."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman import formats, wires

ROOT = Path(__file__).parents[1]
BENCH = ROOT / "bench"


@pytest.fixture(scope="module")
def load() -> Iterator[Callable[[str], Any]]:
    """Imports a module of the bench."""
    paths = [str(BENCH), str(BENCH / "peers")]
    sys.path[:0] = paths
    try:
        yield importlib.import_module
    finally:
        for path in paths:
            sys.path.remove(path)


@pytest.mark.parametrize("wire", ["openai_chat", "openai_responses", "anthropic", "google"])
def test_what_is_made_by_hand_is_what_dragoman_makes(load: Any, wire: str) -> None:
    measure, by_hand = load("measure"), load("rows_by_hand")
    history = measure.chat_history(3)
    made = getattr(by_hand, f"to_{wire.removeprefix('openai_')}")(
        msgspec.convert(history, list[by_hand.Said])
    )
    payload = wires.get(wire).dump_messages(formats.get("openai_chat").load_messages(history))
    expected = payload if isinstance(payload, list) else next(iter(payload.values()))
    assert msgspec.json.decode(msgspec.json.encode(expected)) == made


def test_the_page_shows_the_numbers_of_the_bench(load: Any) -> None:
    goals = load("goal_table")
    numbers = json.loads((BENCH / "numbers.json").read_text())[goals.TABLE]
    assert [*numbers] == [*goals.ROWS]
    assert goals.table(numbers) in (ROOT / "docs" / "performance.md").read_text()


def test_a_row_compares_with_the_work_by_hand_and_the_best_peer(load: Any) -> None:
    goals = load("goal_table")
    numbers = {
        "short": {"by hand": 0.1, "dragoman": 0.4, "AI SDK": 0.6, "pydantic-ai": 6.0},
        "convert 1": {"by hand": 120.0, "dragoman": 30.0},
        "ui in": {"dragoman": 8.0, "Mastra": 6.0},
    }
    assert goals.table(numbers).splitlines()[2:] == [
        "| a short answer (by hand and dragoman stream it) | ms | 0.1 | 0.4 | **4** | AI SDK 0.6 | 1.5 |",
        "| `dragoman convert`, Chat → Anthropic, one process | MB/s | 120 | 30 | **4** | – | – |",
        "| MessageList: 1,000 messages as UI messages, in | ms | – | 8 | – | Mastra 6 | 0.75 |",
    ]
