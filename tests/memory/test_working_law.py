"""The law of working memory: whatever happens in whatever order, a model that is asked something knows
the newest state, from what it reads alone; and what it read before never changes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman import Agent, Message, ToolCallPart
from dragoman.memory import Memory, WorkingMemory
from dragoman.memory.working_memory import merge_json
from dragoman.request import ModelRequest
from dragoman.testing import ScriptedModel

CHANGES = st.dictionaries(st.sampled_from("abc"), st.none() | st.integers(0, 9), max_size=2)
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("turn"),
            st.sampled_from("tu"),
            st.lists(st.tuples(CHANGES, st.none() | CHANGES), max_size=2),
        ),
        st.tuples(st.just("others"), CHANGES),
        st.tuples(st.just("set"), st.dictionaries(st.sampled_from("abc"), st.integers(0, 9))),
    ),
    max_size=7,
)
WINDOWS = st.sampled_from([0, 1, 2, 4, 10, 1000])


def read_state(messages: Any) -> Any:
    """The working memory as a model knows it: the last memo, and its own calls since."""
    state: Any = None
    calls: dict[str, Any] = {}
    for message in messages:
        if "<working_memory_data>" in message.text:
            state = json.loads(message.text.splitlines()[-2])
        for call in message.tool_calls:
            calls[call.id] = (call.arguments or {})["memory"]
        for result in message.tool_results:
            state = merge_json(state, calls[result.id])
    return state


class World:
    """An agent that changes its working memory, and others that do."""

    def __init__(self, last_messages: int) -> None:
        settings = WorkingMemory(schema={"type": "object"})
        self.memory = Memory(working=settings, last_messages=last_messages)
        self.changes: list[Any] = []
        self.requests: list[tuple[Any, ModelRequest]] = []
        self.agent = Agent(ScriptedModel(self.answer), memory=self.memory)
        self.calls = 0

    async def stored(self) -> Any:
        return json.loads((await self.memory.working(resource_id="ann")).text or "{}")

    async def answer(self, request: ModelRequest) -> Any:
        if not request.messages[-1].tool_results:
            self.requests.append((await self.stored(), request))
        if not self.changes:
            return "Yes."
        self.calls += 1
        change, by_others = self.changes.pop(0)
        # Others may come between what the model reads and what it writes: it knows at the next prompt.
        if by_others is not None:
            await self.memory.merge_working(by_others, resource_id="ann")
        return Message.model(
            ToolCallPart(f"c{self.calls}", "updateWorkingMemory", {"memory": change})
        )

    async def do(self, step: Any) -> None:
        if step[0] == "turn":
            self.changes = list(step[2])
            await self.agent.send("Hm?", thread_id=step[1], resource_id="ann")
        elif step[0] == "others":
            await self.memory.merge_working(step[1], resource_id="ann")
        else:
            version = (await self.memory.working(resource_id="ann")).version
            await self.memory.set_working(json.dumps(step[1]), version=version, resource_id="ann")


@settings(max_examples=40)
@example(10, [("turn", "t", []), ("set", {"a": 1}), ("turn", "t", [])])
@example(10, [("turn", "t", [({"a": 1}, {"b": 2})]), ("turn", "t", [])])
@given(WINDOWS, STEPS)
def test_the_model_knows_the_newest_state(last_messages: int, steps: Any) -> None:
    async def play() -> None:
        world = World(last_messages)
        threads: dict[str, list[Message]] = {"t": [], "u": []}
        for step in steps:
            await world.do(step)
            if step[0] == "turn":
                earlier = threads[step[1]]
                page = await world.memory.recall(step[1], per_page=None)
                threads[step[1]] = [*page.items]
                assert threads[step[1]][: len(earlier)] == earlier
        for state, request in world.requests:
            assert read_state(request.messages) == state

    asyncio.run(play())
