"""Any agents in tools of agents, that hand over or not: the laws of a run hold for the outermost
and for each within it."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import Agent, Usage, fold
from dragoman.event import (
    Event,
    MessageFinished,
    MessageStarted,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
    event_from_json,
    event_to_json,
)
from dragoman.fold import compact
from dragoman.message import Role
from dragoman.runs import visible
from dragoman.tools import Tool, handoff
from support.model import agent, call, says


class Node(msgspec.Struct, frozen=True):
    """An agent: what it says in each of its turns, whom it asks after each but the last, and to
    whom it hands over in the end."""

    texts: list[str]
    asks: list[list[Node]]
    hands_over: Node | None = None

    def output(self) -> str:
        last = [] if self.hands_over is None else [self.hands_over.output()]
        return "\n".join([text for text in [*self.texts, *last] if text])

    def model_calls(self) -> int:
        others = [
            *itertools.chain(*self.asks),
            *([] if self.hands_over is None else [self.hands_over]),
        ]
        return len(self.texts) + sum(other.model_calls() for other in others)


@st.composite
def nodes(draw: Any, depth: int = 2) -> Node:
    texts = draw(st.lists(st.text("ab", max_size=4), min_size=1, max_size=2))
    texts = [*texts[:-1], texts[-1] or "c"]
    below = nodes(depth - 1)
    asks = [draw(st.lists(below, min_size=1, max_size=2)) if depth else [] for _ in texts[:-1]]
    if not depth:
        texts = texts[-1:]
        asks = []
    return Node(texts, asks, draw(st.none() | below) if depth else None)


def built(node: Node, numbers: itertools.count[int], piece: int) -> Agent[Any]:
    """The agent of a node; every call has a name and an id of its own."""
    tools: list[Tool] = []
    answers: list[Any] = []
    for text, asks in itertools.zip_longest(node.texts, node.asks, fillvalue=[]):
        calls: list[Any] = []
        for other in asks:
            name = f"t{next(numbers)}"
            tools.append(built(other, numbers, piece).as_tool(name))
            calls.append(call(name, id=name, prompt="?"))
        answers.append(says(*([text] if text else []), *calls, usage=1))
    if node.hands_over is not None:
        name = f"h{next(numbers)}"
        tools.append(handoff(built(node.hands_over, numbers, piece), name))
        last = answers.pop()
        answers.append(says(*last.content, call(f"transfer_to_{name}", id=name), usage=1))
    made, script = agent(*answers, tools=tools, ids=f"a{next(numbers)}-")
    script.piece = piece
    return made


@settings(max_examples=60, deadline=None)
@given(nodes(), st.integers(1, 3))
@pytest.mark.slow
def test_the_laws_of_a_run_hold_for_all(node: Node, piece: int) -> None:
    async def go() -> tuple[list[Event], Any, str, list[Any]]:
        async with built(node, itertools.count(), piece).run("Go.", run_id="root") as run:
            events = [event async for event in run]
            result = await run.result()
        streamed, chunks = "", list[Any]()
        async for chunk in built(node, itertools.count(), piece).send_stream("Go."):
            streamed = chunk.joined(streamed)
            chunks.append(chunk)
        return events, result, streamed, chunks

    events, result, streamed, chunks = asyncio.run(go())
    assert result.output == streamed == node.output()
    assert "".join(m.text for m in fold(visible(events)) if m.role is Role.MODEL) == result.output
    calls = node.model_calls()
    assert result.usage == Usage(input_tokens=0, output_tokens=calls, total_tokens=calls)
    assert len(result.calls) == len([each for chunk in chunks for each in chunk.calls]) == calls
    assert sum((chunk.usage for chunk in chunks if chunk.usage), Usage()) == result.usage
    started = {
        event.run_id: event.parent_run_id for event in events if isinstance(event, RunStarted)
    }
    finished = [event.run_id for event in events if isinstance(event, RunFinished)]
    assert sorted(finished) == sorted(started)
    assert finished[-1] == "root"
    assert all(parent in started for run_id, parent in started.items() if run_id != "root")
    assert {each.run_id for each in result.calls} == set(started)
    opened = [event.message_id for event in events if isinstance(event, MessageStarted)]
    assert len(set(opened)) == len(opened)
    assert sorted(opened) == sorted(
        event.message_id for event in events if isinstance(event, MessageFinished)
    )
    steps = [(event.run_id, event.name) for event in events if isinstance(event, StepStarted)]
    assert sorted(steps, key=str) == sorted(
        [(event.run_id, event.name) for event in events if isinstance(event, StepFinished)], key=str
    )
    for stream in (
        events,
        compact(events),
        [event_from_json(event_to_json(event)) for event in events],
    ):
        assert fold(stream) == list(result.messages)
        for run_id in started.keys() - {"root"}:
            assert fold(stream, run_id=run_id) == fold(events, run_id=run_id) != []
