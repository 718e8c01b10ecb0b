"""What hooks cost by count: nothing where there are none, and nothing for a chunk where there are
some."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider

import dragoman
from dragoman import Usage
from dragoman.hooks import Hooks
from dragoman.telemetry import telemetry
from support.answers import agent_of, answer
from support.model import call

pytestmark = pytest.mark.anyio

OURS = Path(dragoman.__file__).parent
FILES = {
    str(OURS / name): name
    for name in ("hooks.py", "model/report_to_hooks.py", "orchestration/watch.py", "tools/watch.py")
}
SHORT, LONG = 20, 220


async def entered(hooks: Any, words: int) -> Counter[str]:
    """Functions of hooks and of telemetry that are entered, or resumed, by a run with a tool whose
    answer has so many words."""
    found: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        if event == "call" and (
            path in FILES or path.startswith((str(OURS / "telemetry"), "/opentelemetry"))
        ):
            found[frame.f_code.co_name] += 1

    def double(x: int) -> int:
        return 2 * x

    used = Usage(input_tokens=1, output_tokens=words)
    both = (
        answer("openai_chat", call("double", x=2)),
        answer("openai_chat", "word " * words, usage=used),
    )
    agent, _ = agent_of("openai_chat", *both, tools=[double], hooks=hooks)
    sys.setprofile(count)
    try:
        await agent.send("hi")
    finally:
        sys.setprofile(None)
    return found


async def test_without_hooks_a_run_asks_once_whether_there_are_any() -> None:
    assert await entered((), SHORT) == {"find_active_hooks": 1}


async def test_with_telemetry_nothing_is_done_for_a_chunk() -> None:
    hooks = telemetry(TracerProvider(), MeterProvider())
    short, long = await entered(hooks, SHORT), await entered(hooks, LONG)
    assert short["_model_end"] == 2
    assert {name for name in long if long[name] > short[name] + 2} <= {"watched"}
    assert long["watched"] - short["watched"] <= 1.1 * (LONG - SHORT)  # resumed once for each read


async def test_what_is_kept_of_an_answer_does_not_grow_with_its_chunks() -> None:
    kept: list[int] = []
    hooks = Hooks(model_end=lambda end: kept.append(sum(map(len, end.reads))))
    for words in (SHORT, LONG):
        await entered(hooks, words)
    assert kept[3] - kept[1] < (LONG - SHORT) // 4
